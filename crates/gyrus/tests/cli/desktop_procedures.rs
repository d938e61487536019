//! A run does a task with the programs of a desktop, and it is done again without a model.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    desktop_runs::has,
    learning::questions,
    support::{Said, World, said, works},
};

const COMMAND: &str = "Write a note called milk.txt with the words buy oat milk";
const AGAIN: &str = "Write a note called tea.txt with the words buy green tea";
const KILLED: &str = "Write a note called bread.txt with the words buy black bread";

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
    let arguments = ["run", command, "--screen", "x11", "--on-ask", "deny"];
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

/// Whether there is zenity, which tells its version on a display only.
fn has_zenity() -> bool {
    works("sh", &["-c", "command -v zenity"])
}

/// A form of two fields that writes what was filled in, once it is sent.
const FORM: &str = "zenity --forms --title=Guests --text=Guest --separator=, \
                    --add-entry=Name --add-entry=Town --ok-label=Add > guest.txt";

/// Fills it in and sends it.
const FILLS: &str = r#"
[[reply]]
text = '''{"note": "begin", "actions": [{"do": "open_application", "application": "guests"}]}'''
[[reply]]
find = { name = '(\w+) textbox[^\n]*\n[^\n]*Name', town = '(\w+) textbox[^\n]*\n[^\n]*Town', add = '(\w+) button "Add"' }
text = '''{"note": "fill in", "actions": [{"do": "type_text", "on": "{{name}}", "text": "Ada Lovelace"}, {"do": "type_text", "on": "{{town}}", "text": "London"}, {"do": "click", "on": "{{add}}"}]}'''
[[reply]]
find = { token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "done", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "The guest is added."}]}'''
"#;

const GUEST: &str = "Add the guest Ada Lovelace from London";
const OTHER_GUEST: &str = "Add the guest Grace Hopper from Arlington";

#[test]
fn a_form_that_has_changed_is_handed_over() {
    if !has(&["Xvfb", "openbox"]) || !has_zenity() {
        return;
    }
    let world = World::new(FILLS);
    let guests = Script::new("guests", FORM);
    teaches(&world, GUEST, Some(&guests));
    assert_eq!(world.file("guest.txt"), "Ada Lovelace,London\n");
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

/// A run that teaches: it ended checked.
fn teaches(world: &World, command: &str, script: Option<&Script>) {
    let arguments = ["run", command, "--screen", "x11", "--on-ask", "deny"];
    let checks = ["--check", "cmd:ls *.txt", "--require", "checked"];
    let mut run = world.command(&[&arguments[..], &checks].concat());
    script.inspect(|script| script.known_to(&mut run));
    said(run.output().unwrap()).exits(0);
    let why = world.gyrus(&["procedures", "why", "last"]).exits(0);
    assert!(why.out.contains("it taught version 1"), "{why:#?}");
    promote(world);
}

/// After a crash the desktop is another one: what was typed is gone, and nothing is typed again.
#[test]
fn a_note_is_written_again_and_a_replay_that_was_killed_is_handed_over() {
    if !has(&["Xvfb", "openbox", "mousepad"]) {
        return;
    }
    let world = World::new(WRITES);
    teaches(&world, COMMAND, None);
    let replayed = run(&world, AGAIN).exits(0);
    assert_eq!(
        world.file("tea.txt").trim_end(),
        "buy green tea",
        "{replayed:#?}"
    );
    assert_eq!(questions(&world), 0);
    let mut killed = without_model(&world, KILLED);
    let mut run = killed.arg("--json").stdout(Stdio::piped()).spawn().unwrap();
    let entries = BufReader::new(run.stdout.take().unwrap()).lines();
    let typed = |line: &String| line.contains("Typed “buy black bread”");
    assert!(entries.map(Result::unwrap).any(|line| typed(&line)));
    run.kill().unwrap();
    run.wait().unwrap();
    let mut resume = world.command(&["resume", "last"]);
    resume.env_remove("GYRUS_MODEL").stdin(Stdio::null());
    is_handed_over(
        said(resume.output().unwrap()),
        "the desktop was started anew",
    );
    assert!(!world.work().join("bread.txt").exists());
}
