//! Everything that can be typed wrong: one sentence, a hint, exit code 2, and nothing done.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt, path::Path};

use gyrus_kernel::log_name;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{THREE_STEPS, World, said};

#[test]
fn wrong_inputs_are_refused_with_a_hint() {
    let world = World::new(THREE_STEPS);
    let person = world.path("person");
    let person = person.to_str().unwrap();
    let broken = world.path("broken.toml");
    std::fs::write(&broken, "[[reply]]\ntxt = \"x\"\n").unwrap();
    let broken = format!("script:{}", broken.display());
    for (arguments, words) in [
        (&["run", "go", "--modle", "x"][..], "--model"),
        (&["rnu", "go"], "run"),
        (&["run"], "GOAL"),
        (&["run", "  "], "the goal is empty"),
        (
            &["run", "go", "--model", "gpt"],
            "no provider is called `gpt`",
        ),
        (
            &["run", "go", "--model", "script:nowhere.toml"],
            "cannot be read",
        ),
        (&["run", "go", "--model", &broken], "did you mean `text`?"),
        (&["run", "go", "--loop", "raect"], "did you mean `react`?"),
        (&["run", "go", "--approve", "evrything"], "is not a mode"),
        (&["run", "go", "--workdir", person], "is your home folder"),
        (
            &["run", "go", "--workdir", "/"],
            "the whole file system cannot be the workspace",
        ),
        (&["run", "go", "--workdir", "../home"], "--workdir FOLDER"),
        (&["run", "go", "--workdir", "nowhere"], "cannot be opened"),
        (&["trust", "nowhere"], "gyrus trust FOLDER"),
        (
            &["run", "go", "--workdir", "../script.toml"],
            "is not a folder",
        ),
        (
            &["run", "go", "--max-cost", "much"],
            "not an amount of US dollars",
        ),
        (&["run", "go", "--max-time", "10"], "is not a duration"),
        (&["run", "go", "--on-ask", "maybe"], "possible values"),
        (
            &["run", "go", "--trace", "/nowhere/trace"],
            "cannot be written",
        ),
        (&["resume", "last"], "there is no run yet"),
        (&["resume", "abc"], "too short"),
        (&["show", "0123456789"], "there is no run `0123456789`"),
        (&["approve", "last", "1.x"], "names no question"),
        (&["runs", "import", "nowhere"], "cannot be read"),
        (
            &["runs", "import", "../script.toml"],
            "not a complete export",
        ),
    ] {
        let said = world.gyrus(arguments).exits(2);
        assert!(
            said.err.contains(words),
            "{arguments:?}: `{words}` is not in\n{}",
            said.err
        );
        assert_eq!(said.out, "", "{arguments:?}");
    }
    assert!(world.runs().is_empty(), "nothing was begun");
}

