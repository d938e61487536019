//! The emergency stop: everything ends at once, nothing begins, and only a person lifts it.

use std::{fs, io::Read, net::TcpListener, path::PathBuf, thread};

use gyrus_kernel::{CallEnd, Ending, Entry};
use rustix::process::Signal;

use crate::{
    support::{Running, THREE_STEPS, UNTIL_GO, World},
    terminal::Terminal,
};

/// Ignores every signal that can be ignored, in its own session, twice removed from its parent.
const STUBBORN: &str = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "trap '' TERM INT HUP; (setsid sh -c 'trap \"\" TERM INT HUP; while :; do date +%N > alive; done' &) ; echo begun >> ledger.txt; while :; do :; done" } }]
[[reply]]
when = "cut this call off"
calls = [{ tool = "finish", arguments = { reached = true, answer = "it was cut off" } }]
"#;

fn latch(world: &World) -> PathBuf {
    world.path("home/stopped")
}

fn settled(world: &World) -> Vec<CallEnd> {
    let entries = world.entries().into_iter();
    let results = entries.filter_map(|entry| match entry {
        Entry::ToolResulted(result) => Some(result.settled),
        _ => None,
    });
    results.collect()
}

/// Processes whose working folder is that of the world.
fn at_work(world: &World) -> Vec<String> {
    let work = world.work().canonicalize().unwrap();
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let process = entry.ok()?.path();
        (fs::read_link(process.join("cwd")).ok()? == work)
            .then(|| fs::read_to_string(process.join("cmdline")).unwrap_or_default())
    });
    processes.collect()
}

#[test]
fn it_ends_what_ignores_everything_and_latches_until_a_person_lifts_it() {
    let world = World::new(STUBBORN);
    let running = world.start(&world.run_arguments(&[]));
    world.wait_for_file("ledger.txt", "begun");
    world.wait_for_file("alive", "\n");
    world
        .gyrus(&["stop", "--all", "--reason", "it mails my sister"])
        .exits(0)
        .says("  ended ");
    running
        .end()
        .exits(4)
        .says("stopped by tester (emergency stop): it mails my sister");
    assert!(
        matches!(world.entries().last(), Some(Entry::RunParked(parked))
        if matches!(&parked.ending, Ending::Stopped { reason: Some(_), .. }))
    );
    assert_eq!(at_work(&world), Vec::<String>::new());

    // Nothing begins, nothing goes on, and everybody is told why.
    let fork = ["fork", "last", "--at", "0", "--in-place"];
    for arguments in [
        &["run", "go"][..],
        &["run", "go", "--ephemeral"],
        &["resume", "last"],
        &fork,
    ] {
        world
            .gyrus(arguments)
            .exits(4)
            .says("stopped for all since 20")
            .says("by tester (emergency stop): it mails my sister")
            .says("to go on: gyrus rearm");
    }
    assert_eq!(world.runs().len(), 1, "nothing was begun");
    world
        .gyrus(&["stop", "--all", "--reason", "another"])
        .exits(0)
        .says("it mails my sister")
        .says("no run was at work");

    // A script that has no terminal must mean it.
    world.gyrus(&["rearm"]).exits(2).says("gyrus rearm --yes");
    assert!(latch(&world).exists());
    world
        .gyrus(&["rearm", "--yes"])
        .exits(0)
        .says("runs may go on");
    world
        .gyrus(&["rearm", "--yes"])
        .exits(0)
        .says("nothing is stopped");
    // A command must not be repeated: the model is told that it was cut off.
    let said = world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(said.out, "it was cut off\n");
    assert_eq!(settled(&world)[0], CallEnd::Cancelled);
    assert_eq!(world.file("ledger.txt"), "begun\n");
}

#[test]
fn a_person_lifts_it_at_a_terminal() {
    let world = World::new(THREE_STEPS);
    world.gyrus(&["stop", "--all"]).exits(0);
    let Some(mut terminal) = Terminal::start(&world, &["rearm"], "y\n") else {
        return;
    };
    terminal.shows("let runs go on?");
    terminal.types("no\n");
    assert_eq!(terminal.exit_code(), Some(4));
    let mut terminal = Terminal::start(&world, &["rearm"], "").unwrap();
    terminal.shows("let runs go on?");
    terminal.types("y\n");
    terminal.shows("runs may go on");
    assert_eq!(terminal.exit_code(), Some(0));
    world.run(&[]).exits(0);
    // The line prompt begins nothing either.
    world.gyrus(&["stop", "--all"]).exits(0);
    let mut terminal = Terminal::start(&world, &[], "").unwrap();
    terminal.shows("Type a goal.");
    terminal.types("say hello\r");
    terminal.shows("stopped for all since");
    terminal.types("\x04");
    assert_eq!(world.runs().len(), 1);
}

