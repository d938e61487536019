//! Pages of journals that are written here entry by entry, so that every kind of entry is in one.

use gyrus_contract::{BlobId, RunId};
use gyrus_journal::{NewEntry, Store, Writer};
use gyrus_kernel::{Entry, log_name};
use serde_json::{Value, json, value::to_raw_value};
use tempfile::TempDir;

use super::{Stretch, WholeRun, Zoom, one_step, rows, write};

const EFFECT_OF_CHILD: &str = "2.4";

struct World {
    _folder: TempDir,
    store: Store,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("journal")).unwrap();
        Self {
            _folder: folder,
            store,
        }
    }

    fn log(&self, run: RunId) -> Log {
        Log(self.store.create(&log_name(run)).unwrap())
    }

    fn page(&self, run: RunId) -> String {
        let mut out = Vec::new();
        let damage = write(&self.store, run, &mut out).unwrap();
        assert!(damage.is_none(), "{damage:?}");
        String::from_utf8(out).unwrap()
    }
}

/// Writes entries to a journal.
struct Log(Writer);

impl Log {
    fn add(&self, kind: &str, payload: Value) -> &Self {
        let payload = to_raw_value(&payload).unwrap();
        if Entry::KINDS.contains(&kind) {
            Entry::parse(kind, 1, payload.get()).unwrap();
        }
        let entry = NewEntry {
            kind,
            version: 1,
            payload,
        };
        self.0.append(&[entry]).unwrap();
        self
    }

    fn start(&self, run: RunId, goal: &str, more: Value) -> &Self {
        let mut payload = json!({
            "run": run, "goal": {"is": {"text": goal, "from": "person"}},
            "loop": "react", "loop_config": {}, "workspace": "/home/anna/sales",
            "limits": {"steps": 20}, "mode": "ask", "on_ask": "park", "pins": {"gyrus": "0.1.0"},
            "tools": ["read", "shell"], "model": "router:cheap-first",
            "snapshot": {"missing": "not kept"},
        });
        for (name, value) in more.as_object().unwrap() {
            payload[name] = value.clone();
        }
        self.add("run.started", payload)
    }

    fn asks(&self, effect: &str, attempt: u32, more: Value) -> &Self {
        let mut payload = json!({
            "effect": effect, "attempt": attempt, "purpose": "agent", "ordinal": 0,
            "model": "local/small", "prompt": "0".repeat(32), "frame": BlobId::of(b""),
            "from": 0, "to": 4, "max_output_tokens": 1000,
            "reserved": {"tokens": 5000, "cost": 20_000},
        });
        for (name, value) in more.as_object().unwrap() {
            payload[name] = value.clone();
        }
        self.add("model.call", payload)
    }

    fn replies(&self, effect: &str, attempt: u32, tokens: u64, text: &str) -> &Self {
        let reply = json!({
            "parts": [{"type": "text", "text": text, "from": "model"}],
            "stop": "end_of_turn", "model": "small",
            "usage": {"input_tokens": tokens - 100, "output_tokens": 100, "cached_tokens": 64},
        });
        self.add(
            "model.reply",
            json!({
                "effect": effect, "attempt": attempt, "came": {"reply": {"reply": {"is": reply}}},
                "charged": {"tokens": tokens, "cost": tokens * 3}, "took_ms": 840,
            }),
        )
    }

    fn thinks(&self, effect: &str, text: &str) -> &Self {
        self.add("thought", json!({"effect": effect, "fact": {"text": text}}))
    }

    fn calls(&self, effect: &str, tool: &str, arguments: Value) -> &Self {
        let call = json!({"id": "c", "tool": tool, "arguments": arguments});
        self.add("tool.call", json!({"effect": effect, "call": call}))
    }

    fn results(&self, effect: &str, text: &str, more: Value) -> &Self {
        let mut payload = json!({
            "effect": effect, "settled": "done", "text": {"is": text},
            "verdict": "no_effect", "took_ms": 12,
        });
        for (name, value) in more.as_object().unwrap() {
            payload[name] = value.clone();
        }
        self.add("tool.result", payload)
    }

    fn ends_cycle(&self, cycle: u32, told: &str) -> &Self {
        let item = json!({
            "role": "user", "parts": [{"type": "text", "text": told, "from": "kernel"}],
        });
        let items = if told.is_empty() {
            json!([])
        } else {
            json!([{"is": item}])
        };
        self.add(
            "cycle.ended",
            json!({
                "cycle": cycle, "state_version": 1, "state": {"idle_replies": 0},
                "appended": {"first": 0, "items": items}, "memory_next": 4,
                "kernel": {"spent": spent(cycle)},
            }),
        )
    }
}

