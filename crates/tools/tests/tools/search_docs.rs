//! Tests of `search_docs`.
#![expect(clippy::unwrap_used, reason = "only tests use it")]

use std::fs;

use gyrus_contract::BuiltIn;
use gyrus_tools::SearchDocs;
use serde_json::{Value, json};

use crate::site::World;

fn search(world: &World, arguments: Value) -> String {
    let output = world.call(&BuiltIn::new(SearchDocs), arguments);
    assert!(!output.is_error, "{}", output.text);
    output.text
}

fn world() -> World {
    let world = World::new();
    fs::create_dir_all(world.path("docs/deep")).unwrap();
    let write = |name: &str, text: &[u8]| fs::write(world.path(name), text).unwrap();
    write(
        "docs/clock.md",
        b"# Clocks\n\nThe clock tree has four levels.\n\n# Skew\n\nSkew stays below 20 ps.\n",
    );
    write(
        "docs/deep/power.txt",
        b"Power rails are 1.8 V.\r\nNothing about time.\r\n",
    );
    write("docs/picture.png", b"\x89PNG\r\n\x1a\n\0\0");
    write("docs/latin.txt", b"caf\xe9 skew");
    world
}

#[test]
fn the_best_passages_come_first_with_their_places() {
    insta::assert_snapshot!(search(&world(), json!({"query": "skew of the clock?", "path": "docs"})), @"
    docs/clock.md:5
    # Skew

    Skew stays below 20 ps.

    docs/clock.md:1
    # Clocks

    The clock tree has four levels.

    [searched: 2 documents]
    [left out: 2 files with no text, unreadable or too large]
    ");
}

#[test]
fn the_name_of_a_document_counts_and_nothing_is_said_to_be_nothing() {
    let world = world();
    let found = search(
        &world,
        json!({"query": "power", "path": "docs", "max_passages": 1}),
    );
    assert!(
        found.starts_with("docs/deep/power.txt:1\nPower rails"),
        "{found}"
    );
    let found = search(&world, json!({"query": "zebra", "path": "docs"}));
    assert!(
        found.starts_with("(no passage has any of these words)"),
        "{found}"
    );
    for (arguments, words) in [
        (json!({"query": "?!", "path": "docs"}), "has no word"),
        (json!({"query": "x", "path": "docs/clock.md"}), "is a file"),
        (json!({"query": "x", "path": "none"}), "does not exist"),
        (json!({"path": "docs"}), "missing argument `query`"),
    ] {
        let output = world.call(&BuiltIn::new(SearchDocs), arguments);
        assert!(
            output.is_error && output.text.contains(words),
            "{}",
            output.text
        );
    }
}
