//! Work that a judge outside accepts or rejects: real files, real commands, real judges, a scripted
//! model.

use std::{fs, net::TcpListener, path::Path, sync::Arc, thread};

use gyrus_contract::Strength;
use gyrus_kernel::{Ending, Entry, log_name};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    http::{self, Message},
    journal::{self, ending, facts},
    serving::allow,
    support::{Said, World},
};

/// A plan without a search.
pub(crate) const PLAN: &str = "[[reply]]\npurpose = \"plan\"\ntext = \"1. do it 2. submit it\"\n";

/// Reply of the model after the judge's yes.
pub(crate) const RIGHT: &str = "[[reply]]\npurpose = \"reflect\"\ntext = \"The rounding mattered: \
                                look at tolerance.rs first.\"\n";

/// A reply that calls one tool; `keys` are further keys of it.
pub(crate) fn calls(tool: &str, arguments: &str, keys: &str) -> String {
    format!(
        "[[reply]]\ntext = \"Now {tool}.\"\n{keys}\n\
         calls = [{{ tool = \"{tool}\", arguments = {{ {arguments} }} }}]\n"
    )
}

fn submit(keys: &str) -> String {
    calls("submit", "summary = \"It holds now.\"", keys)
}

/// A run that this judge decides about.
fn judged(world: &World, judge: &str, more: &[&str]) -> Said {
    let arguments = ["--loop", "engineer", "--judge", judge];
    world.run(&[&arguments, more].concat())
}

fn phases(world: &World) -> Vec<String> {
    let facts = facts(world, "phase");
    let words = facts.iter().filter_map(|fact| fact["text"].as_str());
    words.map(str::to_owned).collect()
}

fn verdicts(world: &World) -> Vec<bool> {
    let facts = facts(world, "judge.verdict");
    let said = facts.iter().filter_map(|fact| fact["accepted"].as_bool());
    said.collect()
}

/// The state that the last cycle left.
fn state(world: &World) -> Value {
    let ended = journal::entries(world)
        .into_iter()
        .rev()
        .find_map(|entry| match entry {
            Entry::CycleEnded(ended) => Some(json!(ended)["state"].clone()),
            _ => None,
        });
    let state = ended.expect("a cycle ended");
    // Checks stand around it.
    state.get("loop").cloned().unwrap_or(state)
}