fn spent(steps: u32) -> Value {
    json!({"steps": steps, "tokens": 1200 * steps, "cost": 3600 * steps, "time_ms": 4000})
}

/// Records a run with at least one entry of every kind, a child run, and a fork.
fn everything(world: &World) -> RunId {
    let run = RunId::new();
    let child = RunId::child(run, &EFFECT_OF_CHILD.parse().unwrap());
    let log = world.log(run);
    let picture = log.0.put_blob(PNG).unwrap();
    let not_a_picture = log.0.put_blob(b"<svg onload=alert(1)>").unwrap();
    let person = json!({"surface": "command line", "id": "anna"});
    log.start(
        run,
        "Compare the sales of January and February, and say what to order.",
        json!({"snapshot": null}),
    );
    log.add(
        "workspace.recorded",
        json!({"snapshot": {"missing": "not kept"}}),
    );

    log.add(
        "run.steered",
        json!({"effect": "1.0", "messages": [
            {"id": "m1", "from": person, "type": "steer", "text": "Leave out the returns, please."},
        ]}),
    );
    log.asks("1.1", 1, json!({"why": "the cheapest that takes tools"}))
        .add(
            "model.reply",
            json!({
                "effect": "1.1", "attempt": 1,
                "came": {"error": {"error": {
                    "error": "overloaded", "after_ms": 400, "message": "try again later",
                }}},
                "charged": {"tokens": 0, "cost": 0}, "took_ms": 310,
            }),
        )
        .asks(
            "1.1",
            2,
            json!({"model": "remote/large", "why": "local/small failed"}),
        )
        .replies("1.1", 2, 2_400, "Both files first.")
        .thinks("1.2", "Both files first.")
        .add(
            "branches.started",
            json!({"effect": "1.3", "form": "all", "branches": 2}),
        );
    for (branch, file) in [("1.3.1.1", "january.csv"), ("1.3.2.1", "february.csv")] {
        log.calls(branch, "read", json!({"path": file}))
            .add(
                "gate.verdict",
                json!({
                    "effect": branch,
                    "verdict": {"risk": "safe", "decision": "allow", "reasons": ["a read"]},
                }),
            )
            .add("tool.started", json!({"effect": branch, "attempt": 1}))
            .results(
                branch,
                "     1  product,units\n     2  apples,40\n     3  pears,12\n",
                json!({}),
            );
    }
    log.add(
        "value",
        json!({"effect": "1.4", "of": "random", "number": 7}),
    )
    .add(
        "screen.view",
        json!({
            "effect": "1.5", "session": "s", "documents": 1,
            "view": {"is": "the screen was lost: it ended by signal 9"}, "is_error": true,
        }),
    )
    .add(
        "tools.added",
        json!({
            "effect": "1.0", "names": ["srv__new"], "tools": {"is": []},
        }),
    )
    .add(
        "mandate.set",
        json!({
            "effect": "1.6", "text": "a = srv__send(to: anna@example.com)",
            "mandate": {"calls": [{
                "id": "a", "tool": "srv__send", "times": {"at_most": 1},
                "arguments": {"to": ["anna@example.com"]},
            }]},
        }),
    )
    .add(
        "takeover.started",
        json!({"by": {"surface": "command line", "id": "ada"}}),
    )
    .add(
        "takeover.ended",
        json!({
            "by": {"surface": "command line", "id": "ada"}, "took_ms": 61_000,
            "words": "I logged in",
        }),
    )
    .ends_cycle(1, "Half of your steps are used.")
    .add(
        "budget.warning",
        json!({"what": "tokens: 82,000 of 100,000"}),
    );
    log.0.barrier_blocking().unwrap();

    log.asks("2.1", 1, json!({}))
        .replies("2.1", 1, 3_100, "Something else than the thought.")
        .thinks("2.2", "The posting needs a yes.\n\nAnd the units need a second look, which a child run can have meanwhile.")
        .calls("2.3", "shell", json!({"command": "sh post.sh --once", "environment": {"DRY": 1}}))
        .add("gate.verdict", json!({
            "effect": "2.3",
            "paths": {"command": {
                "given": "post.sh", "real": "/home/anna/sales/post.sh", "in_workspace": "post.sh",
            }},
            "verdict": {"risk": "high", "decision": "ask", "reasons": ["runs a command"]},
        }))
        .add("approval.asked", json!({
            "effect": "2.3", "digest": "0".repeat(32),
            "card": {
                "sentence": "The tool `shell` wants to do something that needs your approval",
                "reasons": ["runs a command", "its outcome leaves this machine"],
                "details": [{"text": "command: sh post.sh --once", "from": "model"}],
            },
        }))
        .add("run.parked", json!({
            "ending": "waiting", "effect": "2.3", "question": "may it?", "spent": spent(2),
        }))
        .add("run.resumed", json!({
            "process": {"pid": 4711, "start_time": 1, "boot_id": "b"}, "set_aside_bytes": 63,
            "limits": {"steps": 40}, "mode": "ask", "on_ask": "wait", "pins": {},
        }))
        .add("approval.answered", json!({
            "effect": "2.3", "digest": "0".repeat(32), "approved": true, "by": person,
            "reason": "but only once",
        }))
        .add("tool.started", json!({"effect": "2.3", "attempt": 1}))
        .results("2.3", "\u{1b}[32mposted\u{1b}[0m 2 of \u{1b}[1m2\u{1b}[0m\n[exit code 0]", json!({
            "verdict": "changed",
            "artifacts": [{"path": "receipt.txt", "digest": "0".repeat(32)}],
            "images": [
                {"blob": picture, "media_type": "image/png", "width": 1, "height": 1},
                {"blob": picture, "media_type": "image/png", "width": 1, "height": 1},
                {"blob": not_a_picture, "media_type": "image/png", "width": 8, "height": 8},
                {"blob": BlobId::of(b"?"), "media_type": "image/png", "width": 8, "height": 8},
            ],
        }))
        .add("child.started", json!({
            "effect": EFFECT_OF_CHILD, "child": child, "goal": "Look at the units again.",
            "limits": {"steps": 3}, "digest": "0".repeat(32),
        }))
        .add("child.ended", json!({
            "effect": EFFECT_OF_CHILD, "child": child, "ending": "reached",
            "claim": {"reached": true, "answer": "The units are right."}, "spent": spent(1),
        }))
        .ends_cycle(2, "");

    log.add(
        "wait.started",
        json!({"effect": "3.1", "until_ms": 1_772_366_400_123_i64, "signal": "stock"}),
    )
    .add(
        "wait.ended",
        json!({"effect": "3.1", "payload": {"text": "full", "from": "stdin"}}),
    )
    .add(
        "branches.started",
        json!({"effect": "3.2", "form": "race", "branches": 2}),
    )
    .add("branches.won", json!({"effect": "3.2", "winner": 2}))
    .add("phase", json!({"effect": "3.3", "fact": "ordering"}))
    .add(
        "stock.seen",
        json!({"effect": "3.4", "fact": {"apples": 3}}),
    )
    .add(
        "approval.asked",
        json!({
            "effect": "3.5", "digest": "0".repeat(32),
            "card": {
                "sentence": "The agent asks you a question", "reasons": [], "question": true,
                "details": [{"text": "How many pears?", "from": "model"}],
            },
        }),
    )
    .add(
        "approval.answered",
        json!({
            "effect": "3.5", "digest": "0".repeat(32), "approved": false, "by": null,
        }),
    )
    .calls("3.6", "shell", json!("not an object"))
    .results(
        "3.6",
        "the arguments are not an object",
        json!({
            "settled": "refused", "is_error": true, "verdict": "refused",
        }),
    )
    .add(
        "run.handed_over",
        json!({"reason": "other prompts", "done": ["3.6"]}),
    )
    .add(
        "cycle.dropped",
        json!({"cycle": 3, "why": "its loop has changed"}),
    );

    log.asks("4.1", 1, json!({"purpose": "reflect"}))
        .replies("4.1", 1, 1_300, "What I would do otherwise: ask earlier.")
        .add(
            "reflection",
            json!({"effect": "4.2", "fact": "What I would do otherwise: ask earlier."}),
        )
        .calls(
            "4.3",
            "finish",
            json!({"reached": true, "answer": "Order 20 pears."}),
        )
        .results("4.3", "the claim is recorded", json!({}))
        .ends_cycle(4, "")
        .add(
            "run.ended",
            json!({
                "ending": "reached", "spent": spent(4),
                "claim": {
                    "reached": true, "answer": "Order 20 pears.",
                    "evidence": [{"what": "the receipt", "at": "receipt.txt"}],
                },
            }),
        );
    below(world, run, child);
    run
}

