//! The library beside the program, as its example uses it.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::support::{Said, World, said};

/// Counts in the sandbox, looks back, and finishes.
const COUNTS: &str = r#"
[[reply]]
text = "I count."
calls = [{ tool = "shell", arguments = { command = "ls | wc -l" } }]
[[reply]]
text = "Done."
calls = [{ tool = "finish", arguments = { reached = true, answer = "There are two." } }]
[[reply]]
purpose = "reflect"
text = "Nothing went wrong."
"#;

/// Never finishes.
const WANDERS: &str = r#"
[[reply]]
calls = [{ tool = "list", arguments = { path = "." } }]
[[reply]]
calls = [{ tool = "read", arguments = { path = "a" } }]
[[reply]]
calls = [{ tool = "read", arguments = { path = "b" } }]
[[reply]]
calls = [{ tool = "shell", arguments = { command = "cat a" } }]
[[reply]]
calls = [{ tool = "shell", arguments = { command = "cat b" } }]
[[reply]]
calls = [{ tool = "shell", arguments = { command = "touch too-late" } }]
"#;

fn embed(world: &World) -> Said {
    example(world, "embed")
}

fn example(world: &World, name: &str) -> Said {
    let notes = world.work().join("notes");
    fs::create_dir_all(&notes).unwrap();
    fs::write(notes.join("a"), "one").unwrap();
    fs::write(notes.join("b"), "two").unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_gyrus"))
        .with_file_name("examples")
        .join(name);
    let mut command = Command::new(program);
    command.env_clear();
    for (name, value) in world.command(&[]).get_envs() {
        command.env(name, value.unwrap());
    }
    command.current_dir(world.work()).stdin(Stdio::null());
    said(command.output().unwrap())
}

#[test]
fn a_loop_of_an_embedder_acts_behind_the_same_gate_and_answers() {
    let world = World::new(COUNTS);
    let said = embed(&world).exits(0);
    assert!(said.out.ends_with("There are two.\n"), "{said:#?}");
    // The program reads what the library wrote.
    let state = world.work().join(".gyrus-state");
    let shown = world
        .command(&["show", "--anywhere"])
        .env("GYRUS_HOME", state)
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("ls | wc -l"), "{shown}");
}

#[test]
fn the_configured_number_of_iterations_is_kept() {
    let world = World::new(WANDERS);
    let said = embed(&world).exits(0);
    assert!(said.out.contains("5 of 5"), "{said:#?}");
    assert!(!world.work().join("notes/too-late").exists());
}

#[test]
fn agents_live_hear_each_other_and_act_behind_the_gate() {
    let world = World::new(COUNTS);
    let said = example(&world, "cognitive_agent").exits(0);
    assert_eq!(said.out, "There are two.\n");
    // Both the thinking and the calls are runs, each in a journal.
    let store = gyrus_journal::Store::open(&world.work().join(".gyrus-state/journal")).unwrap();
    assert_eq!(gyrus_kernel::runs(&store).unwrap().len(), 2);
}

#[test]
fn a_context_is_given_to_later_runs_and_outlives_the_process() {
    let world = World::new(COUNTS);
    for _ in 0..3 {
        example(&world, "cognitive_agent").exits(0);
    }
    let store = gyrus_journal::Store::open(&world.work().join(".gyrus-state/journal")).unwrap();
    let before = gyrus_kernel::runs(&store).unwrap();
    let given = |run| {
        let reader = store.reader(&gyrus_kernel::log_name(run)).unwrap();
        let first = reader.entry(1).unwrap().unwrap();
        let Ok(gyrus_kernel::Entry::RunStarted(started)) = gyrus_kernel::parse(&first) else {
            panic!("{first:?}")
        };
        (started.cognitive_loop == "react").then(|| format!("{:?}", started.context))
    };
    let given: Vec<_> = before.iter().copied().filter_map(given).collect();
    let [first, second, third] = &given[..] else {
        panic!("{given:?}")
    };
    // The second goes on from the memory of the first, and needs no records of it.
    assert!(!first.contains("There are two.") && !second.contains("There are two."));
    assert!(
        third.contains("- heard: How many notes are here?"),
        "{third}"
    );
    assert!(third.contains("- called: shell") && third.contains("- answer: There are two."));
    assert!(
        third.contains(r#"from: Run"#) || third.contains("origin: Run"),
        "{third}"
    );

    // A damaged journal of an earlier run costs its records alone.
    let segment = store
        .folder(&gyrus_kernel::log_name(before[0]))
        .join("000001.jsonl");
    let mut bytes = fs::read(&segment).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 0x01;
    fs::write(&segment, bytes).unwrap();
    example(&world, "cognitive_agent").exits(0);
}
