//! Approvals under crashes and time: a yes lets one thing happen, once, while it counts.

use std::{collections::BTreeMap, fs, os::unix::fs::symlink, os::unix::process::ExitStatusExt};

use gyrus_contract::{Decision, Principal};
use gyrus_kernel::{APPROVAL_REFUSED, ApprovalAnswered, ApprovalAsked, CallEnd, Entry, log_name};
use rustix::process::Signal;

use crate::support::{Said, World, said};

/// One critical write, and one command that is not to be repeated; then the end. Told that
/// something was interrupted, the model does it again.
const TWO_QUESTIONS: &str = r#"
[[reply]]
calls = [{ tool = "write", arguments = { path = ".envrc", content = "hello\n" } }]
[[reply]]
calls = [{ tool = "shell", arguments = { command = "echo once >> plain" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;

const WRITES: &str = r#"
[[reply]]
calls = [{ tool = "write", arguments = { path = ".envrc", content = "hello\n" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "the end" } }]
"#;

fn questions(entries: &[Entry]) -> Vec<&ApprovalAsked> {
    let asked = entries.iter().filter_map(|entry| match entry {
        Entry::ApprovalAsked(asked) => Some(asked),
        _ => None,
    });
    asked.collect()
}

fn answers(entries: &[Entry]) -> Vec<&ApprovalAnswered> {
    let answered = entries.iter().filter_map(|entry| match entry {
        Entry::ApprovalAnswered(answered) => Some(answered),
        _ => None,
    });
    answered.collect()
}

/// Returns the reasons why answers did not count, as the journal has it.
fn refused(entries: &[Entry]) -> Vec<String> {
    let refused = entries.iter().filter_map(|entry| match entry {
        Entry::Noted { kind, fact, .. } if kind == APPROVAL_REFUSED => {
            Some(fact.fact["text"].as_str().unwrap().to_owned())
        }
        _ => None,
    });
    refused.collect()
}

fn settled(entries: &[Entry]) -> Vec<CallEnd> {
    let settled = entries.iter().filter_map(|entry| match entry {
        Entry::ToolResulted(result) => Some(result.settled),
        _ => None,
    });
    settled.collect()
}

/// Since its last verdict that asks, each start has a yes of its own, and no yes two.
fn check_one_yes_one_start(entries: &[Entry], context: &str) {
    let mut leave: BTreeMap<String, (Decision, u32)> = BTreeMap::new();
    for entry in entries {
        match entry {
            Entry::GateVerdict(judged) => {
                leave.insert(judged.effect.to_string(), (judged.verdict.decision, 0));
            }
            Entry::ApprovalAnswered(answered) => {
                let (_, yes) = leave.get_mut(&answered.effect.to_string()).unwrap();
                *yes = u32::from(answered.approved);
            }
            Entry::ToolStarted(started) => {
                let (decision, yes) = leave.get_mut(&started.effect.to_string()).unwrap();
                if *decision == Decision::Ask {
                    assert_eq!(
                        *yes, 1,
                        "{context}: {} starts without a yes",
                        started.effect
                    );
                    *yes = 0;
                }
                assert_ne!(*decision, Decision::Deny, "{context}");
            }
            _ => {}
        }
    }
}

fn last_entry(world: &World) -> u64 {
    let reader = world.store().reader(&log_name(world.runs()[0])).unwrap();
    reader.end().unwrap()
}

/// Resumes, killed as soon as `more` entries of the resuming process are on disk.
fn resume_killed_after(world: &World, more: u64) -> Said {
    let after = last_entry(world) + more;
    let mut command = world.command(&["resume", "last", "--on-ask", "park"]);
    command.env("GYRUS_CRASH_AFTER", after.to_string());
    let output = command.output().unwrap();
    let killed = output.status.signal() == Some(9);
    let mut said = said(output);
    said.code = said.code.filter(|_| !killed);
    said
}

/// Answers with yes and resumes until the run is over.
fn to_the_end(world: &World, context: &str) {
    for _ in 0..10 {
        let said = world.gyrus(&["resume", "last", "--on-ask", "park"]);
        match said.code {
            Some(5) => {
                world.gyrus(&["approve", "last"]);
            }
            Some(0) => return,
            _ => panic!("{context}: {said:?}"),
        }
    }
    panic!("{context}: it asks for ever");
}

/// Killed after every entry, from the first question on, with a yes that was given before.
#[test]
fn killed_anywhere_around_a_yes_it_happens_once() {
    let policy = "[[rule]]\ndecide = \"ask\"\nwhy = \"mine\"\ncommand = [\"echo\"]\n";
    let (mut kills, mut again, mut interrupted) = (0, 0, 0);
    for more in 1..=24 {
        let world = World::new(TWO_QUESTIONS);
        fs::create_dir_all(world.path("home")).unwrap();
        fs::write(world.path("home/policy.toml"), policy).unwrap();
        world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
        world.gyrus(&["approve", "last"]).exits(0);
        // The second question is answered before the kill, too, where it comes to that.
        if more > 12 {
            world.gyrus(&["resume", "last"]).exits(5);
            world.gyrus(&["approve", "last"]).exits(0);
        }
        let more = if more > 12 { more - 12 } else { more };
        let killed = resume_killed_after(&world, more).code.is_none();
        let context = format!("killed after {more} more");
        kills += u32::from(killed);
        let ended = matches!(world.entries().last(), Some(Entry::RunEnded(_)));
        if !ended {
            to_the_end(&world, &context);
        }
        let entries = world.entries();
        check_one_yes_one_start(&entries, &context);
        let cut_off = settled(&entries).contains(&CallEnd::Interrupted);
        interrupted += u32::from(cut_off);
        again += u32::from(questions(&entries).iter().any(|asked| asked.asking > 1));
        let file = world.file(".envrc") + &world.file("plain");
        let right = file == "hello\nonce\n" || (cut_off && file == "hello\n");
        assert!(right, "{context}: {file:?}");
        let replayed = world.gyrus(&["replay", "last"]).exits(0).out;
        assert!(replayed.contains("0 differences"), "{context}: {replayed}");
        assert_eq!(refused(&entries), Vec::<String>::new(), "{context}");
    }
    eprintln!("{kills} kills, asked again in {again}, interrupted in {interrupted}");
    assert!(kills >= 12, "{kills}");
}

/// The write has happened, and the process dies before it can say so.
#[test]
fn what_happened_is_found_and_not_asked_again() {
    for undone in [false, true] {
        let world = World::new(WRITES);
        world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
        world.gyrus(&["approve", "last"]).exits(0);
        // Taken up, answered, started.
        resume_killed_after(&world, 3);
        let started = |entry: &Entry| matches!(entry, Entry::ToolStarted(_));
        if !world.entries().iter().any(started) {
            panic!("{:?}", world.entries());
        }
        let settled_in_time = !settled(&world.entries()).is_empty();
        if undone {
            let _ = fs::remove_file(world.work().join(".envrc"));
        } else {
            fs::write(world.work().join(".envrc"), "hello\n").unwrap();
        }
        let over = matches!(world.entries().last(), Some(Entry::RunEnded(_)));
        if over || settled_in_time {
            continue;
        }
        let code = if undone { 5 } else { 0 };
        let said = world
            .gyrus(&["resume", "last", "--on-ask", "park"])
            .exits(code);
        let entries = world.entries();
        let asked = questions(&entries);
        if undone {
            // It may have happened once on that yes, so it is asked about.
            assert_eq!(world.file(".envrc"), "");
            assert_eq!(asked.last().unwrap().asking, 2);
            assert!(said.err.contains("cut off by a crash"), "{}", said.err);
            world.gyrus(&["approve", "last"]).exits(0);
            world.gyrus(&["resume", "last"]).exits(0);
        } else {
            assert_eq!(asked.len(), 1);
        }
        assert_eq!(world.file(".envrc"), "hello\n");
        check_one_yes_one_start(&world.entries(), "after the start");
    }
}

fn configure(world: &World, text: &str) {
    fs::create_dir_all(world.path("home")).unwrap();
    fs::write(world.path("home/config.toml"), text).unwrap();
}

/// Waits until the last question has expired.
fn wait_until_expired(world: &World) {
    let entries = world.entries();
    let valid = questions(&entries).last().unwrap().valid;
    let now = || {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        i64::try_from(since.as_millis()).unwrap()
    };
    while !valid.is_over(now()) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn an_answer_after_its_time_does_not_count() {
    let world = World::new(WRITES);
    configure(&world, "[approvals]\nexpires = \"300ms\"\n");
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    wait_until_expired(&world);
    for verb in ["approve", "deny"] {
        world
            .gyrus(&[verb, "last"])
            .exits(2)
            .says("the question 1.2 of run")
            .says("has expired")
            .says("to be asked anew: gyrus resume");
    }
    let listed = world.gyrus(&["approvals"]).exits(0).out;
    assert!(listed.contains("expired; to be asked anew"), "{listed}");
    world
        .gyrus(&["approvals", "answer"])
        .exits(0)
        .says("0 answered");
    // Asked anew under another name; the old name is void.
    configure(&world, "");
    world
        .gyrus(&["resume", "last"])
        .exits(5)
        .says("approval 1.2-2")
        .says("1.2-2`");
    world
        .gyrus(&["approve", "last", "1.2"])
        .exits(2)
        .says("the card 1.2 of run")
        .says("it was asked anew, as 1.2-2");
    assert_eq!(world.file(".envrc"), "");
    world.gyrus(&["approve", "last", "1.2-2"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(world.file(".envrc"), "hello\n");
    world.replays();
}

/// The inbox is a folder: the run itself judges what it finds there.
#[test]
fn a_yes_that_waited_in_the_inbox_too_long_is_refused_by_the_run() {
    let world = World::new(WRITES);
    configure(&world, "[approvals]\nexpires = \"2s\"\n");
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    world
        .gyrus(&["approve", "last"])
        .exits(0)
        .says("the yes counts for another");
    wait_until_expired(&world);
    configure(&world, "");
    world
        .gyrus(&["resume", "last"])
        .exits(5)
        .says("a yes of tester does not count: it answers an earlier card");
    assert_eq!(world.file(".envrc"), "");
    assert_eq!(refused(&world.entries()).len(), 1);
    let inbox = world.store().inbox(&log_name(world.runs()[0])).unwrap();
    assert_eq!(inbox.messages().unwrap(), []);
    world.gyrus(&["approve", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(world.file(".envrc"), "hello\n");
}

#[test]
fn a_run_that_waits_in_place_parks_when_its_question_expires() {
    let world = World::new(WRITES);
    configure(&world, "[approvals]\nexpires = \"200ms\"\n");
    let said = world.gyrus(&["run", "go", "--on-ask", "wait"]).exits(5);
    assert!(said.err.contains("waits for an answer"), "{}", said.err);
    assert_eq!(
        questions(&world.entries()).len(),
        1,
        "one question, one entry"
    );
}

const DENIES: &str =
    "[[rule]]\ndecide = \"deny\"\nwhy = \"not on my machine\"\npath = \".envrc\"\n";

#[test]
fn a_policy_tightened_while_parked_wins_over_the_yes() {
    // Before the answer is taken up, and after it was recorded.
    for crash in [false, true] {
        let world = World::new(WRITES);
        world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
        world.gyrus(&["approve", "last"]).exits(0);
        if crash {
            resume_killed_after(&world, 2);
            if settled(&world.entries()).contains(&CallEnd::Done) {
                continue;
            }
        }
        fs::write(world.path("home/policy.toml"), DENIES).unwrap();
        let started = |entries: &[Entry]| {
            let starts = entries
                .iter()
                .filter(|e| matches!(e, Entry::ToolStarted(_)));
            starts.count()
        };
        if started(&world.entries()) > 0 {
            continue;
        }
        world
            .gyrus(&["resume", "last"])
            .exits(0)
            .says("not on my machine");
        assert_eq!(world.file(".envrc"), "");
        let entries = world.entries();
        assert_eq!(settled(&entries)[0], CallEnd::Refused);
        let verdicts = entries.iter().filter_map(|entry| match entry {
            Entry::GateVerdict(judged) => Some(judged.verdict.decision),
            _ => None,
        });
        let verdicts: Vec<_> = verdicts.take(2).collect();
        assert_eq!(verdicts, [Decision::Ask, Decision::Deny]);
        // The yes stands in the journal either way, and that it was overruled.
        assert_eq!(answers(&entries).len() + refused(&entries).len(), 1);
        let inbox = world.store().inbox(&log_name(world.runs()[0])).unwrap();
        assert_eq!(inbox.messages().unwrap(), []);
        let replayed = world.gyrus(&["replay", "last"]).exits(0).out;
        assert!(replayed.contains("0 differences"), "{replayed}");
    }
}

/// The process that waits began under the old policy.
#[test]
fn a_policy_tightened_while_a_run_waits_in_place_wins_over_the_yes() {
    for (policy, told) in [
        (DENIES, "not on my machine"),
        ("[[rule]]\ndecide = \"dny\"\n", "policy.toml"),
    ] {
        let world = World::new(WRITES);
        let running = world.start(&["run", "go", "--on-ask", "wait"]);
        world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));
        fs::write(world.path("home/policy.toml"), policy).unwrap();
        world.gyrus(&["approve", "last"]).exits(0);
        let said = running.end().exits(0).says(told);
        assert_eq!(world.file(".envrc"), "", "{said:?}");
        assert_eq!(answers(&world.entries()).len(), 1);
    }
}

#[test]
fn the_latch_set_after_the_yes_wins_over_it() {
    let world = World::new(WRITES);
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    world.gyrus(&["approve", "last"]).exits(0);
    fs::write(world.path("home/stopped"), "").unwrap();
    world.gyrus(&["resume", "last"]).exits(4);
    assert_eq!(world.file(".envrc"), "");
    world.gyrus(&["rearm", "--yes"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(world.file(".envrc"), "hello\n");
}

/// Writes through a link that is turned between the question and the yes.
#[test]
fn a_link_that_leads_elsewhere_now_is_asked_about_again() {
    let script = WRITES.replace("\".envrc\"", "\"there/.envrc\"");
    for in_place in [false, true] {
        let world = World::new(&script);
        for name in ["one", "two"] {
            fs::create_dir(world.work().join(name)).unwrap();
        }
        let link = world.work().join("there");
        symlink("one", &link).unwrap();
        let turn = || {
            fs::remove_file(&link).unwrap();
            symlink("two", &link).unwrap();
        };
        if in_place {
            let mut running = world.start(&["run", "go", "--on-ask", "wait"]);
            world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));
            turn();
            world.gyrus(&["approve", "last", "1.2"]).exits(0);
            running.hears("approval 1.2-2");
            world.wait_for(
                |entry| matches!(entry, Entry::ApprovalAsked(asked) if asked.asking == 2),
            );
            assert_eq!(world.file("one/.envrc") + &world.file("two/.envrc"), "");
            // The old name no longer names anything.
            world
                .gyrus(&["approve", "last", "1.2"])
                .exits(2)
                .says("is void");
            world.gyrus(&["approve", "last", "1.2-2"]).exits(0);
            running.end().exits(0);
        } else {
            world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
            world.gyrus(&["approve", "last"]).exits(0);
            turn();
            world
                .gyrus(&["resume", "last"])
                .exits(5)
                .says("two/.envrc")
                .says("does not count");
            assert_eq!(world.file("one/.envrc") + &world.file("two/.envrc"), "");
            world.gyrus(&["approve", "last"]).exits(0);
            world.gyrus(&["resume", "last"]).exits(0);
        }
        assert_eq!(world.file("two/.envrc"), "hello\n");
        assert_eq!(world.file("one/.envrc"), "");
        assert_eq!(questions(&world.entries()).len(), 2);
    }
}

/// Number of times that two people answer at once. The race is real, so more rounds find more.
const ROUNDS: usize = 12;

#[test]
fn of_two_answers_at_once_one_counts_and_both_are_told_so() {
    let (mut yes, mut no) = (0, 0);
    for round in 0..ROUNDS {
        let world = World::new(WRITES);
        // Parked, and while a run waits, which takes the answer at once.
        let waiting = round % 3 == 2;
        let running = if waiting {
            let running = world.start(&["run", "go", "--on-ask", "wait"]);
            world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));
            Some(running)
        } else {
            world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
            None
        };
        let verbs = ["approve", "deny", "approve", "deny"];
        let all: Vec<_> = verbs
            .iter()
            .enumerate()
            .map(|(who, verb)| {
                let mut command = world.command(&[verb, "last"]);
                command.env("USER", format!("person{who}"));
                command
                    .stdout(std::process::Stdio::piped())
                    .stderr(std::process::Stdio::piped());
                command.spawn().unwrap()
            })
            .collect();
        let all: Vec<Said> = all
            .into_iter()
            .map(|child| said(child.wait_with_output().unwrap()))
            .collect();
        let won: Vec<usize> = (0..verbs.len())
            .filter(|who| all[*who].code == Some(0))
            .collect();
        assert_eq!(won.len(), 1, "{all:#?}");
        match running {
            Some(running) => running.end().exits(0),
            None => world.gyrus(&["resume", "last"]).exits(0),
        };
        let entries = world.entries();
        let [answered] = answers(&entries)[..] else {
            panic!("{entries:#?}");
        };
        let winner = won[0];
        let approved = verbs[winner] == "approve";
        assert_eq!(answered.approved, approved);
        let by = Principal {
            surface: "command line".to_owned(),
            id: format!("person{winner}"),
        };
        assert_eq!(answered.by, Some(by));
        for (who, said) in all.iter().enumerate().filter(|(who, _)| *who != winner) {
            assert_eq!(said.code, Some(2), "person{who}: {said:?}");
            let verb = if approved { "approved" } else { "denied" };
            let told = format!("has its answer already: {verb} by person{winner}");
            let over = said.err.contains("asks nothing");
            assert!(
                said.err.contains(&told) || (waiting && over),
                "person{who}: {said:?}"
            );
        }
        assert_eq!(world.file(".envrc").is_empty(), !approved);
        assert_eq!(refused(&entries), Vec::<String>::new());
        let count = if approved { &mut yes } else { &mut no };
        *count += 1;
    }
    eprintln!("{yes} times yes, {no} times no");
}

/// Whoever holds a turn and is suspended holds up nobody for long.
#[test]
fn an_answer_that_is_killed_leaves_the_question_open() {
    let world = World::new(WRITES);
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    let folder = world.store().folder(&log_name(world.runs()[0]));
    let turn = fs::File::open(folder).unwrap();
    turn.lock().unwrap();
    let answering = world.start(&["approve", "last"]);
    answering.signal(Signal::KILL);
    assert_eq!(answering.end().code, None);
    drop(turn);
    world.gyrus(&["deny", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(world.file(".envrc"), "");
}

#[test]
fn a_command_of_the_person_is_told_that_a_run_waits() {
    let world = World::new(WRITES);
    let told = world.path("told.txt");
    let notify = format!(
        "[approvals]\nnotify = 'cat >> {0}; {1} approve last >> {0} 2>&1'\n",
        told.display(),
        env!("CARGO_BIN_EXE_gyrus")
    );
    configure(&world, &notify);
    let said = world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    // It can tell, but not answer.
    assert!(
        said.err.contains("warning: the command of `notify`"),
        "{said:?}"
    );
    let text = fs::read_to_string(&told).unwrap();
    let mut lines = text.lines();
    let json: serde_json::Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    let run = world.runs()[0].to_string();
    let short = &run[run.len() - 8..];
    assert_eq!(
        json,
        serde_json::json!({
            "run": run,
            "question": "1.2",
            "risk": "high",
            "headline": "the tool `write` needs your approval",
            "answer": format!("gyrus approve {short} 1.2"),
        })
    );
    assert!(
        lines
            .next()
            .unwrap()
            .contains("a command of a run cannot answer")
    );
    // Taken up again, the same question is not announced again.
    world.gyrus(&["resume", "last"]).exits(5);
    assert_eq!(fs::read_to_string(&told).unwrap(), text);
    assert_eq!(world.file(".envrc"), "");
}

#[test]
fn a_command_that_fails_or_is_no_command_changes_nothing() {
    for (notify, warned) in [
        ("exit 3", "failed with code 3"),
        ("kill -9 $$", "ended by signal 9"),
        ("no-such-command", "failed with code 127"),
    ] {
        let world = World::new(WRITES);
        configure(&world, &format!("[approvals]\nnotify = '{notify}'\n"));
        let running = world.start(&["run", "go", "--on-ask", "wait"]);
        world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));
        world.gyrus(&["approve", "last"]).exits(0);
        running.end().exits(0).says(warned);
        assert_eq!(world.file(".envrc"), "hello\n");
    }
    // A project cannot name one.
    let world = World::new(WRITES);
    fs::create_dir(world.work().join(".gyrus")).unwrap();
    let text = "[approvals]\nnotify = 'touch told'\n";
    fs::write(world.work().join(".gyrus/config.toml"), text).unwrap();
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    assert_eq!(world.file("told"), "");
    fs::write(world.work().join(".gyrus/policy.toml"), text).unwrap();
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(2);
}

#[test]
fn a_run_that_parks_for_other_reasons_says_so_too() {
    let world = World::new(WRITES);
    let told = world.path("told.txt");
    let notify = format!("[approvals]\nnotify = 'cat >> {}'\n", told.display());
    configure(&world, &notify);
    let limited = ["run", "go", "--on-ask", "deny", "--max-steps", "1"];
    world.gyrus(&limited).exits(3);
    let text = fs::read_to_string(&told).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.contains("\"headline\":\"the run has reached a limit\""),
        "{text}"
    );
    assert!(text.contains("\"answer\":\"gyrus resume "), "{text}");
}