/// A crate whose first fault everybody sees, and whose second one only shows when the first is
/// mended.
fn broken_crate(work: &Path) {
    let write = |name: &str, text: &str| {
        let path = work.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "Cargo.toml",
        "[package]\nname = \"scale\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    );
    write(
        "src/lib.rs",
        "pub fn double(value: i64) -> i64 {\n    value * 2 + \"x\"\n}\n\n\
         pub fn half(value: i64) -> i64 {\n    value / 2\n}\n\n\
         #[test]\nfn doubles() {\n    assert_eq!(double(4), 8);\n}\n\n\
         #[test]\nfn halves_round_away_from_zero() {\n    assert_eq!(half(5), 3);\n}\n",
    );
    write(
        "docs/rounding.md",
        "# Rounding\n\nThis project rounds halves away from zero: half of 5 is 3, of -5 is -3.\n\n\
         # Naming\n\nNames are English.\n",
    );
}

#[test]
fn work_that_the_model_only_speaks_of_is_judged() {
    let says = "[[reply]]\ntext = \"All of it is done.\"\n";
    let world = World::new(&(PLAN.to_owned() + &says.repeat(4) + RIGHT));
    let judge = "test -e done || { touch done; false; }";
    let said = judged(&world, judge, &[]).exits(0);
    assert_eq!(said.out, "All of it is done.\n");
    assert_eq!(verdicts(&world), [false, true]);
}

#[test]
fn a_failing_crate_is_made_to_pass() {
    let search = r#"[[reply]]
purpose = "plan"
text = "What is known?"
calls = [{ tool = "search_docs", arguments = { query = "rounding of half values", path = "docs" } }, { tool = "read_journal", arguments = { query = "tests pass" } }]
[[reply]]
purpose = "plan"
when = 'docs/rounding.md:1[\s\S]*half of 5 is 3[\s\S]*no run in this folder'
text = "1. mend double 2. run the tests 3. submit"
"#;
    let mends = [
        calls(
            "edit",
            r#"path = "src/lib.rs", old_text = ' + "x"', new_text = "" "#,
            "",
        ),
        submit(""),
        calls(
            "edit",
            r#"path = "src/lib.rs", old_text = "value / 2", new_text = "(value + value.signum()) / 2""#,
            r"when = 'halves_round_away_from_zero[\s\S]*rejected'",
        ),
        submit(""),
    ];
    let world = World::new(&format!("{search}{}{RIGHT}", mends.concat()));
    broken_crate(&world.work());
    let arguments = [
        "--loop",
        "engineer",
        "--judge",
        "cargo test --offline",
        "--docs",
        "docs",
        "--require",
        "checked",
    ];
    let said = world
        .with_compiler(&world.run_arguments(&arguments))
        .exits(0);
    assert_eq!(said.out, "It holds now.\n");
    assert!(
        said.err.contains("the judge rejected the work")
            && said.err.contains("• The rounding mattered"),
        "{}",
        said.err
    );
    assert_eq!(verdicts(&world), [false, true]);
    assert_eq!(
        phases(&world),
        [
            "planning",
            "executing",
            "validating",
            "executing",
            "validating"
        ]
    );
    let Ending::Reached { strength, claim } = ending(&world) else {
        panic!("{:?}", ending(&world));
    };
    assert_eq!(strength, Strength::Checked);
    assert!(claim.evidence[0].what.contains("cargo test"), "{claim:?}");
    let state = state(&world);
    assert_eq!(
        (&state["phase"], &state["steps"], &state["retries"]),
        (&json!("validating"), &json!(6), &json!(1)),
        "{state}"
    );
    assert_eq!(state["plan"], "1. mend double 2. run the tests 3. submit");
    // Each run has its trace beside its journal.
    let run = *world.runs().iter().max().unwrap();
    let trace = world
        .store()
        .folder(&log_name(run))
        .join("agent_trace.jsonl");
    let trace = fs::read_to_string(trace).unwrap();
    assert_eq!(trace, world.gyrus(&["trace", "last"]).exits(0).out);
    let steps: Vec<Value> = trace
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_steps: Vec<_> = steps
        .iter()
        .filter_map(|step| step["phase"].as_str())
        .collect();
    assert_eq!(
        of_steps
            .iter()
            .filter(|phase| **phase == "validating")
            .count(),
        2,
        "{of_steps:?}"
    );
    assert_eq!(
        (of_steps[0], of_steps.last()),
        ("planning", Some(&"validating"))
    );
    world.replays();
}

#[test]
fn the_journal_of_a_small_piece_of_work() {
    let script = [
        PLAN.to_owned(),
        submit(""),
        calls(
            "write",
            "path = \"done\", content = \"\"",
            "when = 'rejected'",
        ),
        submit(""),
        RIGHT.to_owned(),
    ];
    let world = World::new(&script.concat());
    let said = judged(&world, "test -f done", &[]).exits(0);
    insta::assert_snapshot!(world.mask(&said.err), @r"
    run [run] · engineer · script/scripted · [folder]/work
    · phase: planning
    · First the plan, in words. No folder with documents was named.
    • 1. do it 2. submit it
    • the plan: 1. do it 2. submit it
    · phase: executing
    · Now carry the plan out, step by step.
    • Now submit.
    · phase: validating
    → shell timeout_seconds=600 command=test -f done
    ← failed: (no output)
      [exit code 1]
    · the judge rejected the work: (no output)
      [exit code 1]
    · phase: executing
    · The judge rejected the work. Find out why, fix it, and submit again: 3 more submissions count.
    • Now write.
    → write content= path=done
    ← created `done` (0 bytes, 0 lines)
      diff --git a/done b/done
      new file mode 100644
    • Now submit.
    · phase: validating
    → shell timeout_seconds=600 command=test -f done
    ← (no output)
      [exit code 0]
    · the judge accepted the work
    • The rounding mattered: look at tolerance.rs first.
    ■ reached: the checks passed · 4 steps · [n] tokens · [time]
      evidence: the judge accepted it: test -f done (4.4)
      changed: done; gyrus diff, gyrus undo
    ");
    insta::assert_snapshot!(journal::lines(&world), @r"
    run.started
    workspace.recorded
    1.1 phase planning
    1.2 model.call Plan
    1.2 model.reply
    1.3 thought 1. do it 2. submit it
    1.4 engineer.plan
    1.5 phase executing
    cycle.ended
    2.1 model.call Agent
    2.1 model.reply
    2.2 thought Now submit.
    2.3 phase validating
    2.4 tool.call shell
    2.4 gate.verdict Allow
    2.4 tool.started
    2.4 tool.result
    2.5 judge.verdict the judge rejected the work: (no output) | [exit code 1]
    2.6 phase executing
    cycle.ended
    3.1 model.call Agent
    3.1 model.reply
    3.2 thought Now write.
    3.3 tool.call write
    3.3 gate.verdict Allow
    3.3 tool.started
    3.3 tool.result
    cycle.ended
    4.1 model.call Agent
    4.1 model.reply
    4.2 thought Now submit.
    4.3 phase validating
    4.4 tool.call shell
    4.4 gate.verdict Allow
    4.4 tool.started
    4.4 tool.result
    4.5 judge.verdict the judge accepted the work
    4.6 model.call Reflect
    4.6 model.reply
    4.7 engineer.went_right The rounding mattered: look at tolerance.rs first.
    cycle.ended
    run.ended
    ");
}

#[test]
fn later_runs_find_what_went_right() {
    let look = |when: &str| {
        format!(
            "[[reply]]\npurpose = \"plan\"\ntext = \"?\"\ncalls = [{{ tool = \"read_journal\", \
             arguments = {{ query = \"rounding\" }} }}]\n[[reply]]\npurpose = \"plan\"\n\
             when = '{when}'\ntext = \"submit\"\n"
        )
    };
    let world = World::new(&format!("{PLAN}{}{RIGHT}", submit("")));
    judged(&world, "true", &[]).exits(0);
    let before =
        r"goal: say hello[\s\S]*It holds now\.[\s\S]*what went right: The rounding mattered";
    let script = format!("{}{}{RIGHT}", look(before), submit(""));
    fs::write(world.path("script.toml"), &script).unwrap();
    judged(&world, "true", &[]).exits(0);
    // Of another folder, nothing is told.
    fs::create_dir(world.path("elsewhere")).unwrap();
    let script = format!("{}{}{RIGHT}", look("no run in this folder"), submit(""));
    fs::write(world.path("script.toml"), &script).unwrap();
    let elsewhere = world.path("elsewhere").display().to_string();
    let arguments = [
        "run",
        "say hello",
        "--judge",
        "true",
        "--workdir",
        &elsewhere,
    ];
    world.gyrus(&arguments).exits(0);
}

#[test]
fn three_retries_and_an_honest_end() {
    let tries = [
        calls("finish", "reached = true, answer = \"I am done.\"", ""),
        submit("when = 'only the judge says'"),
        submit("when = '3 more submissions'"),
        submit("when = '2 more submissions'"),
        submit("when = 'the next submission is the last'"),
    ];
    let world = World::new(&format!("{PLAN}{}", tries.concat()));
    let said = judged(&world, "echo 'net 7 is open'; exit 3", &[]).exits(1);
    assert!(
        said.err.contains("rejected the work 4 times") && said.err.contains("net 7 is open"),
        "{}",
        said.err
    );
    assert_eq!(verdicts(&world), [false; 5]);
    assert_eq!(state(&world)["retries"], 3);
    assert!(
        state(&world)["last_error"]
            .as_str()
            .unwrap()
            .contains("net 7 is open")
    );
    assert!(facts(&world, "engineer.went_right").is_empty());
    world.replays();
}

#[test]
fn a_judge_that_is_not_there_rejects_nothing() {
    let tried = calls("submit", "summary = \"s\", submission = \"it\"", "");
    let world = World::new(&format!("{PLAN}{}", tried.repeat(4)));
    // Nobody listens on a port that was just given back.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let judge = format!("http://{}/", port.unwrap());
    let said = judged(&world, &judge, &[]).exits(1);
    assert!(
        said.err.contains("no verdict came from the judge"),
        "{}",
        said.err
    );
    assert_eq!(state(&world)["retries"], 0);
}

#[test]
fn a_model_may_say_that_it_cannot_be_done() {
    let no = calls(
        "finish",
        "reached = false, answer = \"There is no net 7.\"",
        "",
    );
    let world = World::new(&format!("{PLAN}{no}"));
    let said = judged(&world, "true", &[]).exits(1);
    assert!(
        format!("{said:?}").contains("There is no net 7."),
        "{said:?}"
    );
    assert!(verdicts(&world).is_empty());
}

#[test]
fn planning_changes_nothing() {
    let write = calls(
        "write",
        "path = \"early\", content = \"x\"",
        "purpose = \"plan\"",
    );
    let plan = PLAN.replace("text =", "when = 'cannot be used in this phase'\ntext =");
    let world = World::new(&format!("{write}{plan}{}{RIGHT}", submit("")));
    judged(&world, "true", &[]).exits(0);
    assert!(!world.work().join("early").exists());
}

#[test]
fn who_begins_without_a_plan_is_asked_for_it_alone() {
    let write = |content: &str, purpose: &str| {
        let arguments = format!("path = \"done\", content = \"{content}\"");
        calls("write", &arguments, &format!("purpose = \"{purpose}\""))
    };
    let plan = "[[reply]]\npurpose = \"plan\"\ntext = '{\"plan\": \"1. write it\"}'\n";
    let (begins, works) = (write("1", "plan"), write("2", "agent"));
    let world = World::new(&[&begins, plan, &works, &submit(""), RIGHT].concat());
    let said = judged(&world, "grep -q 2 done", &[]).exits(0);
    assert!(said.err.contains("the plan: 1. write it\n"), "{said:?}");
    assert_eq!(world.file("done"), "2");
    // The plan cost no turn of its own.
    assert_eq!(state(&world)["steps"], 3);
}

#[test]
fn what_stands_behind_a_submission_in_its_reply_is_not_done() {
    let both = r#"[[reply]]
text = "Both."
calls = [{ tool = "submit", arguments = { summary = "s" } }, { tool = "write", arguments = { path = "late", content = "x" } }]
"#;
    let world = World::new(&format!("{PLAN}{both}{RIGHT}"));
    judged(&world, "true", &[]).exits(0);
    assert!(!world.work().join("late").exists());
}

#[test]
fn checks_stand_around_the_judge() {
    let replies = [
        submit(""),
        calls(
            "write",
            "path = \"proof\", content = \"x\"",
            "when = 'submit to the judge again'",
        ),
        submit(""),
    ];
    let world = World::new(&format!("{PLAN}{}{RIGHT}", replies.concat()));
    judged(&world, "true", &["--check", "test -s proof"]).exits(0);
    assert_eq!(verdicts(&world), [true, true]);
    // What went right is said once, at the end.
    assert_eq!(facts(&world, "engineer.went_right").len(), 1);
    world.replays();
}

#[test]
fn a_command_shows_the_pictures_that_it_makes() {
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let judge = format!("mkdir -p out; echo {png} | base64 -d > out/plot.png; test -e mended");
    let replies = [
        submit(""),
        calls(
            "write",
            "path = \"mended\", content = \"x\"",
            "when = 'picture: out/plot.png'",
        ),
        submit(""),
    ];
    let world = World::new(&format!("{PLAN}{}{RIGHT}", replies.concat()));
    judged(&world, &judge, &["--judge-images", "out/*.png"]).exits(0);
    let seen = facts(&world, "judge.verdict");
    assert_eq!(
        (&seen[0]["images"], &seen[0]["accepted"]),
        (&json!(1), &json!(false))
    );
    world.replays();
}

#[test]
fn a_fork_goes_on_with_the_plan_and_is_judged_itself() {
    let replies = [
        calls("write", "path = \"mended\", content = \"x\"", ""),
        submit(""),
    ];
    let world = World::new(&format!("{PLAN}{}{RIGHT}", replies.concat()));
    judged(&world, "test -s mended", &[]).exits(0);
    let fork = world.path("fork");
    let into = fork.to_str().unwrap();
    world
        .gyrus(&["fork", "last", "--at", "1", "--workdir", into])
        .exits(0);
    assert_eq!(fs::read_to_string(fork.join("mended")).unwrap(), "x");
    assert_eq!(verdicts(&world), [true]);
    assert_eq!(state(&world)["plan"], "1. do it 2. submit it");
}

/// A judge over HTTP: two blocks must not overlap.
fn service(heard: Arc<Mutex<Vec<Value>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/judge", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let Ok(request) = Message::read(&stream) else {
                continue;
            };
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let design: Value = body["submission"]
                .as_str()
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or_default();
            let apart =
                (design["b"].as_i64().unwrap_or(0) - design["a"].as_i64().unwrap_or(0)).abs() >= 10;
            let report = if apart {
                "clean"
            } else {
                "blocks a and b overlap"
            };
            heard.lock().push(body);
            let verdict = json!({"accepted": apart, "report": report});
            let _ = http::answer(&stream, 200, "application/json", &verdict.to_string());
        }
    });
    address
}

