//! `gyrus apply`: what a run changed in its folder, made in another one.

use std::fs;

use crate::support::World;

const CHANGES: &str = r#"
[[reply]]
text = "Files."
calls = [
  { tool = "read", arguments = { path = "a.txt" } },
  { tool = "write", arguments = { path = "a.txt", content = "two\n" } },
  { tool = "shell", arguments = { command = "rm gone.txt; echo x > .envrc; mkdir -p new/deep; echo y > new/deep/b.txt" } },
]
[[reply]]
text = "May I?"
calls = [
  { tool = "read", arguments = { path = ".envrc" } },
  { tool = "write", arguments = { path = ".envrc", content = "touch hijacked\n" } },
]
[[reply]]
text = "Done."
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;

#[test]
fn changes_are_made_elsewhere_but_for_those_that_other_programs_run() {
    let world = World::new(CHANGES);
    let other = world.path("other");
    fs::create_dir(&other).unwrap();
    for folder in [world.work(), other.clone()] {
        fs::write(folder.join("a.txt"), "one\n").unwrap();
        fs::write(folder.join("gone.txt"), "x\n").unwrap();
    }
    let mut told = world.run(&["--on-ask", "park"]);
    for _ in 0..3 {
        if told.code != Some(5) {
            break;
        }
        world.gyrus(&["approve", "last"]).exits(0);
        told = world.gyrus(&["resume", "last", "--on-ask", "park"]);
    }
    told.exits(0);
    assert_eq!(world.file(".envrc"), "touch hijacked\n");
    let other_path = other.to_str().unwrap();
    let applied = world.gyrus(&["apply", "last", "--workdir", other_path, "--yes"]);
    let applied = applied.exits(0);
    assert!(applied.err.contains(".envrc: "), "{applied:?}");
    let file = |name: &str| fs::read_to_string(other.join(name)).unwrap_or_default();
    assert_eq!(
        (file("a.txt"), file("new/deep/b.txt")),
        ("two\n".into(), "y\n".into())
    );
    assert!(!other.join("gone.txt").exists() && !other.join(".envrc").exists());
    // What was undone is the run's own folder alone.
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    assert_eq!(
        (world.file("a.txt"), file("a.txt")),
        ("one\n".into(), "two\n".into())
    );
}

/// A command is compared with what was there before it, and that counts for undo as well.
#[test]
fn what_a_call_changed_before_one_that_changed_nothing_is_undone() {
    let world = World::new(
        r#"
[[reply]]
text = "Files."
calls = [
  { tool = "write", arguments = { path = "a.txt", content = "two\n" } },
  { tool = "shell", arguments = { command = "true" } },
]
[[reply]]
text = "Done."
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#,
    );
    world.run(&[]).exits(0);
    assert_eq!(world.file("a.txt"), "two\n");
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    assert!(!world.work().join("a.txt").exists());
}
