//! A goal that is reached: what is done, what is shown, and what can be read afterwards.

use std::{io::Write, process::Stdio};

use serde_json::Value;

use crate::support::{THREE_STEPS, World, read, said};

#[test]
fn the_work_is_done_and_shown() {
    let world = World::new(THREE_STEPS);
    let said = world.run(&[]).exits(0);
    assert_eq!(said.out, "It says hello.\n");
    assert_eq!(world.file("ledger.txt"), "hello\n");
    insta::assert_snapshot!(world.mask(&said.err), @r"
    run [run] · react · script/scripted · [folder]/work
    • First a file.
    → write path=out.txt content=hello
    ← created `out.txt` (6 bytes, 1 line)
      diff --git a/out.txt b/out.txt
      new file mode 100644
      --- /dev/null
      +++ b/out.txt
      @@ -0,0 +1,1 @@
      +hello
    • Then the ledger.
    → shell cat out.txt >> ledger.txt
    ← (no output)
      [exit code 0]
      [created: ledger.txt]
    • Done.
    → says that it is done
    ■ reached, as the model claims · 3 steps · [n] tokens · [time]
      changed: ledger.txt, out.txt; gyrus diff, gyrus undo
    ");

    let shown = world.gyrus(&["show", "last"]).exits(0).out;
    assert!(
        shown.contains("→ shell cat out.txt >> ledger.txt"),
        "{shown}"
    );
    let replayed = world.gyrus(&["replay", "last"]).exits(0).out;
    assert!(replayed.contains("3 steps; 0 differences"), "{replayed}");
    let listed = world.gyrus(&["runs", "list"]).exits(0).out;
    assert!(listed.contains("claimed: It says hello."), "{listed}");
    let verified = world.gyrus(&["runs", "verify"]).exits(0).out;
    assert!(verified.contains("the chain holds"), "{verified}");
    world.gyrus(&["resume", "last"]).exits(2).says("is over");
}

#[test]
fn json_is_one_entry_a_line_and_nothing_else() {
    let world = World::new(THREE_STEPS);
    for flags in [&["--json"][..], &["--output-format", "stream-json"]] {
        let said = world.run(flags).exits(0);
        assert_eq!(said.err, "");
        let lines: Vec<Value> = said
            .out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        for (number, line) in (1..).zip(&lines) {
            assert_eq!(line["seq"], number);
            assert!(line["at"].as_str().unwrap().ends_with('Z'), "{line}");
            assert!(line["payload"].is_object() && line["v"].is_u64(), "{line}");
        }
        assert_eq!(lines[0]["kind"], "run.started");
        assert_eq!(lines.last().unwrap()["kind"], "run.ended");
    }
}

#[test]
fn the_trace_has_a_line_a_step_across_resuming() {
    let world = World::new(THREE_STEPS);
    let trace = world.path("trace.jsonl");
    let flags = ["--trace", trace.to_str().unwrap(), "--max-steps", "1"];
    world.run(&flags).exits(3);
    assert_eq!(read(&trace).lines().count(), 1);
    world
        .gyrus(&[
            "resume",
            "last",
            "--trace",
            trace.to_str().unwrap(),
            "--max-steps",
            "9",
        ])
        .exits(0);
    let lines: Vec<Value> = read(&trace)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let steps: Vec<_> = lines
        .iter()
        .map(|line| line["step"].as_u64().unwrap())
        .collect();
    assert_eq!(steps, [1, 2, 3]);
    assert_eq!(lines[1]["thought"], "Then the ledger.");
    assert_eq!(
        lines[1]["tool_inputs"][0]["arguments"]["command"],
        "cat out.txt >> ledger.txt"
    );
    assert_eq!(lines[1]["tool_outputs"][0]["is_error"], false);
    assert_eq!(lines[0]["phase"], "react");
    assert_eq!(world.gyrus(&["trace", "last"]).exits(0).out, read(&trace));
}

#[test]
fn a_goal_of_a_megabyte_comes_by_standard_input() {
    let world = World::new(THREE_STEPS);
    let mut command = world.command(&["run", "-", "--workdir", ".", "--approve", "auto"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let goal = "say hello ".repeat(100_000);
    child
        .stdin
        .take()
        .unwrap()
        .write_all(goal.as_bytes())
        .unwrap();
    said(child.wait_with_output().unwrap()).exits(0);
    assert!(
        world
            .gyrus(&["runs", "list"])
            .out
            .contains("say hello say hello")
    );
}

#[test]
fn standard_input_that_never_ends_is_not_read() {
    let world = World::new(THREE_STEPS);
    let mut command = world.command(&world.run_arguments(&[]));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let never_closed = child.stdin.take();
    said(child.wait_with_output().unwrap()).exits(0);
    drop(never_closed);
}

#[test]
fn an_ephemeral_run_sees_nothing_of_the_state_that_stays() {
    let world = World::new(
        r#"
[[reply]]
calls = [{ tool = "read", arguments = { path = "../state/gyrus/redaction.key" } }]
[[reply]]
calls = [{ tool = "write", arguments = { path = "../state/gyrus/stopped", content = "x" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "tried" } }]
"#,
    );
    let mut gyrus = world.command(&["run", "go", "--ephemeral", "--approve", "auto"]);
    gyrus
        .env_remove("GYRUS_HOME")
        .env("XDG_STATE_HOME", world.path("state"))
        .env("XDG_CONFIG_HOME", world.path("config"));
    let said = crate::support::said(gyrus.output().unwrap()).exits(0);
    let refused = said.err.matches("touches gyrus's own state").count();
    assert_eq!(refused, 2, "{said:#?}");
    assert!(!world.path("state/gyrus/stopped").exists());
}

#[test]
fn ephemeral_leaves_the_work_and_no_journal() {
    let world = World::new(THREE_STEPS);
    world.run(&["--ephemeral"]).exits(0);
    assert_eq!(world.file("ledger.txt"), "hello\n");
    assert!(world.runs().is_empty());
}

#[test]
fn every_loop_can_be_chosen() {
    let world = World::new("[[reply]]\ntext = \"42\"\n");
    assert_eq!(world.run(&["--loop", "single-shot"]).exits(0).out, "42\n");
    assert!(world.gyrus(&["show", "last"]).out.contains("42"));
}

#[test]
fn a_fork_goes_on_from_an_earlier_step() {
    let world = World::new(THREE_STEPS);
    world.run(&[]).exits(0);
    let into = world.path("fork");
    let into = into.to_str().unwrap();
    world
        .gyrus(&["fork", "last", "--at", "1", "--workdir", into])
        .exits(0);
    assert_eq!(read(&world.path("fork/ledger.txt")), "hello\n");
    assert_eq!(
        world.file("ledger.txt"),
        "hello\n",
        "the first folder is not touched"
    );
    let in_place = world
        .gyrus(&["fork", "last", "--at", "1", "--in-place"])
        .exits(0);
    assert!(
        in_place.err.contains("added ledger.txt"),
        "{}",
        in_place.err
    );
    world
        .gyrus(&["fork", "last", "--at", "9", "--in-place"])
        .exits(2)
        .says("complete step 9");
    world
        .gyrus(&["fork", "last", "--at", "1", "--workdir", into])
        .exits(2)
        .says("is not empty");
    world.gyrus(&["fork", "last", "--at", "1"]).exits(2);
}

#[test]
fn secrets_of_the_environment_reach_no_journal() {
    let world = World::new(
        "[[reply]]\ncalls = [{ tool = \"write\", arguments = { path = \"a\", content = \
         \"my hunter2hunter2\" } }]\n[[reply]]\ncalls = [{ tool = \"finish\", arguments = \
         { reached = true, answer = \"it is hunter2hunter2\" } }]\n",
    );
    let mut command = world.command(&world.run_arguments(&["--json"]));
    let said = said(
        command
            .env("SOME_PASSWORD", "hunter2hunter2")
            .output()
            .unwrap(),
    )
    .exits(0);
    assert!(!said.out.contains("hunter2"), "{}", said.out);
    assert!(said.out.contains("⟦secret:SOME_PASSWORD⟧"), "{}", said.out);
    assert_eq!(
        world.file("a"),
        "my hunter2hunter2",
        "what is written is the real thing"
    );
}

#[test]
fn a_model_that_thinks_aloud_can_be_replayed_and_resumed() {
    let world = World::new(
        r#"
[[reply]]
thinking = "Where would it be?"
text = "Looking."
calls = [{ tool = "read", arguments = { path = "." } }]
[[reply]]
thinking = "That is all."
calls = [{ tool = "finish", arguments = { reached = true, answer = "seen" } }]
"#,
    );
    world.run(&["--max-steps", "1"]).exits(3);
    world
        .gyrus(&["resume", "last", "--max-steps", "5"])
        .exits(0);
    world.gyrus(&["replay", "last"]).exits(0);
    world.gyrus(&["show", "last"]).exits(0);
}

/// Replaces a file unread, twice, and then uses the shell.
const REPLACES: &str = r#"
[[reply]]
calls = [{ tool = "write", arguments = { path = "a.toml", content = "limit = 20\n" } }]
[[reply]]
calls = [{ tool = "shell", arguments = { command = "mkdir -p target && touch target/x target/y && echo a > new && rm old" } }]
[[reply]]
calls = [{ tool = "write", arguments = { path = "new", content = "made by the run\n" } }]
[[reply]]
calls = [{ tool = "shell", arguments = { command = "sh run.sh" } }]
[[reply]]
calls = [{ tool = "write", arguments = { path = "a.toml", content = "limit = 20\n" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;

#[test]
fn results_say_what_happened_to_files() {
    let world = World::new(REPLACES);
    for (name, content) in [
        ("a.toml", "limit = 10\nname = 'x'\n"),
        ("old", "o"),
        ("run.sh", "echo 7\n"),
    ] {
        std::fs::write(world.work().join(name), content).unwrap();
    }
    let said = world.run(&[]).exits(0);
    for part in [
        "`a.toml` exists (22 bytes, 2 lines) and this run has not read it",
        "[created: new, target/ (2); deleted: old]",
        "overwrote `new`",
        "[no file of the workspace changed]",
        "overwrote `a.toml`",
    ] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
    assert_eq!(world.file("a.toml"), "limit = 20\n");
    world.replays();
}

/// Changes two files; of one, whose name says that it is secret, nothing may be seen.
const CHANGES: &str = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "sed -i s/10/20/ a.toml; echo more=1 >> .env" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;

#[test]
fn a_result_shows_what_a_command_changed_but_for_secrets() {
    let world = World::new(CHANGES);
    std::fs::write(world.work().join("a.toml"), "limit = 10\nname = 'x'\n").unwrap();
    std::fs::write(world.work().join(".env"), "colour=unheard-of\n").unwrap();
    let said = world.run(&[]).exits(0).err;
    assert!(said.contains("-limit = 10\n  +limit = 20"), "{said}");
    assert!(!said.contains("unheard-of"), "{said}");
    world.replays();
}
