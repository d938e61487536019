//! Watching a run that another process drives, and lists for programs.

use std::process::{Command, Stdio};

use gyrus_kernel::Entry;
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    support::{THREE_STEPS, UNTIL_GO, World, said},
    terminal::Terminal,
};

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

#[test]
fn a_run_of_another_process_is_followed_to_its_end() {
    let world = World::new(UNTIL_GO);
    let driven = world.start(&world.run_arguments(&[]));
    world.wait_for(|entry| matches!(entry, Entry::ToolStarted(_)));
    let mut followers = [
        world.start(&["follow", "last"]),
        world.start(&["show", "last", "--follow"]),
    ];
    for follower in &mut followers {
        follower.hears("This takes a while.");
    }
    let mut interrupted = world.start(&["follow", "last"]);
    interrupted.hears("→ shell");
    interrupted.signal(Signal::INT);
    interrupted.end().exits(130).says("the run goes on");
    std::fs::write(world.work().join("go"), "").unwrap();
    driven.end().exits(0);
    for follower in followers {
        let said = follower.end().exits(0);
        assert_eq!(said.out, "finished\n");
    }
    // What is over is shown and left, with its exit code.
    let json = world.gyrus(&["follow", "last", "--json"]).exits(0).out;
    assert_eq!(lines(&json).last().unwrap()["kind"], "run.ended");
}

#[test]
fn the_end_of_a_process_ends_the_watching() {
    let world = World::new(UNTIL_GO);
    let driven = world.start(&world.run_arguments(&[]));
    world.wait_for(|entry| matches!(entry, Entry::ToolStarted(_)));
    let mut follower = world.start(&["follow", "last"]);
    follower.hears("This takes a while.");
    driven.signal(Signal::KILL);
    driven.end();
    follower.end().exits(130).says("gyrus resume");
    let limited = World::new(THREE_STEPS);
    limited.run(&["--max-steps", "1"]).exits(3);
    limited
        .gyrus(&["follow", "last"])
        .exits(3)
        .says("--max-steps");
}

#[test]
fn the_prompt_lives_on_and_whoever_followed_its_run_is_let_go() {
    let world = World::new(UNTIL_GO);
    let arguments = ["--workdir", ".", "--approve", "auto"];
    let xterm = [("TERM", "xterm-256color")];
    let Some(mut terminal) = Terminal::start_with(&world, &arguments, "", &xterm) else {
        return;
    };
    terminal.shows("❯");
    terminal.types("wait\r");
    world.wait_for_file("ledger.txt", "begun");
    let mut follower = world.start(&["follow", "last"]);
    follower.hears("This takes a while.");
    std::fs::write(world.work().join("go"), "").unwrap();
    terminal.shows("reached, as the model claims");
    terminal.shows("❯");
    assert_eq!(follower.end().exits(0).out, "finished\n");
    terminal.types("\x04");
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn a_shell_completes_the_commands_and_man_shows_them() {
    let world = World::new(THREE_STEPS);
    let script = world.gyrus(&["completions", "bash"]).exits(0).out;
    std::fs::write(world.path("gyrus.bash"), script).unwrap();
    let completes = "source gyrus.bash; COMP_WORDS=(gyrus res); COMP_CWORD=1; \
                     _gyrus gyrus res gyrus; echo \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    bash.args(["-c", completes]).current_dir(world.path("."));
    assert_eq!(said(bash.output().unwrap()).exits(0).out, "resume\n");
    for shell in ["zsh", "fish"] {
        let script = world.gyrus(&["completions", shell]).exits(0).out;
        assert!(script.contains("max-steps"), "{script}");
    }
    world.gyrus(&["completions", "tcsh"]).exits(2).says("bash");
    let pages = world.path("man");
    world
        .gyrus(&["manual", pages.to_str().unwrap()])
        .exits(0)
        .says("the pages are in");
    let page = std::fs::read_to_string(pages.join("gyrus-run.1")).unwrap();
    assert!(
        page.contains(".TH") && page.contains("max\\-steps"),
        "{page}"
    );
    world
        .gyrus(&["manual", "/proc/nowhere"])
        .exits(2)
        .says("cannot be written");
}

#[test]
fn lists_are_for_programs_too() {
    let world = World::new(THREE_STEPS);
    world.run(&[]).exits(0);
    world.run(&["--max-steps", "1"]).exits(3);
    let list = |arguments: &[&str]| lines(&world.gyrus(arguments).exits(0).out);
    let all = list(&["runs", "--json"]);
    assert_eq!(all.len(), 2);
    assert_eq!(all[0]["goal"], "say hello");
    for (filter, count) in [
        (&["--state", "parked"][..], 1),
        (&["--state", "over"], 1),
        (&["--state", "running"], 0),
        (&["--filter", "SAY HELLO"], 2),
        (&["--filter", "nothing like it"], 0),
        (&["--limit", "1"], 1),
        (&["--workdir", "."], 2),
        (&["--workdir", "/"], 0),
    ] {
        let arguments = [&["runs", "list", "--json"], filter].concat();
        assert_eq!(list(&arguments).len(), count, "{filter:?}");
    }
    let tools = list(&["tools", "--json", "--filter", "clipboard"]);
    assert_eq!(tools[0]["tool"], "clipboard");
    for command in [
        &["approvals", "--json"][..],
        &["models", "--json"],
        &["mcp", "list", "--json"],
        &["browser", "profiles", "--json"],
    ] {
        list(command);
    }
    // A shown id can be shortened from its front.
    let id = world.runs()[0].to_string();
    let short = &id[id.len() - 8..];
    for given in [&short[..7], &short[..6]] {
        world.gyrus(&["runs", "show", given]).exits(0);
    }
}

#[test]
fn what_cannot_be_taken_back_is_asked_first() {
    let world = World::new(THREE_STEPS);
    world.run(&[]).exits(0);
    let said = world.gyrus(&["runs", "rm", "last"]).exits(2);
    said.says("you must be asked first").says("--yes");
    assert_eq!(world.runs().len(), 1);
    world.gyrus(&["runs", "rm", "last", "--yes"]).exits(0);
    assert!(world.runs().is_empty());
}

#[test]
fn a_person_without_a_name_in_the_environment_has_one() {
    let world = World::new(
        "[[reply]]\ncalls = [{ tool = \"write\", arguments = { path = \".envrc\", content = \"x\" } }]\n\
         [[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \"x\" } }]\n",
    );
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    let mut command = world.command(&["approve", "last"]);
    command.env_remove("USER").stdout(Stdio::null());
    assert!(command.status().unwrap().success());
    let said = world.gyrus(&["resume", "last"]).exits(0);
    assert!(!said.err.contains("approved by user "), "{said:?}");
}
