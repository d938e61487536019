//! The process is killed after every entry, and in the middle of every tool; resumed, the run
//! comes to the end that it would have had.

use std::{collections::BTreeMap, fs, os::unix::process::ExitStatusExt};

use gyrus_contract::EffectId;
use gyrus_kernel::{CallEnd, Entry};
use gyrus_process::ProcessIdentity;
use rustix::process::Signal;

use crate::support::{THREE_STEPS, World, said};

/// A thought, a file, a look, a ledger, an end: for the loops that act. After a crash the ledger
/// may have been cut off, and the model, told so, goes on without it.
const ACTING: &str = r#"
[[reply]]
purpose = "plan"
text = "1. a file 2. a look 3. the ledger"
[[reply]]
text = "First a file."
calls = [{ tool = "write", arguments = { path = "out.txt", content = "hello\n" } }]
[[reply]]
text = "Two looks at once."
calls = [{ tool = "read", arguments = { path = "out.txt" } }, { tool = "read", arguments = { path = "." } }]
[[reply]]
text = "Then the ledger."
calls = [{ tool = "shell", arguments = { command = "cat out.txt >> ledger.txt" } }]
[[reply]]
text = "Done."
calls = [{ tool = "finish", arguments = { reached = true, answer = "It says hello." } }]
"#;

const ANSWERING: &str = "[[reply]]\ntext = \"It says hello.\"\n";

#[test]
fn react_survives_a_kill_after_every_entry() {
    matrix("react", ACTING);
}

#[test]
fn chain_of_thought_survives_a_kill_after_every_entry() {
    matrix("chain-of-thought", ACTING);
}

#[test]
fn single_shot_survives_a_kill_after_every_entry() {
    matrix("single-shot", ANSWERING);
}

/// A plan of the same; told that the ledger was cut off, the model plans a look.
const PLANNING: &str = r#"
[[reply]]
purpose = "plan"
text = '''{"goal": "say hello", "steps": [
  {"id": "1", "tool": "write", "input": {"path": "out.txt", "content": "hello\n"}, "reason": "r", "requires_permission": false, "expected": "e", "depends_on": []},
  {"id": "2", "tool": "read", "input": {"path": "out.txt"}, "reason": "r", "requires_permission": false, "expected": "e", "depends_on": ["1"]},
  {"id": "3", "tool": "read", "input": {"path": "."}, "reason": "r", "requires_permission": false, "expected": "e", "depends_on": ["1"]},
  {"id": "4", "tool": "shell", "input": {"command": "cat out.txt >> ledger.txt"}, "reason": "r", "requires_permission": true, "expected": "e", "depends_on": ["2", "3"]}]}'''
[[reply]]
purpose = "plan"
find = { told = '(interrupted)' }
text = '''{"goal": "say hello", "steps": [
  {"id": "5", "tool": "read", "input": {"path": "."}, "reason": "r", "requires_permission": false, "expected": "e", "depends_on": []}]}'''
[[reply]]
purpose = "summarise"
text = '{"reached": true, "summary": "It says hello."}'
"#;

#[test]
fn a_plan_survives_a_kill_after_every_entry() {
    matrix_with(&["--loop", "plan", "--on-failure", "replan"], PLANNING);
}

/// The same under a judge that looks into the ledger; one that was cut off is asked again.
const ENGINEERING: &str = r#"
[[reply]]
purpose = "plan"
text = "What is known?"
calls = [{ tool = "read_journal", arguments = { query = "hello" } }]
[[reply]]
purpose = "plan"
text = "1. a file 2. the ledger 3. submit"
[[reply]]
text = "Too early."
calls = [{ tool = "submit", arguments = { summary = "It says hello." } }]
[[reply]]
text = "First a file."
calls = [{ tool = "write", arguments = { path = "out.txt", content = "hello\n" } }]
[[reply]]
text = "Now."
calls = [{ tool = "submit", arguments = { summary = "It says hello." } }]
[[reply]]
text = "Again, if nobody heard it."
calls = [{ tool = "submit", arguments = { summary = "It says hello." } }]
[[reply]]
purpose = "reflect"
text = "The file first."
"#;

#[test]
fn the_engineer_survives_a_kill_after_every_entry() {
    let judge = ["--loop", "engineer", "--judge", "test -s out.txt"];
    matrix_with(&judge, ENGINEERING);
}

