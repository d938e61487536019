//! A folder that is too large for snapshots: commands change it in a layer, unasked, and everything
//! can be taken back.

use std::{fs, os::unix::fs::PermissionsExt};

use gyrus_kernel::Entry;
use rustix::process::Signal;

use crate::support::World;

/// A folder with a file that no snapshot may hold, and a script that a command runs there.
fn world(script: &str, code: &str) -> World {
    let world = World::new(script);
    let work = world.work();
    let large = fs::File::create(work.join("large")).unwrap();
    large.set_len(1 << 40).unwrap();
    fs::create_dir_all(work.join("old/deep")).unwrap();
    for (name, text) in [
        ("kept", "kept\n"),
        ("changed", "one\n"),
        ("gone", "gone\n"),
        ("old/deep/file", "deep\n"),
        ("old/file", "old\n"),
        (".envrc", "mine\n"),
        ("code.sh", code),
    ] {
        fs::write(work.join(name), text).unwrap();
    }
    world
}

const RUNS_CODE: &str = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "sh code.sh" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;

const CODE: &str = "echo two > changed; rm gone; rm -r old; mkdir -p new/deep; echo n > new/deep/file; \
                    ln -s kept link; chmod 711 new; mkdir old; echo again > old/file; \
                    echo evil >> .envrc; echo x > new/.envrc; mkfifo pipe; touch kept";

fn is_as_before(world: &World) {
    for (name, text) in [
        ("kept", "kept\n"),
        ("changed", "one\n"),
        ("gone", "gone\n"),
        ("old/deep/file", "deep\n"),
        ("old/file", "old\n"),
        (".envrc", "mine\n"),
    ] {
        assert_eq!(world.file(name), text, "{name}");
    }
    for name in ["new", "link", "pipe"] {
        assert!(
            world.work().join(name).symlink_metadata().is_err(),
            "{name}"
        );
    }
}

#[test]
fn a_command_changes_it_unasked_and_is_taken_back() {
    let world = world(RUNS_CODE, CODE);
    world.gyrus(&["run", "go"]).exits(0);
    let work = world.work();
    for (name, text) in [
        ("kept", "kept\n"),
        ("changed", "two\n"),
        ("old/file", "again\n"),
        ("new/deep/file", "n\n"),
        (".envrc", "mine\n"),
    ] {
        assert_eq!(world.file(name), text, "{name}");
    }
    for name in ["gone", "old/deep", "new/.envrc", "pipe"] {
        assert!(work.join(name).symlink_metadata().is_err(), "{name}");
    }
    assert_eq!(
        fs::read_link(work.join("link")).unwrap().to_str(),
        Some("kept")
    );
    let mode = fs::metadata(work.join("new")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o711);
    assert_eq!(fs::metadata(work.join("large")).unwrap().len(), 1 << 40);
    world.gyrus(&["replay", "last"]).exits(0);
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    is_as_before(&world);
    world
        .gyrus(&["undo", "last", "--yes"])
        .exits(0)
        .says("there is nothing to take back");
}

#[test]
fn steps_follow_each_other_and_are_taken_back_to_one_of_them() {
    let script = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "echo two > changed; mkdir d; echo 1 > d/f" } }]
[[reply]]
calls = [{ tool = "write", arguments = { path = "changed", content = "three\n" } }]
[[reply]]
calls = [{ tool = "shell", arguments = { command = "echo four >> changed; echo 2 > d/f; rm kept" } }]
[[reply]]
calls = [{ tool = "write", arguments = { path = "d/g", content = "g\n" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;
    let world = world(script, "");
    world.gyrus(&["run", "go"]).exits(0);
    assert_eq!(world.file("changed"), "three\nfour\n");
    assert_eq!(world.file("d/g"), "g\n");
    world
        .gyrus(&["undo", "last", "--to", "2", "--yes"])
        .exits(0);
    assert_eq!(world.file("changed"), "three\n");
    assert_eq!(world.file("d/f"), "1\n");
    assert_eq!(world.file("kept"), "kept\n");
    assert!(!world.work().join("d/g").exists());
    fs::write(world.work().join("d/mine"), "").unwrap();
    world
        .gyrus(&["undo", "last", "--yes"])
        .exits(1)
        .says("d: it was changed since");
    assert_eq!(world.file("changed"), "one\n");
    assert!(world.work().join("d/mine").exists());
}

#[test]
fn control_files_wait_for_a_yes() {
    let world = world(RUNS_CODE, CODE);
    let said = world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    assert!(said.err.contains("+evil"), "{}", said.err);
    world.gyrus(&["approve", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(world.file(".envrc"), "mine\nevil\n");
    assert_eq!(world.file("new/.envrc"), "x\n");
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    is_as_before(&world);
}

#[test]
fn a_run_that_was_killed_applies_what_its_command_did_when_it_is_taken_up() {
    let world = world(RUNS_CODE, &format!("{CODE}; echo done > mark; sleep 60"));
    let running = world.start(&["run", "go"]);
    world.wait_for(|entry| matches!(entry, Entry::ToolStarted(_)));
    world.wait_for_layer("mark");
    assert_eq!(world.file("changed"), "one\n");
    running.signal(Signal::KILL);
    running.end();
    assert_eq!(world.file("changed"), "one\n");
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(world.file("changed"), "two\n");
    assert_eq!(world.file(".envrc"), "mine\n");
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    is_as_before(&world);
}

#[test]
fn what_a_person_changes_meanwhile_stays() {
    let world = world(
        RUNS_CODE,
        // An overlay remembers which names it did not find below, but not what a folder lists.
        "echo two > changed; echo two > kept; echo done > mark; until ls old | grep -q go; do sleep 0.05; done",
    );
    let running = world.start(&["run", "go"]);
    // Before, it would be as the command found it.
    world.wait_for_layer("mark");
    fs::write(world.work().join("changed"), "of a person\n").unwrap();
    fs::write(world.work().join("old/go"), "").unwrap();
    let said = running.end();
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.err.contains("somebody else changed it"),
        "{}",
        said.err
    );
    assert_eq!(world.file("changed"), "of a person\n");
    assert_eq!(world.file("kept"), "two\n");
}

#[test]
fn what_a_command_changes_in_a_run_that_may_only_read_is_thrown_away() {
    let script = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "sh code.sh && cat changed new/deep/file" } }]
[[reply]]
when = "thrown away"
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;
    let world = world(script, CODE);
    world
        .gyrus(&["run", "go", "--approve", "read-only"])
        .exits(0)
        .says("two")
        .says("changes were thrown away");
    is_as_before(&world);
}
