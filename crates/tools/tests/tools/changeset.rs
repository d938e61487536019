//! Changesets through their tool: arguments, verify commands, lost calls.

use std::fs;

use gyrus_contract::{ActionVerdict, BuiltIn, Digest, KeeperError, Probe};
use gyrus_tools::{ApplyChangeset, Shell};
use serde_json::{Value, json};

use crate::site::World;

fn tool() -> BuiltIn<ApplyChangeset> {
    BuiltIn::new(ApplyChangeset::new(Shell::with_variables(|_| None)))
}

#[expect(clippy::unwrap_used, reason = "only tests use it")]
fn world() -> World {
    let world = World::new();
    fs::write(world.path("a"), "old a\n").unwrap();
    fs::write(world.path("b"), "old b\n").unwrap();
    world
}

fn changes() -> Value {
    let before = |content: &str| Digest::of(content.as_bytes()).to_string();
    json!([
        {"path": "a", "before": before("old a\n"), "content": "new a\n"},
        {"path": "b", "before": before("old b\n")},
        {"path": "c/d", "content": "⟦secret:KEY⟧"}
    ])
}

#[test]
fn applies_and_says_what() {
    let world = world();
    let output = world.call(&tool(), json!({"changes": changes()}));
    assert_eq!(output.text, "applied: 1 created, 1 replaced, 1 deleted");
    assert_eq!(output.verdict, ActionVerdict::Changed);
    let files: Vec<_> = output.artifacts.iter().map(|file| &file.path).collect();
    assert_eq!(files, ["a", "c/d"]);
    assert_eq!(world.names(), ["a", "c"]);
    assert_eq!(fs::read_to_string(world.path("c/d")).unwrap(), "hunter2");

    let again = world.call(&tool(), json!({"changes": changes()}));
    assert_eq!(again.verdict, ActionVerdict::NoEffect, "{}", again.text);
}

#[test]
fn a_failing_verify_command_takes_everything_back() {
    let mut world = world();
    world.runs_commands = true;
    let verified = |line: &str| world.call(&tool(), json!({"changes": changes(), "verify": line}));
    let failed = verified("cat a; test ! -e c/d");
    assert!(failed.is_error);
    assert_eq!(failed.verdict, ActionVerdict::CannotTell);
    assert_eq!(
        failed.text,
        "the verify command failed; all files of the changeset are as they were before, and other \
         files that the command wrote are still there\nnew a\n[exit code 1]"
    );
    assert_eq!(world.names(), ["a", "b"]);
    assert_eq!(fs::read_to_string(world.path("a")).unwrap(), "old a\n");

    let passed = verified("test -e c/d && test ! -e b");
    assert!(!passed.is_error, "{}", passed.text);
    assert_eq!(world.names(), ["a", "c"]);
}

#[test]
fn a_command_that_cannot_be_run_verifies_nothing() {
    let world = world();
    let output = world.call(&tool(), json!({"changes": changes(), "verify": " "}));
    assert!(output.is_error && output.text.contains("`command` is empty"));
    assert_eq!(world.names(), ["a", "b"]);
    *world.outcome.lock().unwrap() = Err(KeeperError::Start {
        program: "bash".to_owned(),
        reason: "there is none".to_owned(),
    });
    let output = world.call(&tool(), json!({"changes": changes(), "verify": "true"}));
    assert!(output.is_error && output.text.contains("there is none"));
    assert_eq!(world.names(), ["a", "b"]);
}

/// The changes of the command are undone as well, and a changed file that it overwrote is kept.
#[test]
fn a_verify_command_that_is_killed_at_its_limit_takes_everything_back() {
    let mut world = world();
    world.runs_commands = true;
    let line = "echo formatted > a; rm c/d; kill -9 $$";
    let output = world.call(&tool(), json!({"changes": changes(), "verify": line}));
    assert!(output.is_error && output.text.contains("timed out"));
    assert_eq!(output.verdict, ActionVerdict::CannotTell);
    let said = "all files of the changeset are as they were before; what was written over them \
                meanwhile is in `.gyrus-kept-1`, and other files that the command wrote are still there";
    assert!(output.text.contains(said), "{}", output.text);
    assert_eq!(world.names(), [".gyrus-kept-1", "a", "b"]);
    assert_eq!(fs::read_to_string(world.path("a")).unwrap(), "old a\n");
    let kept = fs::read_to_string(world.path(".gyrus-kept-1/0")).unwrap();
    assert_eq!(kept, "formatted\n");
}