/// A changeset; the verify command is cut off in the middle of it as well.
const CHANGING: &str = r#"
[[reply]]
purpose = "plan"
text = "What is there?"
calls = [{ tool = "list", arguments = { path = "." } }]
[[reply]]
purpose = "plan"
text = "One file."
calls = [{ tool = "propose_changeset", arguments = { summary = "It says hello.", changes = [{ path = "out.txt", reason = "asked for", content = "hello\n" }, { path = "deep/er/in.txt", reason = "too", content = "hello\n" }] } }]
[[reply]]
purpose = "plan"
text = "Again, if that was cut off."
calls = [{ tool = "propose_changeset", arguments = { summary = "It says hello.", changes = [{ path = "out.txt", reason = "asked for", content = "hello\n" }, { path = "deep/er/in.txt", reason = "too", content = "hello\n" }] } }]
[[reply]]
purpose = "reflect"
text = '{"worked": "One file was enough.", "did_not": ""}'
"#;

#[test]
fn a_changeset_survives_a_kill_after_every_entry() {
    let loops = ["--loop", "changeset", "--review", "none"];
    let verify = ["--verify", "test -s out.txt && test -s deep/er/in.txt"];
    matrix_with(&[&loops[..], &verify].concat(), CHANGING);
}

fn matrix(cognitive_loop: &str, script: &str) {
    matrix_with(&["--loop", cognitive_loop], script);
}

fn matrix_with(with: &[&str], script: &str) {
    let cognitive_loop = with[1];
    let whole = World::new(script);
    whole.run(with).exits(0);
    let acts = !whole.file("ledger.txt").is_empty();
    let entries = whole.entries().len();
    let mut kills = 0;
    for after in 1..=entries {
        let world = World::new(script);
        let killed = world
            .command(&world.run_arguments(with))
            .env("GYRUS_CRASH_AFTER", after.to_string())
            .output()
            .unwrap();
        // The last entries are on disk together with the end of the process.
        if killed.status.signal() == Some(9) {
            kills += 1;
            let was_over = matches!(world.entries().last(), Some(Entry::RunEnded(_)));
            let code = if was_over { 2 } else { 0 };
            world.gyrus(&["resume", "last"]).exits(code);
        }
        let context = format!("{cognitive_loop}, killed after {after} of {entries}");
        let after = world.entries();
        assert!(
            matches!(after.last(), Some(Entry::RunEnded(_))),
            "{context}"
        );
        check_effects(&after, &context);
        if cognitive_loop == "changeset" {
            for name in ["out.txt", "deep/er/in.txt"] {
                assert_eq!(world.file(name), "hello\n", "{context}: {name}");
            }
            let left = std::fs::read_dir(world.work()).unwrap().count();
            assert_eq!(left, 2, "{context}: something else lies in the folder");
        }
        if acts {
            assert_eq!(world.file("out.txt"), "hello\n", "{context}");
            let cut_off = settled(&after).values().any(|s| *s == CallEnd::Interrupted);
            let ledger = world.file("ledger.txt");
            let right = ledger == "hello\n" || (cut_off && ledger.is_empty());
            assert!(right, "{context}: the ledger says {ledger:?}");
        }
        let replayed = world.gyrus(&["replay", "last"]).exits(0).out;
        assert!(replayed.contains("0 differences"), "{context}: {replayed}");
        world.gyrus(&["runs", "verify", "last"]).exits(0);
    }
    assert!(
        kills > entries / 2,
        "{cognitive_loop}: killed {kills} times"
    );
}

/// Returns how each call was settled.
fn settled(entries: &[Entry]) -> BTreeMap<EffectId, CallEnd> {
    let results = entries.iter().filter_map(|entry| match entry {
        Entry::ToolResulted(result) => Some((result.effect.clone(), result.settled)),
        _ => None,
    });
    results.collect()
}

/// No effect has two outcomes, none starts again after its outcome, and a command starts once; but
/// for the one that verifies a changeset, whose files were put back with it.
fn check_effects(entries: &[Entry], context: &str) {
    let verifies = |effect: &EffectId| {
        entries.iter().any(|entry| {
            matches!(entry, Entry::ToolCalled(called)
                if called.effect == *effect && called.call.tool == "apply_changeset")
        })
    };
    let mut outcomes: BTreeMap<String, u32> = BTreeMap::new();
    for entry in entries {
        match entry {
            Entry::ToolStarted(started) => {
                let done = outcomes.contains_key(&started.effect.to_string());
                assert!(
                    !done,
                    "{context}: {} starts after its outcome",
                    started.effect
                );
                let again = started.keeper.is_some() && started.attempt > 1;
                assert!(
                    !again || verifies(&started.effect),
                    "{context}: the command {} ran twice",
                    started.effect
                );
            }
            Entry::ToolResulted(result) => {
                let count = outcomes.entry(result.effect.to_string()).or_default();
                *count += 1;
                assert_eq!(*count, 1, "{context}: {} has two outcomes", result.effect);
            }
            _ => {}
        }
    }
}

