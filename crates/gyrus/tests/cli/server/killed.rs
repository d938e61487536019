//! The server dies, and what it was told stands.

use std::collections::BTreeSet;

use gyrus_kernel::{RunState, log_name};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::Server;
use crate::support::{THREE_STEPS, UNTIL_GO, World};

/// Number of times that the server is killed.
const KILLS: usize = 6;

/// Number of commands that are given between two kills.
const COMMANDS: usize = 8;

/// Leaves one line in the ledger, by a command that cannot be repeated.
const ONE_LINE: &str = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "mktemp -p . line-XXXXXXXXXX" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "written" } }]
"#;

#[test]
fn no_command_is_lost_or_carried_out_twice() {
    let world = World::new(ONE_LINE);
    let mut accepted: Vec<Value> = Vec::new();
    for kill in 0..KILLS {
        let server = Server::start(&world);
        for command in 0..COMMANDS {
            accepted.push(server.run(&format!("{kill}.{command}"), &json!({"approve": "auto"})));
        }
        // At another moment each time: some wait, some are at work, some are done.
        server.wait(&accepted[kill * COMMANDS + kill], |stage| {
            stage["state"] != "queued"
        });
        server.kill();
    }
    let server = Server::start(&world);
    for command in &accepted {
        let ended = server.wait_for_end(command);
        assert_eq!(ended["stage"]["summary"], "claimed: written", "{ended:#}");
    }
    let runs: BTreeSet<_> = world.runs().into_iter().collect();
    assert_eq!(runs.len(), KILLS * COMMANDS);
    for run in runs {
        let state = RunState::of(&world.store(), run).unwrap();
        assert!(matches!(state, RunState::Over(_)), "{state:?}");
    }
    let names = std::fs::read_dir(world.work()).unwrap().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let lines = names.filter(|name| name.starts_with("line-")).count();
    assert_eq!(lines, KILLS * COMMANDS);
}

#[test]
fn a_run_outlives_its_server_and_the_next_one_sees_its_end() {
    let world = World::new(UNTIL_GO);
    let server = Server::start(&world);
    let accepted = server.run("wait", &json!({"approve": "auto"}));
    world.wait_for_file("ledger.txt", "begun");
    let holder = |world: &World| world.store().holder(&log_name(world.runs()[0])).unwrap();
    let before = holder(&world).unwrap();
    server.kill();
    let server = Server::start(&world);
    assert_eq!(holder(&world).unwrap(), before, "the same process goes on");
    std::fs::write(world.work().join("go"), "").unwrap();
    let ended = server.wait_for_end(&accepted);
    assert_eq!(ended["stage"]["summary"], "claimed: finished", "{ended:#}");
    assert_eq!(world.file("ledger.txt"), "begun\ndone\n");
}

#[test]
fn what_ctrl_c_parks_is_gone_on_with_at_the_next_start() {
    let world = World::new(UNTIL_GO);
    let server = Server::start(&world);
    let accepted = server.run("wait", &json!({"approve": "auto"}));
    world.wait_for_file("ledger.txt", "begun");
    server.signal(Signal::INT);
    std::fs::write(world.work().join("go"), "").unwrap();
    assert_eq!(server.end(), Some(0));
    let state = RunState::of(&world.store(), world.runs()[0]).unwrap();
    assert!(matches!(state, RunState::Parked(_)), "{state:?}");
    let server = Server::start(&world);
    let ended = server.wait_for_end(&accepted);
    assert_eq!(ended["stage"]["code"], 0, "{ended:#}");
    assert_eq!(world.file("ledger.txt"), "begun\ndone\n");
}

#[test]
fn a_run_whose_process_died_long_ago_is_taken_up() {
    let world = World::new(THREE_STEPS);
    let mut command = world.command(&world.run_arguments(&[]));
    command.env("GYRUS_CRASH_AFTER", "9");
    assert_eq!(command.output().unwrap().status.code(), None);
    // One that a person left alone stays alone.
    let parked = World::new(THREE_STEPS);
    parked.run(&["--max-steps", "1"]).exits(3);
    for (world, ends) in [(&world, true), (&parked, false)] {
        let server = Server::start(world);
        let commands = server.get("/api/commands").is(200).json();
        assert_eq!(
            commands.as_array().unwrap().len(),
            usize::from(ends),
            "{commands:#}"
        );
        if ends {
            let ended = server.wait_for_end(&commands[0]);
            assert_eq!(ended["stage"]["code"], 0, "{ended:#}");
            assert_eq!(world.file("ledger.txt"), "hello\n");
        }
    }
}

#[test]
fn an_answer_that_came_while_nobody_served_is_read_at_the_next_start() {
    let world = World::new(
        "[[reply]]\ncalls = [{ tool = \"write\", arguments = { path = \".envrc\", content = \"x\" } }]\n\
         [[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \"done\" } }]\n",
    );
    let server = Server::start(&world);
    let accepted = server.run("write", &json!({}));
    server.wait(&accepted, |stage| stage["state"] == "parked");
    server.kill();
    world.gyrus(&["approve", "last"]).exits(0);
    let server = Server::start(&world);
    let ended = server.wait_for_end(&accepted);
    assert_eq!(ended["stage"]["code"], 0, "{ended:#}");
    assert_eq!(world.file(".envrc"), "x");
}

#[test]
fn the_emergency_stop_holds_for_the_queue() {
    let world = World::new(UNTIL_GO);
    let server = Server::start_with(&world, &["--at-once", "1"]);
    let first = server.run("wait", &json!({"approve": "auto"}));
    world.wait_for_file("ledger.txt", "begun");
    let second = server.run("then", &json!({"loop": "single-shot"}));
    let stopped = server
        .post("/api/stop", &json!({"reason": "fire"}))
        .is(200)
        .json();
    assert!(
        stopped["said"]
            .as_str()
            .unwrap()
            .contains("stopped for all"),
        "{stopped}"
    );
    let ended = server.wait_for_end(&first);
    assert!(
        ended["stage"]["summary"]
            .as_str()
            .unwrap()
            .contains("stopped by"),
        "{ended:#}"
    );
    let waits = server.wait(&second, |_| true);
    assert_eq!(waits["stage"]["state"], "queued");
    assert_eq!(server.get("/healthz").json()["stopped"], true);
    server.delete("/api/stop").is(200);
    server.wait_for_end(&second);
}
