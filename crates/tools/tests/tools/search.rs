//! Tests of `search`.
#![expect(clippy::unwrap_used, reason = "only tests use it")]

use std::fs;

use gyrus_contract::BuiltIn;
use gyrus_tools::Search;
use serde_json::{Value, json};

use crate::{list::files, site::World};

fn search(world: &World, arguments: Value) -> String {
    let output = world.call(&BuiltIn::new(Search), arguments);
    assert!(!output.is_error, "{}", output.text);
    output.text
}

fn world() -> World {
    let world = World::new();
    files(&world, &["out/x.rs", ".h/y.rs"]);
    fs::create_dir(world.path("src")).unwrap();
    fs::write(
        world.path("src/a.rs"),
        "one\ntwo\nfn main() {}\nfour\nfive\nsix\nfn end() {}\n",
    )
    .unwrap();
    fs::write(world.path("b.txt"), "fn in text\r\nFN\n").unwrap();
    fs::write(world.path("bin"), b"fn \0\x01").unwrap();
    fs::write(world.path("utf16"), b"\xff\xfef\0n\0 \0w\0i\0d\0e\0\n\0").unwrap();
    fs::write(world.path(".gitignore"), "out\n").unwrap();
    world
}

#[test]
fn shows_lines_with_context() {
    let world = world();
    insta::assert_snapshot!(
        search(&world, json!({"path": ".", "pattern": r"\bfn\b", "context": 1})),
        @"
    b.txt
        1: fn in text
        2- FN

    src/a.rs
        2- two
        3: fn main() {}
        4- four
       --
        6- six
        7: fn end() {}

    utf16
        1: fn wide
    [4 lines in 3 files match; 3 files searched]
    [files not searched: 1 binary]
    [left out: 2 hidden, 1 by .gitignore; `hidden`: true shows hidden and ignored ones]
    "
    );
    insta::assert_snapshot!(
        search(&world, json!({"path": "src/a.rs", "pattern": "^f"})),
        @"
    src/a.rs
        3: fn main() {}
        4: four
        5: five
        7: fn end() {}
    [4 lines in 1 file match; 1 file searched]
    "
    );
    let same_case = json!({"path": "b.txt", "pattern": "^fn$", "ignore_case": true});
    assert!(search(&world, same_case).starts_with("b.txt\n    2: FN\n"));
    let none = json!({"path": "src", "pattern": "zebra"});
    assert_eq!(search(&world, none), "(no match; 1 file searched)\n");
}

#[test]
fn names_counts_and_filters() {
    let world = world();
    let left = "[files not searched: 1 binary]\n[left out: 2 hidden, 1 by .gitignore; `hidden`: \
                true shows hidden and ignored ones]\n";
    assert_eq!(
        search(
            &world,
            json!({"path": ".", "pattern": "fn ", "mode": "files"})
        ),
        format!("b.txt\nsrc/a.rs\nutf16\n[3 files match; 3 files searched]\n{left}")
    );
    assert_eq!(
        search(
            &world,
            json!({"path": ".", "pattern": "fn ", "mode": "count"})
        ),
        format!(
            "1  b.txt\n2  src/a.rs\n1  utf16\n[4 lines in 3 files match; 3 files searched]\n{left}"
        )
    );
    let rust = json!({"path": ".", "pattern": "n", "mode": "files", "glob": "*.rs"});
    assert!(search(&world, rust).starts_with("src/a.rs\n[1 file matches; 1 file searched]\n"));
    let all = json!({"path": ".", "pattern": "n", "mode": "files", "glob": "*.rs", "hidden": true});
    assert!(search(&world, all).starts_with(".h/y.rs\nout/x.rs\nsrc/a.rs\n"));
}