/// A command that leaves children behind in every way that it can, and lasts.
const LASTING: &str = r#"
[[reply]]
text = "This lasts."
calls = [{ tool = "shell", arguments = { command = "echo begun >> ledger.txt; setsid sleep 300 & (trap '' TERM; sleep 300) & echo ready > ready.txt; sleep 300; echo done >> ledger.txt" } }]
[[reply]]
text = "It was cut off; I look."
when = "interrupted"
calls = [{ tool = "read", arguments = { path = "ledger.txt" } }]
[[reply]]
text = "It began and did not end."
when = "begun"
calls = [{ tool = "finish", arguments = { reached = true, answer = "begun once" } }]
"#;

#[test]
fn killed_in_the_middle_of_a_command_nothing_of_it_is_alive_when_it_is_settled() {
    let world = World::new(LASTING);
    let running = world.start(&world.run_arguments(&[]));
    world.wait_for_layer("ready.txt");
    let keeper = world.entries().iter().find_map(keeper_of).unwrap();
    let tree = below(keeper.pid);
    assert!(tree.len() >= 4, "the command and what it started: {tree:?}");
    running.signal(Signal::KILL);
    // Until it is gone the run is still held.
    assert_eq!(running.end().code, None);
    world.gyrus(&["resume", "last"]).exits(0);
    // Resume has settled the command, so everything of it was gone by then.
    for process in &tree {
        assert!(!process.is_alive().unwrap(), "{process:?} is alive");
    }
    assert_eq!(world.file("ledger.txt"), "begun\n");
    check_effects(&world.entries(), "a command cut off");
}

fn keeper_of(entry: &Entry) -> Option<ProcessIdentity> {
    match entry {
        Entry::ToolStarted(started) => started.keeper.clone(),
        _ => None,
    }
}

/// A process and everything below it, from the system's table.
fn below(root: u32) -> Vec<ProcessIdentity> {
    let mut parents = BTreeMap::new();
    for folder in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = folder.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(folder.path().join("stat")) else {
            continue;
        };
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let parent = after_name
            .split_whitespace()
            .nth(1)
            .and_then(|p| p.parse().ok());
        parents.insert(pid, parent.unwrap_or(0_u32));
    }
    let is_below = |pid: u32| {
        let mut at = Some(pid);
        while let Some(now) = at.filter(|now| *now != 0) {
            if now == root {
                return true;
            }
            at = parents.get(&now).copied();
        }
        false
    };
    let pids = parents.keys().copied().filter(|pid| is_below(*pid));
    pids.filter_map(|pid| ProcessIdentity::of(pid).unwrap())
        .collect()
}

#[test]
fn killed_while_a_file_is_written_it_is_there_once_and_whole() {
    // The write itself is quick, so the kill falls before, into or after it; never half of it.
    for after in 4..=8 {
        let world = World::new(THREE_STEPS);
        world
            .command(&world.run_arguments(&[]))
            .env("GYRUS_CRASH_AFTER", after.to_string())
            .output()
            .unwrap();
        assert!(matches!(world.file("out.txt").as_str(), "" | "hello\n"));
        world.gyrus(&["resume", "last"]);
        assert_eq!(world.file("out.txt"), "hello\n", "killed after {after}");
    }
}

#[test]
fn a_command_whose_run_is_over_already_ends_as_its_run_did() {
    for (script, code) in [
        (THREE_STEPS, 0),
        (
            "[[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = false, answer = \"no\" } }]\n",
            1,
        ),
    ] {
        let world = World::new(script);
        world.run(&[]).exits(code);
        // The process died after the last entry, before it could say so.
        let order = serde_json::json!({"command": {
            "id": "1",
            "run": world.runs()[0],
            "work": {"start": {
                "goal": {"text": "say hello", "from": "person"},
                "workdir": world.work(),
            }},
            "from": {"id": "tester", "surface": "test"},
            "agent": "default",
            "submitted_ms": 0,
        }});
        let path = world.path("order.json");
        fs::write(&path, order.to_string()).unwrap();
        let mut work = world.command(&["work"]);
        work.stdin(fs::File::open(&path).unwrap());
        said(work.output().unwrap()).exits(code);
    }
}
