//! A person shows a task with the programs of a desktop, and it is done again without them.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
    time::Instant,
};

use gyrus_kernel::Entry;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    desktop_runs::{has, servers_of},
    learning::questions,
    support::{Said, TIMEOUT, World, said, works},
    taking_over::{Person, SECRET, is_nowhere},
};

const COMMAND: &str = "Write a note called milk.txt with the words buy oat milk";
const AGAIN: &str = "Write a note called tea.txt with the words buy green tea";

/// The button of the editor's window for saving.
const SAVE: (f64, f64) = (1140.0, 771.0);

/// A teacher at a program.
fn teacher(world: &World, command: &str, program: &[&str]) -> Person {
    let arguments = ["teach", command, "--screen", "x11", "--"];
    begins(world.command(&[&arguments[..], program].concat()))
}

/// A teacher at a script.
fn teacher_at(world: &World, command: &str, script: &Script) -> Person {
    let arguments = ["teach", command, "--screen", "x11", "--", script.name];
    let mut command = world.command(&arguments);
    script.known_to(&mut command);
    begins(command)
}

fn begins(mut command: Command) -> Person {
    command.env_remove("GYRUS_MODEL").stdout(Stdio::piped());
    let mut person = Person::at(command);
    person.opens();
    person
}

/// A program that is a script. The sandbox shows nothing else below `/tmp` than the folder of the run,
/// and there no program is looked for, so it lies elsewhere.
struct Script {
    folder: TempDir,
    name: &'static str,
}

impl Script {
    fn new(name: &'static str, text: &str) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let script = Self { folder, name };
        script.becomes(text);
        script
    }