#[test]
fn output_is_bounded() {
    let world = World::new();
    fs::write(world.path("many"), "match\n".repeat(100_000)).unwrap();
    let text = search(&world, json!({"path": ".", "pattern": "match"}));
    assert_eq!(
        text.lines().filter(|line| line.contains(": match")).count(),
        100
    );
    assert!(text.contains("[100 lines in 1 file match so far, and the search stopped there;"));
    let most = json!({"path": ".", "pattern": "match", "max_matches": 1_000_000, "context": 9999});
    let text = search(&world, most);
    assert!(
        text.contains("[1,000 lines in 1 file match so far"),
        "{}",
        text.len()
    );
    // A long line is cut around the match, between characters.
    let line = "ü".repeat(10_000) + "needle" + &"ü".repeat(10_000);
    fs::write(world.path("many"), &line).unwrap();
    let text = search(&world, json!({"path": "many", "pattern": "needle"}));
    let shown = text.lines().nth(1).unwrap();
    assert!(shown.starts_with("    1: [19900 bytes …] üü") && shown.contains("needleüü"));
    assert!(shown.ends_with("ü [… 19706 more bytes]"), "{shown}");
    fs::write(world.path("many"), "x".repeat(500) + &" ".repeat(5000)).unwrap();
    let text = search(&world, json!({"path": "many", "pattern": " $"}));
    assert!(text.starts_with("many\n    1: [500 bytes …] \n"), "{text}");
    // Lines without end are data.
    fs::write(world.path("many"), "match".repeat(1_000_000)).unwrap();
    let text = search(&world, json!({"path": ".", "pattern": "match"}));
    assert!(
        text.contains("[files not searched: 1 with very long lines]"),
        "{text}"
    );
    let huge = fs::File::create(world.path("many")).unwrap();
    huge.set_len(1 << 40).unwrap();
    let text = search(&world, json!({"path": ".", "pattern": "match"}));
    assert!(
        text.contains("[files not searched: 1 very large]"),
        "{text}"
    );
    // Lines that are long each, and many.
    fs::write(world.path("many"), ("x".repeat(399) + "\n").repeat(10_000)).unwrap();
    let most = json!({"path": ".", "pattern": "x", "max_matches": 1000, "context": 20});
    assert!(search(&world, most).len() < 64 * 1024);
}

#[test]
fn patterns_are_bounded() {
    let world = World::new();
    fs::write(world.path("f"), "a".repeat(100_000)).unwrap();
    for (pattern, words) in [
        ("", "is empty"),
        ("(", "unclosed group"),
        (r"(?=a)", "look-around"),
        (r"(a)\1", "backreferences"),
        (r"\w{5000}", "size limit"),
        ("((x{0,100}){0,100}){0,100}", "size limit"),
        ("a\nb", "cannot be searched for"),
        (&*"a".repeat(2001), "longer than 2000 bytes"),
        (&*("(".repeat(900) + &")".repeat(900)), "nest"),
    ] {
        let output = world.call(
            &BuiltIn::new(Search),
            json!({"path": ".", "pattern": pattern}),
        );
        assert!(
            output.is_error && output.text.to_lowercase().contains(words),
            "{pattern}: {}",
            output.text
        );
    }
    // Patterns that take exponential time in other engines.
    for pattern in [
        "(a+)+$",
        "(a|a)*b",
        "(?:){4294967295}",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
    ] {
        search(&world, json!({"path": ".", "pattern": pattern}));
    }
    let output = world.call(
        &BuiltIn::new(Search),
        json!({"path": ".", "pattern": "a", "mode": "all"}),
    );
    assert!(output.is_error && output.text.contains("unknown variant `all`"));
    let output = world.call(
        &BuiltIn::new(Search),
        json!({"path": ".", "pattern": "a", "glob": "["}),
    );
    assert!(output.is_error && output.text.contains("is invalid"));
}

#[test]
fn special_files_are_no_trap() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let world = World::new();
    files(&world, &["plain"]);
    let mode = Mode::from_raw_mode(0o600);
    mknodat(CWD, world.path("pipe"), FileType::Fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(world.path("socket")).unwrap();
    let text = search(&world, json!({"path": ".", "pattern": "content"}));
    assert_eq!(
        text,
        "plain\n    1: content\n[1 line in 1 file matches; 1 file searched]\n"
    );
    let pipe = world.call(
        &BuiltIn::new(Search),
        json!({"path": "pipe", "pattern": "a"}),
    );
    assert!(pipe.is_error && pipe.text.contains("is a named pipe"));
}
