//! A process is killed after its run has ended and before all was learned from it: whoever starts
//! next learns the rest, once.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use gyrus_kernel::Entry;
use gyrus_runtime::{
    ledger::Ledger,
    lessons::Lessons,
    procedures::{KeptProcedures, PROCEDURE_LEDGER},
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    server::Server,
    support::{Running, TIMEOUT, World, said},
};

/// Writes what the goal says, and looks back.
const NOTES: &str = r#"
[[reply]]
calls = [{ tool = "write", arguments = { path = "list.txt", content = "12 apples for Ada Lovelace\n" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "It is noted." } }]
[[reply]]
purpose = "reflect"
text = '{"worked": "Write it at once.", "did_not": ""}'
"#;

const GOAL: &str = "Note 12 apples for Ada Lovelace.";

/// Answers, and teaches nothing.
const ANSWERS: &str = "[[reply]]\ntext = \"Done.\"\n";

const CHECKED: [&str; 4] = ["--check", "test -s list.txt", "--require", "checked"];

/// Returns a world with a memory.
fn world() -> World {
    let world = World::new(NOTES);
    fs::create_dir_all(world.path("notes")).unwrap();
    said(
        command(&world, &["memory", "add", "coffee"])
            .output()
            .unwrap(),
    )
    .exits(0);
    world
}

fn command(world: &World, arguments: &[&str]) -> Command {
    let mut command = world.command(arguments);
    command.env("GYRUS_VAULT", world.path("notes"));
    command
}

fn start(world: &World, goal: &str, more: &[&str]) -> Running {
    let fixed = ["run", goal, "--workdir", ".", "--approve", "auto"];
    Running::of(&mut command(world, &[&fixed, more].concat()))
}

fn teaches(world: &World) -> Running {
    start(world, GOAL, &[&CHECKED[..], &["--reflect"]].concat())
}

