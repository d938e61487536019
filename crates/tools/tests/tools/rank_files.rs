//! Tests of `rank_files`.
#![expect(clippy::unwrap_used, reason = "only tests use it")]

use std::fs;

use gyrus_contract::BuiltIn;
use gyrus_tools::RankFiles;
use serde_json::{Value, json};

use crate::site::World;

fn world() -> World {
    let world = World::new();
    let write = |name: &str, text: &[u8]| {
        let path = world.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("AGENTS.md", b"Run the tests.");
    write("CLAUDE.md", b"Nothing of note.");
    write("app/AGENTS.md", b"No globals in the app.");
    write("blueprints/retry.md", b"A retry waits longer each time.");
    write("blueprints/theme.md", b"Colours.");
    write("src/upload.rs", b"fn upload() { send() } // no retry yet");
    write("src/retry.rs", b"fn again() {}");
    write("src/other.rs", b"fn other() {}");
    write("src/large.rs", "// upload\n".repeat(1_000).as_bytes());
    write("logs/upload.log", b"upload upload upload");
    write(".hidden/upload.rs", b"upload");
    write(".gitignore", b"logs/\n");
    write("upload.png", b"\x89PNG upload \0");
    world
}

fn rank(world: &World, arguments: Value) -> Value {
    let output = world.call(&BuiltIn::new(RankFiles), arguments);
    assert!(!output.is_error, "{}", output.text);
    serde_json::from_str(&output.text).unwrap()
}

/// Formats each file as one line.
fn lines(answer: &Value) -> Vec<String> {
    let files = answer["files"].as_array().unwrap();
    let line = |file: &Value| {
        format!(
            "{} {} {}{}",
            file["path"].as_str().unwrap(),
            file["tokens"],
            file["why"].as_str().unwrap(),
            if file["chosen"].as_bool().unwrap() {
                ""
            } else {
                ", too much"
            }
        )
    };
    files.iter().map(line).collect()
}

#[test]
fn guidelines_come_first_and_what_fits_is_chosen() {
    let world = world();
    let goal = json!({"query": "Retry an upload", "path": ".", "max_tokens": 100});
    let answer = rank(&world, goal);
    let expected = [
        "AGENTS.md 4 guideline",
        "app/AGENTS.md 6 guideline",
        "blueprints/retry.md 8 guideline",
        "src/upload.rs 10 about the goal",
        "src/retry.rs 4 about the goal",
        "src/large.rs 2500 about the goal, too much",
    ];
    assert_eq!(lines(&answer), expected);
    assert_eq!(answer["considered"], 9);
    assert_eq!(answer["files"][0]["bytes"], 14);

    let little = rank(
        &world,
        json!({"query": "retry", "path": ".", "max_tokens": 9}),
    );
    let expected = [
        "AGENTS.md 4 guideline",
        "src/retry.rs 4 about the goal",
        "app/AGENTS.md 6 guideline, too much",
        "blueprints/retry.md 8 guideline, too much",
        "src/upload.rs 10 about the goal, too much",
    ];
    assert_eq!(lines(&little), expected);
}

#[test]
fn paths_are_those_that_read_takes() {
    let world = world();
    let below = rank(&world, json!({"query": "retry", "path": "src"}));
    assert_eq!(below["files"][0]["path"], "src/retry.rs");
    let nothing = rank(&world, json!({"query": "zebra", "path": "src"}));
    assert_eq!(nothing, json!({"files": [], "considered": 4}));
    for (arguments, words) in [
        (json!({"query": "?!", "path": "."}), "has no word"),
        (json!({"query": "x", "path": "AGENTS.md"}), "is a file"),
        (json!({"query": "x", "path": "none"}), "does not exist"),
        (
            json!({"query": "x", "path": ".."}),
            "is outside the workspace",
        ),
    ] {
        let output = world.call(&BuiltIn::new(RankFiles), arguments);
        assert!(
            output.is_error && output.text.contains(words),
            "{}",
            output.text
        );
    }
}

#[test]
fn the_list_is_bounded() {
    let world = World::new();
    for number in 0..300 {
        fs::write(world.path(&format!("{number}")), "word").unwrap();
    }
    let answer = rank(
        &world,
        json!({"query": "word", "path": ".", "max_tokens": 150}),
    );
    let files = lines(&answer);
    assert_eq!(files.len(), 200);
    let chosen = files.iter().filter(|file| !file.contains("too much"));
    assert_eq!(chosen.count(), 150);
    assert_eq!(answer["considered"], 300);
}