/// The child run of `everything`, and another run that goes its own way from its first step.
fn below(world: &World, run: RunId, child: RunId) {
    let log = world.log(child);
    let parent = json!({"parent": {"run": run, "effect": EFFECT_OF_CHILD, "depth": 1}});
    log.start(child, "Look at the units again.", parent)
        .thinks("1.1", "They are right.")
        // It claims to be its own parent's parent.
        .add("child.started", json!({
            "effect": "1.2", "child": run, "goal": "again", "limits": {}, "digest": "0".repeat(32),
        }))
        .ends_cycle(1, "")
        .add("run.ended", json!({
            "ending": "reached", "spent": spent(1),
            "claim": {"reached": true, "answer": "The units are right."},
        }));
    let fork = RunId::new();
    let from = json!({"forked_from": {"run": run, "cycle": 1, "head": "0".repeat(32)}});
    world.log(fork).start(fork, "Compare", from);
}

/// A picture of one grey pixel.
const PNG: &[u8] = &[
    0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0,
    0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0, 0x3a, 0x7e, 0x9b, 0x55, 0, 0, 0, 10, b'I', b'D', b'A', b'T',
    0x78, 0x9c, 0x63, 0x68, 0, 0, 0, 0x82, 0, 0x81, 0x77, 0xcd, 0x72, 0xb6, 0, 0, 0, 0, b'I', b'E',
    b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

/// The text of a page between two words, without its tags.
fn text(page: &str) -> String {
    let body = page.split_once("<body>").unwrap().1;
    words(body.split_once("<script>").unwrap().0)
}

fn words(body: &str) -> String {
    let pieces = body
        .split('<')
        .map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
    let words: Vec<&str> = pieces.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

#[test]
fn every_kind_of_entry_has_its_place() {
    let world = World::new();
    let run = everything(&world);
    let page = world.page(run);
    let text = text(&page);
    for words in [
        "Compare the sales of January and February",
        "the person added anna (command line)",
        "claimed The model says that the goal is reached; nobody else has checked it. Order 20 pears.",
        "evidence the receipt receipt.txt",
        "because the cheapest that takes tools",
        "! attempt 1 of asking the model failed: the model's provider is overloaded: try again later",
        "asks remote/large attempt 2 because local/small failed",
        "2,300 in, 100 out, 64 cached $0.0072 840 ms",
        "2 branches side by side",
        "gyrus tells the model",
        "! a limit is near: tokens: 82,000 of 100,000",
        "Something else than the thought.",
        "parked: waits",
        "resumed by process 4711; 63 unfinished bytes at the journal's end were set aside",
        "approved by anna (command line)",
        "but only once",
        "posted 2 of 2",
        "the same picture as before",
        "is not shown: its content is neither PNG, JPEG nor WebP",
        "is not shown: it cannot be read:",
        "child run",
        "at most 3 steps",
        "They are right.",
        "waits for the signal `stock` until 2026-03-01T12:00:00.123Z",
        "2 branches in a race",
        "branch 2 won",
        "phase",
        "&quot;apples&quot;: 3",
        "denied: nobody could be asked",
        "&quot;not an object&quot;",
        "refused",
        "a fresh step continues the run; 1 effect before it",
        "step 3 was abandoned",
        "its loop has changed",
        "reflection",
        "after step 1",
        "12 entries of the journal",
    ] {
        assert!(text.contains(words), "`{words}` is not in: {text}");
    }
    assert_eq!(
        page.matches("data:image/png;base64,").count(),
        1,
        "a picture is sent once"
    );
    assert_eq!(
        page.matches("class=\"run\"").count(),
        1,
        "a run stands on the page once"
    );
    assert_eq!(
        page.matches("Both files first.").count(),
        4,
        "in gist, thought and two raw entries"
    );
}

#[test]
fn every_kind_is_in_the_sample() {
    let world = World::new();
    let run = everything(&world);
    let reader = world.store.reader(&log_name(run)).unwrap();
    let kinds: Vec<String> = reader
        .entries(1)
        .unwrap()
        .map(|entry| entry.unwrap().kind)
        .collect();
    for kind in Entry::KINDS {
        assert!(kinds.iter().any(|have| have == kind), "{kind}");
    }
}

#[test]
fn a_long_run_is_folded_and_a_short_one_is_not() {
    let world = World::new();
    for (steps, open) in [(3, 3), (12, 12), (13, 4), (500, 4)] {
        let run = RunId::new();
        let log = world.log(run);
        log.start(run, "count", json!({}));
        for step in 1..=steps {
            log.thinks(&format!("{step}.1"), "on").ends_cycle(step, "");
        }
        drop(log);
        let page = world.page(run);
        let heads = page.matches("<summary><span class=\"number\"").count();
        let open_heads = page
            .matches(" open><summary><span class=\"number\"")
            .count();
        assert_eq!((heads, open_heads), (steps as usize, open));
        assert!(page.contains("Its process is gone and left it unfinished."));
    }
}

#[test]
fn damage_ends_the_page_and_is_told() {
    let world = World::new();
    let run = everything(&world);
    let folder = world.store.folder(&log_name(run));
    let segment = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    let wanted = b"january.csv";
    let place = bytes
        .windows(wanted.len())
        .position(|part| part == wanted)
        .unwrap();
    bytes[place] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let mut out = Vec::new();
    let damage = write(&world.store, run, &mut out).unwrap();
    assert!(damage.is_some());
    let page = String::from_utf8(out).unwrap();
    assert!(page.contains("This page shows what is before it.") && page.ends_with("</html>\n"));
    assert!(page.contains("Both files first."));
}

#[test]
fn a_stretch_is_drawn_at_every_zoom() {
    let world = World::new();
    let run = everything(&world);
    let reader = world.store.reader(&log_name(run)).unwrap();
    let end = reader.end().unwrap();
    let drawn = |zoom| rows(&reader, run, Stretch::Newest, zoom, end).unwrap();
    for (zoom, words, not) in [
        (Zoom::Cycles, "Both files first.", "january.csv"),
        (Zoom::Effects, "january.csv", "\"kind\""),
        (
            Zoom::Entries,
            "class=\"name\">cycle.dropped",
            "class=\"gist\"",
        ),
        (
            Zoom::Reading,
            "The posting needs a yes.",
            "<details class=\"step",
        ),
    ] {
        let drawn = drawn(zoom);
        assert!(drawn.html.contains(words), "{zoom:?}: {}", drawn.html);
        assert!(!drawn.html.contains(not), "{zoom:?}: {}", drawn.html);
        assert_eq!((drawn.first, drawn.more), (1, false), "{zoom:?}");
    }
    let entries = drawn(Zoom::Entries).html;
    assert_eq!(
        entries.matches("<div class=\"row entry\"").count() as u64,
        end
    );
    assert!(entries.contains(&format!("href=\"/api/runs/{run}/blobs/")));
    // The strip has each picture and the end of a process.
    let film = drawn(Zoom::Effects).film;
    assert_eq!(film.matches("<img ").count(), 4);
    assert_eq!(film.matches("class=\"seam\"").count(), 1);
}

#[test]
fn a_step_has_one_address_for_good() {
    let world = World::new();
    let run = everything(&world);
    let reader = world.store.reader(&log_name(run)).unwrap();
    let end = reader.end().unwrap();
    let mut numbers = Vec::new();
    for seq in 1..=end {
        let Some(step) = one_step(&reader, run, seq, end).unwrap() else {
            assert_eq!(seq, end, "only the end of the run is in no step");
            continue;
        };
        assert!((step.first..=step.last).contains(&seq));
        let known = one_step(&reader, run, step.first, end).unwrap().unwrap();
        assert_eq!(known.html, step.html, "{seq}");
        if numbers.last() != Some(&step.number) {
            numbers.push(step.number);
        }
        if step.number == 2 {
            // What was asked, decided and done stands on it, and what was seen after it.
            for words in [
                "/home/anna/sales/post.sh",
                "high risk",
                "approved by anna",
                "After",
            ] {
                assert!(step.html.contains(words), "{words}: {}", step.html);
            }
        }
    }
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert!(one_step(&reader, run, 0, end).unwrap().is_none());
    assert!(one_step(&reader, run, end + 1, end).unwrap().is_none());
}

#[test]
fn a_whole_run_has_its_outcome_its_cost_and_its_relatives() {
    let world = World::new();
    let run = everything(&world);
    let whole = WholeRun::read(&world.store, run).unwrap();
    let outcome = whole.outcome().0;
    assert!(outcome.contains("class=\"outcome claimed\""), "{outcome}");
    assert!(outcome.contains("None was made: what the run says is a claim."));
    let cost = words(&whole.cost().0);
    for words in [
        // The failed attempt is counted, and costs nothing.
        "next step local/small 3,000 100 $0.0093",
        "next step remote/large 2,300 100 $0.0072",
        "look back local/small 1,200 100 $0.0039",
        "Child runs used 1,200 tokens, $0.0036 beside it.",
        "where the time went",
        "tokens by step",
    ] {
        assert!(cost.contains(words), "`{words}` is not in: {cost}");
    }
    let relatives = whole.relatives().0;
    assert!(relatives.contains("/compare?runs="), "{relatives}");
    assert!(
        relatives.contains("Look at the units again."),
        "{relatives}"
    );
}