/// Starts a run that has nothing to do with the one before.
fn another(world: &World) -> Running {
    fs::write(world.path("script.toml"), ANSWERS).unwrap();
    start(world, "what is the sea like?", &["--loop", "single-shot"])
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < end, "it never happens: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Takes the lock under which lessons are changed.
fn hold_lessons(world: &World) -> File {
    let folder = world.path("home/lessons");
    fs::create_dir_all(&folder).unwrap();
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    lock
}

/// Takes the lock under which notes are changed.
fn hold_notes(world: &World) -> File {
    let vaults = fs::read_dir(world.path("home/memory")).unwrap();
    let logs: Vec<PathBuf> = vaults
        .map(|vault| vault.unwrap().path().join("changes.jsonl"))
        .collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
    let log = File::open(&logs[0]).unwrap();
    log.lock().unwrap();
    log
}

fn hold_procedures(world: &World) -> Ledger<KeptProcedures> {
    Ledger::open(&world.store(), PROCEDURE_LEDGER).unwrap()
}

fn kill(running: Running) {
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
}

/// Returns the procedures that are kept.
fn procedures(world: &World) -> Vec<Value> {
    let listed = world.gyrus(&["procedures", "list", "--json"]).exits(0);
    serde_json::from_str(&listed.out).unwrap()
}

fn lessons_are_kept(world: &World) -> bool {
    // A command of the program would learn first.
    let lessons = Lessons::of(&world.store(), &world.path("home/lessons"));
    lessons.all().unwrap().lessons().next().is_some()
}

/// Returns how often runs stand in the notes of the day, and in the one of the last runs.
fn noted(world: &World) -> [usize; 2] {
    ["Daily", "Context"].map(|folder| {
        let notes = fs::read_dir(world.path("notes").join(folder));
        let texts = notes
            .into_iter()
            .flatten()
            .map(|note| fs::read_to_string(note.unwrap().path()).unwrap_or_default());
        texts
            .map(|text| text.matches("Ada Lovelace.: reached").count())
            .sum()
    })
}

/// Checks that all was learned once, and that no mark is left.
#[track_caller]
fn learned_once(world: &World) {
    let procedures = procedures(world);
    assert_eq!(procedures.len(), 1, "{procedures:#?}");
    assert_eq!(procedures[0]["versions"], 1, "{procedures:#?}");
    let lessons = world.gyrus(&["memory", "lessons", "--json"]).exits(0);
    assert_eq!(lessons.out.lines().count(), 1, "{lessons:#?}");
    assert_eq!(noted(world), [1, 1]);
    let marks = fs::read_dir(world.path("home/learning")).unwrap();
    assert_eq!(marks.count(), 0);
}

#[test]
fn killed_before_and_within_learning_it_is_learned_once() {
    let world = world();
    // First before everything, then after one thing more each time.
    let lock = hold_lessons(&world);
    let killed = teaches(&world);
    world.wait_for(|entry| matches!(entry, Entry::RunEnded(_)));
    kill(killed);
    drop(lock);
    assert!(!lessons_are_kept(&world));

    let lock = hold_notes(&world);
    let killed = another(&world);
    until("a lesson is kept", || lessons_are_kept(&world));
    kill(killed);
    drop(lock);
    assert_eq!(noted(&world), [0, 0]);

    let ledger = hold_procedures(&world);
    let killed = another(&world);
    until("the run is noted", || noted(&world) == [1, 1]);
    kill(killed);
    drop(ledger);
    assert_eq!(world.runs().len(), 1);

    for _ in 0..2 {
        another(&world).end().exits(0);
        learned_once(&world);
    }
}

#[test]
fn the_server_catches_up_when_it_starts() {
    let world = world();
    let lock = hold_lessons(&world);
    let killed = teaches(&world);
    world.wait_for(|entry| matches!(entry, Entry::RunEnded(_)));
    kill(killed);
    drop(lock);
    let notes = world.path("notes");
    let server = Server::start_in(&world, &[], &[("GYRUS_VAULT", notes.to_str().unwrap())]);
    learned_once(&world);
    drop(server);
}

#[test]
fn a_run_of_the_server_teaches_as_one_in_a_terminal_does() {
    let world = world();
    let notes = world.path("notes");
    let server = Server::start_in(&world, &[], &[("GYRUS_VAULT", notes.to_str().unwrap())]);
    let options =
        json!({"approve": "auto", "check": [CHECKED[1]], "require": "checked", "reflect": true});
    let command = server.run(GOAL, &options);
    let ended = server.wait_for_end(&command);
    assert_eq!(ended["stage"]["state"], "ended", "{ended:#}");
    learned_once(&world);
    drop(server);
}

#[test]
fn two_that_start_at_once_learn_it_once() {
    let world = world();
    let lock = hold_lessons(&world);
    let killed = teaches(&world);
    world.wait_for(|entry| matches!(entry, Entry::RunEnded(_)));
    kill(killed);
    drop(lock);
    let both = [another(&world), another(&world)];
    for run in both {
        run.end().exits(0);
    }
    learned_once(&world);
}

#[test]
fn a_run_that_was_killed_before_its_end_teaches_when_it_was_resumed() {
    let world = world();
    let mut killed = command(
        &world,
        &[
            &[
                "run",
                GOAL,
                "--workdir",
                ".",
                "--approve",
                "auto",
                "--reflect",
            ],
            &CHECKED[..],
        ]
        .concat(),
    );
    killed.env("GYRUS_CRASH_AFTER", "6");
    assert_eq!(said(killed.output().unwrap()).code, None);
    let run = world.runs()[0].to_string();
    another(&world).end().exits(0);
    fs::write(world.path("script.toml"), NOTES).unwrap();
    said(command(&world, &["resume", &run]).output().unwrap()).exits(0);
    learned_once(&world);
}

#[test]
fn a_killed_replay_is_counted_once() {
    let world = world();
    teaches(&world).end().exits(0);
    let kept = procedures(&world);
    let name = kept[0]["name"].as_str().unwrap();
    world
        .gyrus(&["procedures", "promote", name, "--yes"])
        .exits(0);
    let ledger = hold_procedures(&world);
    fs::write(world.path("script.toml"), "").unwrap();
    let replay = start(&world, "Note 7 apples for Ada Lovelace.", &[]);
    until("the replay is noted", || noted(&world) == [2, 2]);
    kill(replay);
    drop(ledger);
    assert_eq!(world.file("list.txt"), "7 apples for Ada Lovelace\n");
    assert_eq!(procedures(&world)[0]["counts"]["replayed"], 0);
    for _ in 0..2 {
        another(&world).end().exits(0);
        assert_eq!(procedures(&world)[0]["counts"]["replayed"], 1);
    }
}

#[test]
fn marks_that_name_nothing_go() {
    let world = world();
    let marks = world.path("home/learning");
    fs::create_dir_all(marks.join("a folder")).unwrap();
    fs::write(marks.join("not a run"), "").unwrap();
    for _ in 0..20 {
        fs::write(marks.join(gyrus_contract::RunId::new().to_string()), "").unwrap();
    }
    for _ in 0..2 {
        another(&world).end().exits(0);
    }
    // What is no mark is left alone.
    assert_eq!(fs::read_dir(marks).unwrap().count(), 2);
}