/// A run that is stopped while a verify command runs leaves the files as they were.
#[test]
fn a_call_that_is_dropped_while_verifying_takes_everything_back() {
    let mut world = world();
    world.commands_hang = true;
    world.call_and_drop(
        &tool(),
        json!({"changes": changes(), "verify": "sleep 9999"}),
    );
    assert_eq!(world.commands.lock().unwrap().len(), 1, "it was verifying");
    assert_eq!(world.names(), ["a", "b"]);
    assert_eq!(fs::read_to_string(world.path("a")).unwrap(), "old a\n");
    // The next call is not blocked.
    world.commands_hang = false;
    let output = world.call(&tool(), json!({"changes": changes()}));
    assert_eq!(output.verdict, ActionVerdict::Changed, "{}", output.text);
}

#[test]
fn refuses_what_is_no_changeset() {
    let world = world();
    let digest = Digest::of(b"old a\n").to_string();
    for (changes, words) in [
        (json!([]), "a changeset has 1 to 20000 files, not 0"),
        (
            json!([{"path": "a", "before": digest, "content": "x"}, {"path": "../out", "content": "x"}]),
            "`../out` is outside the workspace",
        ),
        (
            json!([{"path": "n", "content": "x"}, {"path": "./n", "content": "y"}]),
            "`./n` is named twice",
        ),
        (json!([{"path": "a"}]), "`before` must say which file"),
        (json!([{"path": "."}]), "the workspace itself"),
        (
            json!([{"path": ".gyrus-changeset/0", "content": ""}]),
            "where changesets are made ready",
        ),
        (json!([{"path": "a", "content": "x"}]), "`a` exists already"),
        (json!([{"path": "n", "content": "⟦secret:OTHER⟧"}]), "OTHER"),
        (
            json!([{"path": "n", "text": "x"}]),
            "unknown argument `text`",
        ),
        (
            json!([{"path": "n", "content": "x", "diff": ""}]),
            "`n` has both `content` and `diff`",
        ),
        (
            json!([{"path": "n", "diff": "x"}]),
            "`n` does not fit its diff: line 1 of the diff stands before the first hunk",
        ),
    ] {
        let output = world.call(&tool(), json!({"changes": changes}));
        assert!(
            output.is_error && output.text.contains(words),
            "{}",
            output.text
        );
        assert_eq!(output.verdict, ActionVerdict::NoEffect);
    }
    assert_eq!(world.names(), ["a", "b"]);
    assert!(!world.outside("out").exists());
}

#[test]
fn tells_whether_a_lost_call_happened() {
    let world = world();
    let probe = || {
        let call = world.resolved(&tool(), json!({"changes": changes()}));
        world.probe(&tool(), &call)
    };
    assert_eq!(probe(), Probe::DidNotHappen);
    world.call(&tool(), json!({"changes": changes()}));
    assert!(matches!(probe(), Probe::Happened(_)));
    // One of its files was in place when it was interrupted: that is undone at once, whatever the
    // result of the call.
    let step =
        json!({"path": "c/d", "what": {"create": {"new": 1, "after": Digest::of(b"hunter2")}}});
    let intent = json!({"version": 1, "steps": [step], "emptied": [], "made": ["c"]});
    fs::create_dir(world.path(".gyrus-changeset")).unwrap();
    fs::write(world.path(".gyrus-changeset/intent"), intent.to_string()).unwrap();
    assert_eq!(probe(), Probe::DidNotHappen);
    assert_eq!(world.names(), ["a"]);
}
