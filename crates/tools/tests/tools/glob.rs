//! Tests of `glob`.

use std::{
    fs,
    time::{Duration, SystemTime},
};

use gyrus_contract::BuiltIn;
use gyrus_tools::Glob;
use serde_json::{Value, json};

use crate::{list::files, site::World};

#[track_caller]
fn check(world: &World, arguments: Value, expected: &str) {
    let output = world.call(&BuiltIn::new(Glob), arguments);
    assert_eq!((output.text.as_str(), output.is_error), (expected, false));
}

#[test]
fn finds_files_newest_first() {
    let world = World::new();
    let names = [
        "a.rs",
        "src/b.rs",
        "src/deep/c.rs",
        "src/d.txt",
        ".x/e.rs",
        "out/f.rs",
    ];
    files(&world, &names);
    fs::write(world.path(".gitignore"), "out\n").unwrap();
    for (age, name) in [(3, "a.rs"), (1, "src/b.rs"), (2, "src/deep/c.rs")] {
        let file = fs::File::options()
            .append(true)
            .open(world.path(name))
            .unwrap();
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age);
        file.set_modified(changed).unwrap();
    }
    let left = "[left out: 2 hidden, 1 by .gitignore; `hidden`: true shows hidden and ignored \
                ones]\n";
    let check_rs = |pattern: &str, expected: &str| {
        let arguments = json!({"path": ".", "pattern": pattern});
        check(&world, arguments, &format!("{expected}{left}"));
    };
    check_rs("*.rs", "src/b.rs\nsrc/deep/c.rs\na.rs\n");
    check_rs("**/*.rs", "src/b.rs\nsrc/deep/c.rs\na.rs\n");
    check_rs("./src/*.rs", "src/b.rs\n");
    check_rs("src/**/?.{rs,md}", "src/b.rs\nsrc/deep/c.rs\n");
    check_rs("*.nothing", "(no file matches)\n");
    // Folders do not match.
    check_rs("deep", "(no file matches)\n");
    check(
        &world,
        json!({"path": "src/deep/", "pattern": "*"}),
        "src/deep/c.rs\n",
    );
    check(&world, json!({"path": "out", "pattern": "*"}), "out/f.rs\n");
    let output = world.call(
        &BuiltIn::new(Glob),
        json!({"path": ".", "pattern": "*.rs", "hidden": true}),
    );
    assert!(output.text.contains(".x/e.rs\n") && output.text.contains("out/f.rs\n"));
}

#[test]
fn patterns_are_bounded_and_stay_below() {
    let world = World::new();
    files(&world, &["a"]);
    for (pattern, words) in [
        ("", "is empty"),
        ("/etc/*", "leads out of the folder"),
        ("../*", "leads out of the folder"),
        ("a/../../b", "leads out of the folder"),
        ("a[", "is invalid"),
        ("{a", "is invalid"),
        (&*"a".repeat(1001), "longer than 1000 bytes"),
    ] {
        let output = world.call(
            &BuiltIn::new(Glob),
            json!({"path": ".", "pattern": pattern}),
        );
        assert!(
            output.is_error && output.text.contains(words),
            "{pattern}: {}",
            output.text
        );
    }
    // Heavy, but no harm.
    for pattern in [
        "*a".repeat(400),
        "{a,b}{c,d}".repeat(80),
        "**/".repeat(300) + "a",
        "{".repeat(400) + &"}".repeat(400),
    ] {
        world.call(
            &BuiltIn::new(Glob),
            json!({"path": ".", "pattern": pattern}),
        );
    }
    let file = world.call(&BuiltIn::new(Glob), json!({"path": "a", "pattern": "*"}));
    assert!(file.is_error && file.text.contains("`a` is a file"));
    for number in 0..700 {
        fs::write(world.path(&format!("{number}.x")), "").unwrap();
    }
    let output = world.call(&BuiltIn::new(Glob), json!({"path": ".", "pattern": "*.x"}));
    assert!(
        output
            .text
            .contains("[500 of 700 files, those changed last;")
    );
}