#[test]
fn the_configuration_names_line_and_remedy() {
    let world = World::new(THREE_STEPS);
    std::fs::create_dir(world.path("home")).unwrap();
    std::fs::write(world.path("home/config.toml"), "\nmodl = \"x\"\n").unwrap();
    let said = world.run(&[]).exits(2);
    insta::assert_snapshot!(world.mask(&said.err), @r"
    error: [folder]/home/config.toml, line 2: unknown key `modl`, expected one of `model`, `assess`, `policy`, `effort`, `keys`, `loop`, `approve`, `on-ask`, `reflect`, `limits`, `approvals`, `engineer`, `telemetry`, `hooks`, `serve`, `chat`, `memory`, `sandbox`, `language-servers`, `delegate`, `mcp`, `web-search`, `update`
      hint: did you mean `model`?
    ");
}

#[test]
fn groups_list_when_they_stand_alone() {
    let world = World::new(THREE_STEPS);
    for group in ["agents", "mcp", "plugins", "procedures", "runs", "skills"] {
        let alone = world.gyrus(&[group, "--json"]).exits(0).out;
        assert_eq!(alone, world.gyrus(&[group, "list", "--json"]).exits(0).out);
        world.gyrus(&[group]).exits(0);
    }
    world.gyrus(&["skills", "--json", "show", "x"]).exits(2);
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let world = World::new(THREE_STEPS);
    let mut command = world.command(&["run"]);
    said(command.arg(OsStr::from_bytes(b"\xff")).output().unwrap())
        .exits(2)
        .says("UTF-8");
}

#[test]
fn no_home_at_all_is_said() {
    let world = World::new(THREE_STEPS);
    let mut command = world.command(&world.run_arguments(&[]));
    command.env_remove("HOME").env_remove("GYRUS_HOME");
    said(command.output().unwrap()).exits(2).says("GYRUS_HOME=");
}

#[test]
fn a_state_folder_that_cannot_be_made_is_said() {
    let world = World::new(THREE_STEPS);
    let mut command = world.command(&world.run_arguments(&[]));
    command.env("GYRUS_HOME", "/proc/none");
    said(command.output().unwrap())
        .exits(2)
        .says("cannot be used")
        .says("GYRUS_HOME=");
}

#[test]
fn without_arguments_an_overview() {
    let world = World::new("");
    let said = world.gyrus(&[]).exits(0);
    assert!(said.out.contains("  demo  "), "{}", said.out);
    assert!(
        world
            .gyrus(&["--version"])
            .exits(0)
            .out
            .starts_with("gyrus ")
    );
    for command in ["run", "resume", "runs", "fork", "approve", "demo", "doctor"] {
        world.gyrus(&[command, "--help"]).exits(0);
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let world = World::new(THREE_STEPS);
    world.run(&[]).exits(0);
    let mut command = world.command(&["show", "last"]);
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let said = said(child.wait_with_output().unwrap());
    assert_eq!(said.err, "");
}

/// A pipe blocks whoever opens it until another program writes to it.
#[test]
fn a_named_pipe_is_refused_wherever_a_file_is_named() {
    let world = World::new(THREE_STEPS);
    let pipe = world.path("pipe");
    let make = |path: &Path| mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
    make(&pipe).unwrap();
    let pipe = pipe.to_str().unwrap();
    for arguments in [
        vec!["run", "say hello", "--file", pipe],
        vec!["run", "say hello", "--image", pipe],
        vec!["run", "say hello", "--model", &format!("script:{pipe}")],
        vec!["eval", pipe],
        vec!["runs", "import", pipe],
    ] {
        world
            .gyrus(&arguments)
            .exits(2)
            .says("it is a pipe, a socket or a device, not a regular file");
    }

    world.run(&[]).exits(0);
    let run = world.store().folder(&log_name(world.runs()[0]));
    for entry in fs::read_dir(&run).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            fs::remove_file(entry.path()).unwrap();
            make(&entry.path()).unwrap();
        }
    }
    world.gyrus(&["runs"]);
    world.gyrus(&["runs", "verify"]);
    make(&world.path("home/config.toml")).unwrap();
    world
        .gyrus(&["run", "say hello"])
        .exits(2)
        .says("not a regular file");
}

/// A refusal of the system is told in words of its own, with what to do, whatever command met it.
#[test]
fn causes_of_the_system_are_told_in_words() {
    let world = World::new(THREE_STEPS);
    world.gyrus(&["run", "go"]);
    world.gyrus(&["record", "-o", "out.toml"]).exits(0);
    let told = |arguments: &[&str], words: &str| {
        let said = world.gyrus(arguments).says(words);
        assert!(!said.err.contains("os error"), "{said:?}");
    };
    told(
        &["record", "-o", "out.toml"],
        "name another one, or remove it first",
    );
    told(&["record", "-o", "no/out.toml"], "it does not exist");
    told(
        &["show", "--html", "-o", "no/page.html"],
        "it does not exist",
    );
    told(
        &["run", "go", "--file", "out.toml/x"],
        "a part of the path is a file",
    );
    told(
        &["run", "go", "--file", &"x".repeat(300)],
        "the name is too long",
    );
}