#[test]
fn a_service_judges_what_it_is_sent() {
    let heard = Arc::default();
    let address = service(Arc::clone(&heard));
    let replies = [
        calls(
            "submit",
            r#"summary = "s", submission = '{"a": 0, "b": 5}'"#,
            "",
        ),
        calls(
            "submit",
            r#"summary = "They are apart.", submission = '{"a": 0, "b": 12}'"#,
            "when = 'blocks a and b overlap'",
        ),
    ];
    let world = World::new(&format!("{PLAN}{}{RIGHT}", replies.concat()));
    let said = judged(&world, &address, &[]).exits(0);
    assert_eq!(said.out, "They are apart.\n");
    assert_eq!(verdicts(&world), [false, true]);
    let heard: Vec<Value> = heard.lock().clone();
    assert_eq!(heard.len(), 2);
    assert_eq!(heard[0]["goal"], "say hello");
    world.replays();
}

/// The address of a judge is the person's: a model sends nothing to another one.
#[test]
fn nobody_else_is_sent_a_submission() {
    let heard = Arc::default();
    let address = service(Arc::clone(&heard));
    let sends = calls(
        "judge",
        &format!("url = \"{address}\", submission = {{}}"),
        "",
    );
    let no = calls("finish", "reached = false, answer = \"no\"", "");
    let world = World::new(&format!("{sends}{no}"));
    let said = world.run(&["--loop", "react"]);
    assert_ne!(said.code, Some(0), "{said:?}");
    assert!(heard.lock().is_empty());
}

