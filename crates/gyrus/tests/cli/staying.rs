//! A sandbox in which nothing is left is used again, and one that would show or keep more than a
//! new one is not.

use std::{fs, time::Duration};

use gyrus_kernel::Entry;

use crate::support::World;

/// Each command notes the processes that it sees.
const NOTE: &str = "cat /proc/[0-9]*/comm >> processes;";

fn script(commands: &[&str]) -> String {
    let mut script = String::new();
    for command in commands {
        let command = format!("{NOTE} {command}");
        script += &format!(
            "[[reply]]\ncalls = [{{ tool = \"shell\", arguments = {{ command = '{command}' }} }}]\n"
        );
    }
    script
        + "[[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \"done\" } }]\n"
}

/// Whether each command was run in the sandbox of the one before it.
fn stayed(world: &World) -> Vec<bool> {
    let entries = world.entries();
    let keepers: Vec<_> = entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::ToolStarted(started) => started.keeper.clone(),
            _ => None,
        })
        .collect();
    let twos = keepers.windows(2);
    twos.map(|two| two[0] == two[1]).collect()
}

#[test]
fn the_next_command_finds_nothing_of_the_one_before() {
    let world = World::new(&script(&[
        "(setsid sleep 600 &); mkfifo pipe; exec 3<> pipe",
        "true",
        "false",
        "true",
        "kill -9 $$",
        "true",
        "perl -e \"shmget(0, 4096, 0600) or die\"",
        "true",
        "prlimit --pid 2 --nofile=64:64",
        "ulimit -n > files",
    ]));
    world.run(&["--max-steps", "20"]).exits(0);
    // A new one is made after a signal that ended the command, with memory left, and with a limit
    // lowered, which the command can do by any thread of what starts it.
    let expected = [true, true, true, true, false, true, false, true, false];
    assert_eq!(stayed(&world), expected);
    assert_ne!(world.file("files"), "64\n");
    let processes = world.file("processes");
    assert!(!processes.contains("sleep"), "{processes}");
}

#[test]
fn a_secret_that_came_meanwhile_is_hidden_from_the_next_command() {
    let world = World::new(&script(&[
        "echo x > ready; until [ -e go ]; do sleep 0.01; done",
        "cat \"$HOME\"/.ssh/id_rsa && echo > seen",
        "cat \"$HOME\"/.ssh/id_rsa && echo > seen",
    ]));
    let running = world.start(&world.run_arguments(&["--max-steps", "20"]));
    world.wait_for_file("ready", "x");
    let keys = world.path("person/.ssh");
    fs::create_dir_all(&keys).unwrap();
    fs::write(keys.join("id_rsa"), "secret").unwrap();
    fs::write(world.work().join("go"), "").unwrap();
    running.end().exits(0);
    assert!(!world.work().join("seen").exists());
    assert_eq!(stayed(&world), [false, true]);
}

#[test]
fn a_run_that_waits_for_a_person_holds_no_sandbox() {
    let asks = r#"[[reply]]
calls = [{ tool = "run_as_user", arguments = { program = "true", arguments = [], reason = "to see" } }]
"#;
    let commands = script(&["true"]);
    let (first, last) = commands.split_at(commands.rfind("[[reply]]").unwrap());
    let world = World::new(&format!("{first}{asks}{last}"));
    let running = world.start(&[
        "run",
        "tidy up",
        "--workdir",
        ".",
        "--approve",
        "ask",
        "--on-ask",
        "wait",
    ]);
    world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));
    let entries = world.entries();
    let keeper = entries.iter().find_map(|entry| match entry {
        Entry::ToolStarted(started) => started.keeper.clone(),
        _ => None,
    });
    let is_gone = keeper.unwrap().wait_gone(Duration::from_secs(10));
    assert!(is_gone.unwrap());
    world.gyrus(&["deny", "last"]).exits(0);
    running.end();
}