#[test]
fn while_a_model_is_asked() {
    // A provider that takes the question and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let model = format!("http://{}/v1#tiny", listener.local_addr().unwrap());
    let silent = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut all = Vec::new();
        // To the end of the connection, which is the end of the asking process.
        let _ = stream.read_to_end(&mut all);
    });
    let world = World::new(THREE_STEPS);
    let running = world.start(&world.run_arguments(&["--model", &model]));
    world.wait_for(|entry| matches!(entry, Entry::ModelCall(_)));
    world.gyrus(&["stop", "--all"]).exits(0).says("  ended ");
    running.end().exits(4).says("stopped by tester");
    silent.join().unwrap();
    world.gyrus(&["rearm", "--yes"]).exits(0);
    let script = format!("script:{}", world.path("script.toml").display());
    world
        .gyrus(&["resume", "last", "--model", &script])
        .exits(0);
    assert_eq!(world.file("ledger.txt"), "hello\n");
}

#[test]
fn while_a_person_is_asked_and_while_parked() {
    let script = THREE_STEPS.replace("out.txt\", content", ".envrc\", content");
    let script = script.replace("cat out.txt", "cat .envrc");
    let world = World::new(&script);
    let running = world.start(&["run", "go", "--approve", "edits", "--on-ask", "wait"]);
    world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));
    world.gyrus(&["stop", "--all"]).exits(0).says("  ended ");
    running.end();
    // An answer that comes now changes nothing.
    world.gyrus(&["approve", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(4);
    assert_eq!(world.file(".envrc"), "");
    world.gyrus(&["rearm", "--yes"]).exits(0);
    world
        .gyrus(&["resume", "last", "--approve", "auto"])
        .exits(0);
    assert_eq!(world.file("ledger.txt"), "hello\n");
}

#[test]
fn several_runs_end_at_once_and_ephemeral_ones_too() {
    let world = World::new(UNTIL_GO);
    let running = world.start(&world.run_arguments(&["--ephemeral"]));
    world.wait_for_file("ledger.txt", "begun");
    let others = [(); 2].map(|()| world.start(&world.run_arguments(&[])));
    world.wait_for_layers("ledger.txt", 3);
    let said = world.gyrus(&["stop", "--all"]).exits(0);
    // The ephemeral run may have stopped by itself, and be gone, before it was looked for.
    let ended = said.err.matches("  ended ").count();
    assert!((2..=3).contains(&ended), "{said:?}");
    for running in others.into_iter().chain([running]) {
        running.end().exits(4).says("stopped by tester");
    }
    assert_eq!(at_work(&world), Vec::<String>::new());
    let names = fs::read_dir(world.path("home/ephemeral"));
    assert_eq!(names.map_or(0, Iterator::count), 0);
}

#[test]
fn whatever_the_latch_holds_it_stops() {
    let world = World::new(THREE_STEPS);
    world.run(&["--max-steps", "1"]).exits(3);
    let garbage: [&[u8]; 3] = [b"", b"\xff\x00{", b"{\"by\": 1}"];
    for words in garbage {
        fs::write(latch(&world), words).unwrap();
        world
            .gyrus(&["resume", "last"])
            .exits(4)
            .says("stopped for all")
            .says("cannot be read");
    }
    fs::remove_file(latch(&world)).unwrap();
    std::os::unix::fs::symlink("nowhere", latch(&world)).unwrap();
    world.gyrus(&["resume", "last"]).exits(4);
    world.gyrus(&["rearm", "--yes"]).exits(0);
    world
        .gyrus(&["resume", "last", "--max-steps", "9"])
        .exits(0);
}

/// Nobody kills it: the file alone is enough.
#[test]
fn a_run_that_is_still_there_stops_by_itself() {
    let world = World::new(UNTIL_GO);
    let running = world.start(&world.run_arguments(&[]));
    world.wait_for_file("ledger.txt", "begun");
    fs::write(latch(&world), "").unwrap();
    running.end().exits(4).says("the run was stopped by");
    assert_eq!(settled(&world), [CallEnd::Cancelled]);
    world.gyrus(&["rearm", "--yes"]).exits(0);
    assert_eq!(world.gyrus(&["resume", "last"]).exits(0).out, "finished\n");
}

/// A suspended process cannot obey, and need not.
#[test]
fn suspended_processes_end_too() {
    let world = World::new(UNTIL_GO);
    let running = world.start(&world.run_arguments(&[]));
    world.wait_for_file("ledger.txt", "begun");
    running.signal(Signal::STOP);
    world.gyrus(&["stop", "--all"]).exits(0);
    assert_eq!(running.end().code, None);
    assert_eq!(at_work(&world), Vec::<String>::new());
}

fn tries(tool: &str, arguments: &str) -> String {
    format!(
        "[[reply]]\ncalls = [{{ tool = \"{tool}\", arguments = {{ {arguments} }} }}]\n[[reply]]\n\
         calls = [{{ tool = \"finish\", arguments = {{ reached = true, answer = \"tried\" }} }}]\n"
    )
}

fn commands(line: &str) -> String {
    tries("shell", &format!("command = \"{line}\""))
}

/// Has a run carry a command out without any sandbox, as a person allows. It waits for a file `go`.
fn unconfined(world: &World, line: &str, meanwhile: impl FnOnce(&Running)) {
    let line = format!("echo > begun; until [ -e go ]; do sleep 0.01; done; {line}; echo > tried");
    fs::write(world.path("script.toml"), commands(&line)).unwrap();
    let arguments = ["--sandbox", "off", "--on-ask", "wait"];
    let running = world.start(&world.run_arguments(&arguments));
    world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));
    world.gyrus(&["approve", "last"]).exits(0);
    world.wait_for_file("begun", "\n");
    meanwhile(&running);
    fs::write(world.work().join("go"), "").unwrap();
    world.wait_for_file("tried", "\n");
    running.signal(Signal::CONT);
    running.end();
}