/// A judge of layouts, as a server: it shows a picture of what is wrong.
const LAYOUT: &str = r#"say() { printf '%s\n' "$1"; }
answer() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
png=iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
while IFS= read -r line; do
    id=none
    [[ $line =~ \"id\":([0-9]+) ]] && id=${BASH_REMATCH[1]}
    case $line in
        *'"method":"initialize"'*)
            answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"layout","version":"1"}}' ;;
        *'"method":"tools/list"'*)
            answer '{"tools":[{"name":"submit_design","description":"judges a layout","inputSchema":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}}]}' ;;
        *'"method":"tools/call"'*)
            [[ $line =~ \"a\":([0-9]+) ]]; a=${BASH_REMATCH[1]}
            [[ $line =~ \"b\":([0-9]+) ]]; b=${BASH_REMATCH[1]}
            if (( b - a >= 10 )); then
                answer '{"content":[{"type":"text","text":"{\"accepted\":true,\"report\":\"no violations\"}"}]}'
            else
                answer "{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"accepted\\\":false,\\\"report\\\":\\\"a overlaps b by $(( 10 - b + a ))\\\"}\"},{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"$png\"}]}"
            fi ;;
    esac
done
"#;

#[test]
fn a_servers_tool_judges_a_layout_and_shows_a_picture() {
    let replies = [
        calls("cad__submit_design", "a = 0, b = 4", ""),
        calls(
            "cad__submit_design",
            "a = 0, b = 10",
            "when = 'a overlaps b by 6'",
        ),
    ];
    let world = World::new(&format!("{PLAN}{}{RIGHT}", replies.concat()));
    fs::write(world.work().join("layout.sh"), LAYOUT).unwrap();
    fs::create_dir(world.path("home")).unwrap();
    let configuration = "[mcp.cad]\ncommand = \"bash\"\nargs = [\"layout.sh\"]\n";
    fs::write(world.path("home/config.toml"), configuration).unwrap();
    allow(&world, "cad__*");
    judged(&world, "mcp:cad__submit_design", &[]).exits(0);
    let seen = facts(&world, "judge.verdict");
    assert_eq!(verdicts(&world), [false, true]);
    assert_eq!(seen[0]["images"], 1);
    assert_eq!(
        facts(&world, "engineer.went_right")[0]["text"],
        "The rounding mattered: look at tolerance.rs first."
    );
    world.replays();
}

#[test]
fn mistakes_are_named() {
    let world = World::new("");
    for (arguments, words) in [
        (&["--loop", "engineer"][..], "needs a judge"),
        (&["--loop", "react", "--judge", "true"], "asks none"),
        (&["--docs", "docs"], "--docs is for work that a judge"),
        (&["--judge", "mcp:"], "invalid judge"),
        (
            &["--judge", "true", "--docs", "papers"],
            "the documents' folder `papers` is not there",
        ),
        (
            &["--judge", "true", "--review", "plan"],
            "leave one of the two out",
        ),
    ] {
        world.run(arguments).exits(2).says(words);
    }
    assert!(world.runs().is_empty());
}