    fn becomes(&self, text: &str) {
        let file = self.folder.path().join(self.name);
        fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Lets a command find it.
    fn known_to(&self, command: &mut Command) {
        let others = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{others}", self.folder.path().display()));
    }
}

fn presses(person: &Person, key: &str) {
    person.does(&json!([{"do": "key", "key": key}]));
}

/// Shows how a note is written with mousepad.
fn shows_a_note(person: &Person, name: &str, text: &str) {
    person.sees("Untitled 1 - Mousepad");
    person.types(text);
    presses(person, "Control+s");
    person.sees("Save As");
    person.types(name);
    person.clicks(SAVE);
    person.sees(&format!("{name} - Mousepad"));
}

fn listed(world: &World) -> Vec<Value> {
    let listed = world.gyrus(&["procedures", "list", "--json"]).exits(0).out;
    serde_json::from_str(&listed).unwrap()
}

/// Promotes the only procedure, and returns what it does.
fn promote(world: &World) -> String {
    let listed = listed(world);
    assert_eq!(listed.len(), 1, "{listed:#?}");
    let name = listed[0]["name"].as_str().unwrap();
    let promote = ["procedures", "promote", name, "--yes"];
    world.gyrus(&promote).exits(0).out
}

/// A command for a desktop, where there is no model and nobody to ask.
fn without_model(world: &World, command: &str) -> Command {
    let arguments = ["run", "--screen", "x11", "--on-ask", "deny", "--", command];
    let mut run = world.command(&arguments);
    run.env_remove("GYRUS_MODEL").stdin(Stdio::null());
    run
}

fn run(world: &World, command: &str) -> Said {
    said(without_model(world, command).output().unwrap())
}

/// Checks that a run would go on with a model, of which there is none.
fn is_handed_over(said: Said, why: &str) {
    let said = said.exits(7);
    assert!(said.err.contains("is handed over to a model"), "{said:#?}");
    assert!(said.err.contains(why), "{said:#?}");
}

#[test]
fn a_note_is_written_again_with_other_words() {
    if !has(&["Xvfb", "openbox", "mousepad"]) {
        return;
    }
    let world = World::new("");
    let person = teacher(&world, COMMAND, &["mousepad"]);
    shows_a_note(&person, "milk.txt", "buy oat milk");
    assert_eq!(person.leaves(""), Some(0));
    assert_eq!(world.file("milk.txt").trim_end(), "buy oat milk");

    // Nobody promoted it.
    run(&world, AGAIN).exits(2).says("there is no model");
    let does = promote(&world);
    for line in [
        "only with --screen x11",
        "1. open application “mousepad”",
        "press key “Control+s”",
        "in textbox beside “Name:”, in the window “Save As”",
    ] {
        assert!(does.contains(line), "{line}: {does}");
    }
    let replayed = run(&world, AGAIN).exits(0);
    let written = world.file("tea.txt");
    assert_eq!(written.trim_end(), "buy green tea", "{replayed:#?}");
    assert_eq!(questions(&world), 0);
    world.replays();

    // A file that is there already has the editor ask in a window of its own.
    is_handed_over(run(&world, AGAIN), "Save As");
    assert_eq!(world.file("tea.txt"), written);
    // Without a desktop it is not replayed.
    let mut without = world.command(&["run", "--screen", "none", "--", AGAIN]);
    without.env_remove("GYRUS_MODEL");
    said(without.output().unwrap())
        .exits(2)
        .says("there is no model");
    let name = listed(&world)[0]["name"].as_str().unwrap().to_owned();
    let skill = world.gyrus(&["procedures", "export", &name, "--skill"]);
    let skill = fs::read_to_string(skill.exits(0).out.trim()).unwrap();
    assert!(!skill.contains("milk"), "{skill}");
}

#[test]
fn a_cell_of_a_sheet_is_filled_in_again() {
    if !has(&["Xvfb", "openbox", "gnumeric"]) {
        return;
    }
    let world = World::new("");
    let sheet = "what,count\nchair,1\ntable,2\n";
    fs::write(world.work().join("stock.csv"), sheet).unwrap();
    let command = "Put 4 into the cell B2 of stock.csv and save it as four.gnumeric";
    let person = teacher(&world, command, &["gnumeric", "stock.csv"]);
    person.sees("stock.csv - Gnumeric");
    // The name of the cell, and what is in it.
    for (field, text) in [((240.0, 259.0), "B2"), ((700.0, 259.0), "4")] {
        person.clicks(field);
        presses(&person, "Control+a");
        person.types(text);
        presses(&person, "Enter");
    }
    person.sees("*stock.csv - Gnumeric");
    presses(&person, "Control+s");
    person.sees("Save the current workbook as");
    presses(&person, "Control+a");
    person.types("four.gnumeric");
    presses(&person, "Enter");
    person.sees("\"four.gnumeric - Gnumeric");
    assert_eq!(person.leaves(""), Some(0));
    promote(&world);
    let again = "Put 7 into the cell B3 of stock.csv and save it as seven.gnumeric";
    run(&world, again).exits(0);
    assert_eq!(questions(&world), 0);
    let unpacked = Command::new("gzip")
        .args(["-dc", "seven.gnumeric"])
        .current_dir(world.work())
        .output()
        .unwrap();
    let sheet = String::from_utf8_lossy(&unpacked.stdout).into_owned();
    let cell = sheet
        .lines()
        .find(|line| line.contains("Row=\"2\" Col=\"1\""));
    assert!(cell.is_some_and(|cell| cell.contains(">7<")), "{cell:?}");
}

/// Whether there is zenity, which tells its version on a display only.
fn has_zenity() -> bool {
    works("sh", &["-c", "command -v zenity"])
}

/// After a crash the desktop is another one: what was typed is gone, and nothing is typed again.
#[test]
fn a_replay_on_a_desktop_that_was_killed_is_handed_over() {
    if !has(&["Xvfb", "openbox", "mousepad"]) {
        return;
    }
    let world = World::new("");
    let person = teacher(&world, COMMAND, &["mousepad"]);
    shows_a_note(&person, "milk.txt", "buy oat milk");
    assert_eq!(person.leaves(""), Some(0));
    promote(&world);
    let mut run = without_model(&world, AGAIN).spawn().unwrap();
    world.wait_for(|entry| {
        let Entry::ToolResulted(result) = entry else {
            return false;
        };
        format!("{:?}", result.text).contains("Typed “buy green tea”")
    });
    run.kill().unwrap();
    run.wait().unwrap();
    let mut resume = world.command(&["resume", "last"]);
    resume.env_remove("GYRUS_MODEL").stdin(Stdio::null());
    is_handed_over(
        said(resume.output().unwrap()),
        "the desktop was started anew",
    );
    assert!(!world.work().join("tea.txt").exists());
}

/// A form of two fields that writes what was filled in, once it is sent.
const FORM: &str = "zenity --forms --title=Guests --text=Guest --separator=, \
                    --add-entry=Name --add-entry=Town --ok-label=Add > guest.txt";

const GUEST: &str = "Add the guest Ada Lovelace from London";
const OTHER_GUEST: &str = "Add the guest Grace Hopper from Arlington";

#[test]
fn a_form_that_has_changed_is_handed_over() {
    if !has(&["Xvfb", "openbox"]) || !has_zenity() {
        return;
    }
    let world = World::new("");
    let guests = Script::new("guests", FORM);
    let person = teacher_at(&world, GUEST, &guests);
    person.sees("Guests");
    person.types("Ada Lovelace");
    presses(&person, "Tab");
    // A change of mind.
    person.types("Paris");
    presses(&person, "Control+a");
    person.types("London");
    person.clicks((716.0, 476.0));
    person.sees("\"tabs\":[]");
    assert_eq!(person.leaves(""), Some(0));
    assert_eq!(world.file("guest.txt"), "Ada Lovelace,London\n");
    promote(&world);
    let again = || {
        let mut command = without_model(&world, OTHER_GUEST);
        guests.known_to(&mut command);
        said(command.output().unwrap())
    };
    again().exits(0);
    assert_eq!(world.file("guest.txt"), "Grace Hopper,Arlington\n");

    let swapped = FORM.replace("=Name --add-entry=Town", "=Town --add-entry=Name");
    let more = FORM.replace("=Name", "=Name --add-entry=Rank");
    let renamed = FORM.replace("Name", "Surname");
    let titled = FORM.replace("Guests", "Enemies");
    let in_the_way = format!("zenity --info --title=News --text=News & sleep 1; {FORM}");
    for (changed, why) in [
        (swapped, "beside “Name” is not there"),
        (more, "beside “Name” is not there"),
        (renamed, "beside “Name” is not there"),
        (titled, "“Enemies”"),
        (in_the_way, "“News”"),
    ] {
        fs::write(world.work().join("guest.txt"), "untouched").unwrap();
        guests.becomes(&changed);
        is_handed_over(again(), why);
        let left = world.file("guest.txt");
        assert!(left == "untouched" || left.is_empty(), "{changed}: {left}");
    }
}

#[test]
fn a_desktop_teaches_no_password() {
    if !has(&["Xvfb", "openbox"]) || !has_zenity() {
        return;
    }
    let world = World::new("");
    let lock = Script::new("lock", "zenity --password --title=Lock");
    let person = teacher_at(&world, "Open the lock", &lock);
    person.sees("Lock");
    person.types(SECRET);
    presses(&person, "Enter");
    person.sees("\"tabs\":[]");
    assert_eq!(person.leaves(""), Some(1));
    assert_eq!(listed(&world), Vec::<Value>::new());
    is_nowhere(&world.path("home"), SECRET.as_bytes());
}

#[test]
fn a_desktop_teaches_nothing_where_nothing_was_shown() {
    if !has(&["Xvfb", "openbox", "mousepad"]) {
        return;
    }
    let world = World::new("");
    let other_button = json!([{
        "do": "mouse", "kind": "down", "x": 0.5, "y": 0.5, "button": "right", "buttons": 2,
        "count": 1, "held": 0,
    }]);
    let shows: [&dyn Fn(&Person); 5] = [
        &|_| {},
        &|person| person.does(&other_button),
        // The frame of the window.
        &|person| person.clicks((600.0, 156.0)),
        &|person| person.types("not in the command"),
        &|person| person.types(&"word ".repeat(200)),
    ];
    for show in shows {
        let person = teacher(&world, COMMAND, &["mousepad"]);
        person.sees("Untitled 1 - Mousepad");
        show(&person);
        assert_eq!(person.leaves(""), Some(1));
    }
    assert_eq!(listed(&world), Vec::<Value>::new());
}

#[test]
fn a_desktop_teaches_no_commands_of_a_terminal() {
    if !has(&["Xvfb", "openbox", "xterm"]) {
        return;
    }
    let world = World::new("");
    let person = teacher(&world, "Touch flag in xterm", &["xterm"]);
    person.sees("tabs");
    person.clicks((640.0, 400.0));
    person.types("touch flag");
    assert_eq!(person.leaves(""), Some(1));
    assert_eq!(listed(&world), Vec::<Value>::new());
}

#[test]
fn a_desktop_that_is_taught_leaves_nothing_when_it_is_killed() {
    if !has(&["Xvfb", "openbox", "mousepad"]) {
        return;
    }
    let world = World::new("");
    let temporary = world.path("temporary");
    fs::create_dir(&temporary).unwrap();
    let starts = || {
        let arguments = ["teach", COMMAND, "--screen", "x11", "--", "mousepad"];
        let mut command = world.command(&arguments);
        command.env("TMPDIR", &temporary);
        let person = begins(command);
        person.sees("Untitled 1 - Mousepad");
        person.types("buy oat milk");
        person
    };
    for signal in [Signal::KILL, Signal::TERM] {
        let person = starts();
        let servers = servers_of(person.process());
        assert_eq!(servers.len(), 1);
        let own = Pid::from_raw(person.process().cast_signed()).unwrap();
        kill_process(own, signal).unwrap();
        assert_ne!(person.ends(), Some(0));
        let begun = Instant::now();
        while test_kill_process(servers[0]).is_ok() {
            assert!(begun.elapsed() < TIMEOUT, "the display is still there");
            std::thread::yield_now();
        }
    }
    // What the killed one left in its folder is gone, too: the second one swept it.
    let left: Vec<_> = fs::read_dir(&temporary).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(listed(&world), Vec::<Value>::new());
}

/// Writes a note, and finishes once it is saved.
const WRITES: &str = r#"
[[reply]]
text = '''{"note": "begin", "actions": [{"do": "open_application", "application": "mousepad"}]}'''
[[reply]]
find = { text = '(\w+) textbox' }
text = '''{"note": "write", "actions": [{"do": "type_text", "on": "{{text}}", "text": "buy oat milk"}, {"do": "press_key", "on": "{{text}}", "key": "Control+s"}]}'''
[[reply]]
find = { text = '(b\w+) textbox', save = '(b\w+) button "Save"' }
text = '''{"note": "save", "actions": [{"do": "type_text", "on": "{{text}}", "text": "milk.txt", "replace": true}, {"do": "click", "on": "{{save}}"}]}'''
[[reply]]
when = 'milk.txt - Mousepad'
find = { token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "done", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "The note is written."}]}'''
"#;

#[test]
fn a_run_on_a_desktop_teaches_as_a_person_does() {
    if !has(&["Xvfb", "openbox", "mousepad"]) {
        return;
    }
    let world = World::new(WRITES);
    let arguments = ["run", COMMAND, "--screen", "x11", "--on-ask", "deny"];
    let checks = ["--check", "cmd:ls *.txt", "--require", "checked"];
    let ended = world.gyrus(&[&arguments[..], &checks].concat());
    ended.exits(0);
    let why = world.gyrus(&["procedures", "why", "last"]).exits(0);
    assert!(why.out.contains("it taught version 1"), "{why:#?}");
    promote(&world);
    let replayed = run(&world, AGAIN).exits(0);
    assert_eq!(
        world.file("tea.txt").trim_end(),
        "buy green tea",
        "{replayed:#?}"
    );
    assert_eq!(questions(&world), 0);
}

#[test]
fn what_cannot_be_taught_on_a_desktop_is_said_at_once() {
    let world = World::new("");
    let refused = |arguments: &[&str], words: &str| {
        let said = world.gyrus(&[&["teach", "do it"], arguments].concat());
        said.exits(2).says(words);
    };
    refused(&["--screen", "x11"], "PROGRAM");
    refused(&["--", "mousepad"], "--screen");
    refused(
        &[
            "--screen",
            "x11",
            "--url",
            "http://a.example",
            "--",
            "mousepad",
        ],
        "--url",
    );
    if cfg!(feature = "desktop") {
        refused(
            &["--screen", "x11", "--", "mousepad", "../a"],
            "there is no file",
        );
        refused(
            &["--screen", "x11", "--", "mousepad", "/etc/passwd"],
            "of the folder",
        );
        let unknown = ["teach", "do it", "--screen", "x11", "--", "no-such-program"];
        world
            .gyrus(&unknown)
            .exits(1)
            .says("no application is called");
    } else {
        refused(&["--screen", "x11", "--", "mousepad"], "--features desktop");
    }
}
