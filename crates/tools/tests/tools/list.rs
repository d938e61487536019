//! Tests of `list`, and of the walk that all tools use.
#![expect(clippy::unwrap_used, reason = "only tests use it")]

use std::{fs, os::unix::fs::symlink, path::Path};

use gyrus_contract::BuiltIn;
use gyrus_tools::{Glob, List, Search};
use serde_json::{Value, json};

use crate::site::World;

pub(crate) fn files(world: &World, names: &[&str]) {
    for name in names {
        let file = world.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "content\n").unwrap();
    }
}

fn list(world: &World, arguments: Value) -> String {
    let output = world.call(&BuiltIn::new(List), arguments);
    assert!(!output.is_error, "{}", output.text);
    output.text
}

#[test]
fn shows_a_tree() {
    let world = World::new();
    files(
        &world,
        &[
            "b.txt",
            "src/deep/er/x.rs",
            "src/main.rs",
            "target/junk",
            "src/a.log",
            "src/keep.log",
            ".hidden/x",
            ".git/config",
        ],
    );
    fs::write(world.path(".gitignore"), "/target\n*.log\n").unwrap();
    fs::write(world.path("src/.gitignore"), "!keep.log\n").unwrap();
    symlink("/etc", world.path("link")).unwrap();
    insta::assert_snapshot!(list(&world, json!({"path": "."})), @"
    b.txt  8 bytes
    link -> /etc
    src/
      deep/ …
      keep.log  8 bytes
      main.rs  8 bytes
    [folders with … were not entered]
    [left out: 4 hidden, 2 by .gitignore; `hidden`: true shows hidden and ignored ones]
    ");
    insta::assert_snapshot!(list(&world, json!({"path": "src", "depth": 9})), @"
    deep/
      er/
        x.rs  8 bytes
    keep.log  8 bytes
    main.rs  8 bytes
    [left out: 1 hidden, 1 by .gitignore; `hidden`: true shows hidden and ignored ones]
    ");
    insta::assert_snapshot!(list(&world, json!({"path": ".", "depth": 1, "hidden": true})), @"
    .gitignore  14 bytes
    .hidden/ …
    b.txt  8 bytes
    link -> /etc
    src/ …
    target/ …
    [folders with … were not entered]
    [left out: 1 hidden]
    ");
    fs::create_dir(world.path("empty")).unwrap();
    assert_eq!(
        list(&world, json!({"path": "empty"})),
        "(nothing to show)\n"
    );
    let file = world.call(&BuiltIn::new(List), json!({"path": "b.txt"}));
    assert!(file.is_error && file.text.contains("use `read`"));
}

#[test]
fn is_bounded() {
    let world = World::new();
    for folder in 0..10 {
        fs::create_dir(world.path(&format!("f{folder}"))).unwrap();
        for file in 0..300 {
            fs::write(world.path(&format!("f{folder}/{file:03}")), "").unwrap();
        }
    }
    let text = list(&world, json!({"path": "."}));
    assert!(text.contains("  199  0 bytes\n  [100 more names in this folder]\nf1/\n"));
    assert!(
        text.ends_with("[cut after 1000 lines; take a smaller depth or a folder further down]\n")
    );
    assert_eq!(
        text.lines().filter(|line| !line.contains('[')).count(),
        1000
    );

    // Very deep nesting, and names that are not UTF-8.
    let mut deep = world.path("deep");
    for _ in 0..200 {
        fs::create_dir(&deep).unwrap();
        deep.push("d");
    }
    let text = list(&world, json!({"path": "deep", "depth": 20}));
    assert!(text.contains("were not entered"), "{text}");
    let found = world.call(&BuiltIn::new(Glob), json!({"path": "deep", "pattern": "*"}));
    assert!(
        found.text.contains("[left out: 1 too deep]"),
        "{}",
        found.text
    );
    fs::create_dir(world.path("odd")).unwrap();
    fs::write(world.path("odd/new\nline"), "").unwrap();
    assert_eq!(
        list(&world, json!({"path": "odd"})),
        "\"new\\nline\"  0 bytes\n"
    );
}

#[test]
fn hostile_gitignores_do_no_harm() {
    let world = World::new();
    files(&world, &["a", "b"]);
    fs::write(world.outside("elsewhere"), "*\n").unwrap();
    for ignore in [
        "[\n{{{{\n\\\n\0\n***/**/***\n!\nb".to_owned(),
        "{a,b,c}".repeat(10_000) + "\nb",
        "?*".repeat(100_000) + "\nb",
        "x\n".repeat(1_000_000) + "a\nb",
    ] {
        fs::write(world.path(".gitignore"), &ignore).unwrap();
        let text = list(&world, json!({"path": "."}));
        assert!(text.contains("a  8 bytes"), "{text}");
    }
    // A link to rules elsewhere is not followed.
    fs::remove_file(world.path(".gitignore")).unwrap();
    symlink(world.outside("elsewhere"), world.path(".gitignore")).unwrap();
    assert!(list(&world, json!({"path": "."})).contains("a  8 bytes"));
}

#[test]
fn no_tool_walks_out_of_its_folder() {
    let world = World::new();
    files(&world, &["d/inner/file", "d/other"]);
    fs::create_dir_all(world.outside("out/inner")).unwrap();
    fs::write(world.outside("out/secret"), "content\n").unwrap();
    fs::write(world.outside("out/inner/secret"), "content\n").unwrap();
    symlink(world.outside("out"), world.path("d/way_out")).unwrap();
    symlink(world.outside("out/secret"), world.path("d/file_out")).unwrap();
    let calls = |path: &str| {
        [
            world.call(
                &BuiltIn::new(List),
                json!({"path": path, "depth": 20, "hidden": true}),
            ),
            world.call(
                &BuiltIn::new(Glob),
                json!({"path": path, "pattern": "**/*", "hidden": true}),
            ),
            world.call(
                &BuiltIn::new(Search),
                json!({"path": path, "pattern": "content", "hidden": true}),
            ),
        ]
        .map(|output| output.text)
    };
    for text in calls(".") {
        assert!(
            text.contains("other") && !text.contains("d/way_out/"),
            "{text}"
        );
        // The link's target is named by `list`, what is there is not.
        assert!(
            !text.contains("secret\n") || text.contains("file_out -> "),
            "{text}"
        );
    }
    let found = &calls(".")[2];
    assert!(found.contains("2 lines in 2 files match"), "{found}");

    // The folder itself is swapped after the verdict.
    let search = BuiltIn::new(Search);
    let judged = world.resolved(&search, json!({"path": "d", "pattern": "content"}));
    fs::rename(world.path("d"), world.path("e")).unwrap();
    symlink(world.outside("out"), world.path("d")).unwrap();
    let output = world.call_resolved(&search, judged);
    assert!(
        output.is_error && output.text.contains("symbolic link"),
        "{}",
        output.text
    );
}

#[test]
fn a_race_for_a_folder_on_the_way_is_never_won() {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{CWD, RenameFlags, renameat_with};

    let world = World::new();
    files(&world, &["top/d/file"]);
    fs::create_dir(world.outside("out")).unwrap();
    fs::write(world.outside("out/file"), "secret content\n").unwrap();
    symlink(world.outside("out"), world.path("top/link")).unwrap();
    let done = AtomicBool::new(false);
    let (d, link) = (world.path("top/d"), world.path("top/link"));
    let swap = |one: &Path, other: &Path| {
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                swap(&d, &link);
            }
        });
        let search = BuiltIn::new(Search);
        for _ in 0..1000 {
            let arguments = json!({"path": "top", "pattern": "content"});
            let output = world.call(&search, arguments);
            assert!(!output.text.contains("secret"), "{}", output.text);
        }
        done.store(true, Ordering::Relaxed);
    });
}