#[test]
fn a_run_cannot_trip_it() {
    let world = World::new("");
    let home = world.path("home");
    let file = latch(&world);
    for (script, sandbox) in [
        (
            tries(
                "write",
                &format!("path = \"{}\", content = \"x\"", file.display()),
            ),
            "on",
        ),
        (commands(&format!("echo x > {}", file.display())), "on"),
        (commands(&format!("echo x > {}", file.display())), "off"),
        // By a road that no reading sees.
        (
            commands(&format!(
                "H=$(echo {}); echo x > $H/stopped",
                home.display()
            )),
            "on",
        ),
    ] {
        fs::write(world.path("script.toml"), &script).unwrap();
        let said = world.run(&["--sandbox", sandbox]);
        assert!(!file.exists(), "{script}{said:?}");
    }
    // Not even without a sandbox.
    let world = World::new("");
    let gyrus = env!("CARGO_BIN_EXE_gyrus");
    let line = format!(
        "GYRUS_HOME={} {gyrus} stop --all > said.txt 2>&1",
        world.path("home").display()
    );
    unconfined(&world, &line, |_| {});
    let said = world.file("said.txt");
    assert!(
        said.contains("a command of a run cannot stop all runs"),
        "{said:?}"
    );
    assert!(!latch(&world).exists());
}

#[test]
fn a_run_that_is_still_there_cannot_lift_it() {
    let world = World::new("");
    let home = world.path("home");
    let line = format!(
        "echo > begun; until [ -e go ]; do sleep 0.01; done; H=$(echo {}); rm -f $H/sto*; echo > \
         tried",
        home.display()
    );
    fs::write(world.path("script.toml"), commands(&line)).unwrap();
    let running = world.start(&world.run_arguments(&[]));
    world.wait_for_file("begun", "\n");
    // It would cut its command off at once.
    running.signal(Signal::STOP);
    fs::write(latch(&world), "").unwrap();
    fs::write(world.work().join("go"), "").unwrap();
    world.wait_for_file("tried", "\n");
    running.signal(Signal::CONT);
    running.end().exits(4);
    assert!(latch(&world).exists());

    // Not by gyrus itself either, and not without a sandbox.
    let world = World::new("");
    let line = format!(
        "GYRUS_HOME={} {} rearm --yes > said.txt 2>&1",
        world.path("home").display(),
        env!("CARGO_BIN_EXE_gyrus"),
    );
    unconfined(&world, &line, |running| {
        running.signal(Signal::STOP);
        fs::write(latch(&world), "").unwrap();
    });
    let said = world.file("said.txt");
    assert!(
        said.contains("a command of a run cannot let runs go on"),
        "{said:?}"
    );
    assert!(latch(&world).exists());
}
