//! Tests of `edit`.
#![expect(clippy::unwrap_used, reason = "only tests use it")]

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
};

use gyrus_contract::{ActionVerdict, BuiltIn, Digest, Probe, ToolOutput};
use gyrus_tools::Edit;
use serde_json::{Value, json};

use crate::site::World;

fn edit(world: &World, old: &str, new: &str) -> ToolOutput {
    let arguments = json!({"path": "f", "old_text": old, "new_text": new});
    world.call(&BuiltIn::new(Edit), arguments)
}

/// Edits the content, and expects the answer and the new content.
#[track_caller]
fn check(content: &str, old: &str, new: &str, answer: &str, expected: &str) {
    let world = World::new();
    fs::write(world.path("f"), content).unwrap();
    let output = edit(&world, old, new);
    assert_eq!(output.text, format!("edited `f`: {answer}"));
    assert_eq!(output.verdict, ActionVerdict::Changed);
    assert_eq!(output.artifacts[0].digest, Digest::of(expected.as_bytes()));
    assert_eq!(fs::read_to_string(world.path("f")).unwrap(), expected);
    assert_eq!(world.names(), ["f"], "something was left behind");
}

/// Expects these words, and no change.
#[track_caller]
fn refused(content: &str, arguments: Value, words: &str) -> String {
    let world = World::new();
    fs::write(world.path("f"), content).unwrap();
    let output = world.call(&BuiltIn::new(Edit), arguments);
    assert!(
        output.is_error && output.text.contains(words),
        "{}",
        output.text
    );
    assert_eq!(output.verdict, ActionVerdict::NoEffect);
    assert_eq!(fs::read_to_string(world.path("f")).unwrap(), content);
    assert_eq!(world.names(), ["f"], "something was left behind");
    output.text
}

#[test]
fn a_file_in_an_old_encoding_says_so() {
    let world = World::new();
    fs::write(world.path("f"), b"caf\xe9\nlimit = 10\n").unwrap();
    let output = edit(&world, "caf\u{e9}", "tea");
    assert!(
        output.is_error && output.text.contains("The file is not UTF-8"),
        "{}",
        output.text
    );
    // What is quoted in ASCII is replaced all the same.
    assert!(!edit(&world, "10", "20").is_error);
    assert_eq!(fs::read(world.path("f")).unwrap(), b"caf\xe9\nlimit = 20\n");
}

#[test]
fn replaces_exactly_one_place() {
    check("a\nb\nc\n", "b", "B", "line 2 became line 2", "a\nB\nc\n");
    check(
        "a\nb\nc\nd\n",
        "b\nc\n",
        "x\n",
        "lines 2 to 3 became line 2",
        "a\nx\nd\n",
    );
    check(
        "a\nb\nc",
        "c",
        "c\nd\n",
        "line 3 became lines 3 to 4",
        "a\nb\nc\nd\n",
    );
    check(
        "a\nb\n",
        "\nb",
        "",
        "lines 1 to 2: the text was deleted",
        "a\n",
    );
    // `$` and `\` have no special meaning.
    check("x", "x", "$0\\1&", "line 1 became line 1", "$0\\1&");
    check("(a.*b)", "(a.*b)", "c", "line 1 became line 1", "c");
    check("żółć 世界", "世", "界", "line 1 became line 1", "żółć 界界");
}

#[test]
fn keeps_what_it_does_not_replace() {
    // Line ends, as a model cannot see them.
    check(
        "\u{feff}a\r\nb\r\nc\r\n",
        "a\nb",
        "x\ny\nz",
        "lines 1 to 2 became lines 1 to 3",
        "\u{feff}x\r\ny\r\nz\r\nc\r\n",
    );
    check(
        "a\r\nb\r\n",
        "a\r\nb",
        "c\r\nd",
        "lines 1 to 2 became lines 1 to 2",
        "c\r\nd\r\n",
    );
    // Mixed line ends are kept.
    check(
        "a\r\nb\nc\n",
        "b\nc",
        "x\ny",
        "lines 2 to 3 became lines 2 to 3",
        "a\r\nx\ny\n",
    );
    let world = World::new();
    let file = world.path("f");
    fs::write(&file, b"\xff\xfe old \x80\0").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
    assert!(!edit(&world, "old", "new").is_error);
    assert_eq!(fs::read(&file).unwrap(), b"\xff\xfe new \x80\0");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o751);
}

#[test]
fn several_places_are_named_or_all_replaced() {
    let content = "one\ntwo one\nthree\none\n";
    let arguments =
        |all| json!({"path": "f", "old_text": "one", "new_text": "1", "replace_all": all});
    refused(
        content,
        arguments(false),
        "occurs 3 times in `f`, in lines 1, 2, 4;",
    );
    let world = World::new();
    fs::write(world.path("f"), content).unwrap();
    let output = world.call(&BuiltIn::new(Edit), arguments(true));
    assert_eq!(
        output.text,
        "edited `f`: 3 replacements, in what were lines 1, 2, 4"
    );
    let changed = fs::read_to_string(world.path("f")).unwrap();
    assert_eq!(changed, "1\ntwo 1\nthree\n1\n");
    // Overlapping ones are two that could be meant.
    let overlapping = json!({"path": "f", "old_text": "aa", "new_text": "b"});
    refused("aaa", overlapping, "occurs 2 times");
    let many = refused(
        &"x\n".repeat(1000),
        json!({"path": "f", "old_text": "x", "new_text": "y"}),
        "occurs at least 1000 times",
    );
    assert!(many.contains("19, 20 and 980 more;"), "{many}");
    let long = json!({"path": "f", "old_text": "x".repeat(100_000), "new_text": "y"});
    refused(&"x".repeat(4_000_000), long, "occurs at least 1000 times");
    let flood = json!({
        "path": "f", "old_text": "x", "new_text": "y".repeat(1000), "replace_all": true
    });
    refused(&"x".repeat(1_000_000), flood, "larger than 64 MB");
}

#[test]
fn a_text_that_is_not_there_is_looked_for() {
    let content = "fn main() {\n\tlet limit = 10;\n\tprint(limit);\n}\n";
    let wrong = |old: &str| json!({"path": "f", "old_text": old, "new_text": "x"});
    insta::assert_snapshot!(
        refused(content, wrong("    let limit = 10;\n    print(limit);"), ""),
        @"
    the old text does not occur in `f`; nothing was changed. It differs only in white space from:
         2	\tlet limit = 10;
         3	\tprint(limit);
    Quote it exactly as it stands there
    "
    );
    insta::assert_snapshot!(
        refused(content, wrong("let limits = 100;"), ""),
        @"
    the old text does not occur in `f`; nothing was changed. Most like it is:
         2	\tlet limit = 10;
    Quote it exactly as it stands there
    "
    );
    refused(content, wrong("zebra"), "Nothing in it is like it");
    refused(
        "a\r\nb\n",
        wrong("a\nb"),
        "some lines of the file end with \\r\\n",
    );
    refused("", wrong("a"), "Nothing in it is like it");
    refused("a", wrong(" \n "), "Nothing in it is like it");
    // Large ones do not take for ever.
    let large = "let value = compute(\"something\");\n".repeat(100_000);
    refused(
        &large,
        wrong(&"let values = compute(1);\n".repeat(10_000)),
        "Most like it is",
    );
    let one_line = "x".repeat(5_000_000);
    refused(&one_line, wrong(&"y".repeat(1_000_000)), "Nothing in it");
}

#[test]
fn wrong_calls_change_nothing() {
    let call = |old: &str, new: &str| json!({"path": "f", "old_text": old, "new_text": new});
    refused("a", call("", "x"), "the old text is empty");
    refused("a", call("a", "a"), "are the same");
    refused("a", call("a", "⟦secret:OTHER⟧"), "`OTHER` is not known");
    refused(
        "a",
        json!({"path": "f", "old_text": "a"}),
        "missing argument `new_text`",
    );
    let missing = json!({"path": "new/g", "old_text": "a", "new_text": "b"});
    refused("a", missing, "`new/g` does not exist");
    let folder = json!({"path": ".", "old_text": "a", "new_text": "b"});
    refused("a", folder, "is a folder; name a file in it");
    let device = json!({"path": "/dev/null", "old_text": "a", "new_text": "b"});
    refused("a", device, "is a device");

    let world = World::new();
    let huge = fs::File::create(world.path("f")).unwrap();
    huge.set_len(1 << 40).unwrap();
    let output = edit(&world, "a", "b");
    assert!(output.is_error && output.text.contains("too large to edit"));
    if !rustix::process::geteuid().is_root() {
        fs::write(world.path("f"), "a").unwrap();
        fs::set_permissions(world.path("f"), fs::Permissions::from_mode(0o444)).unwrap();
        let output = edit(&world, "a", "b");
        assert!(output.text.contains("Permission denied"), "{}", output.text);
    }
}

#[test]
fn secrets_become_real_in_the_file_only() {
    let world = World::new();
    fs::write(world.path("f"), "KEY=hunter2\n").unwrap();
    let output = edit(&world, "KEY=⟦secret:KEY⟧", "TOKEN=⟦secret:KEY⟧");
    assert_eq!(output.text, "edited `f`: line 1 became line 1");
    assert_eq!(fs::read(world.path("f")).unwrap(), b"TOKEN=hunter2\n");
}

#[test]
fn follows_nothing_that_was_not_judged() {
    let world = World::new();
    let tool = BuiltIn::new(Edit);
    fs::write(world.path("f"), "old").unwrap();
    let arguments = json!({"path": "f", "old_text": "old", "new_text": "new"});
    let judged = world.resolved(&tool, arguments);
    fs::write(world.outside("target"), "old").unwrap();
    fs::remove_file(world.path("f")).unwrap();
    symlink(world.outside("target"), world.path("f")).unwrap();
    let output = world.call_resolved(&tool, judged);
    assert!(output.is_error && output.text.contains("symbolic link"));
    assert_eq!(fs::read(world.outside("target")).unwrap(), b"old");
}

#[test]
fn tells_whether_a_lost_call_happened() {
    let world = World::new();
    let tool = BuiltIn::new(Edit);
    let probe = |content: &str, old: &str, new: &str| {
        fs::write(world.path("f"), content).unwrap();
        let arguments = json!({"path": "f", "old_text": old, "new_text": new});
        let found = world.probe(&tool, &world.resolved(&tool, arguments));
        assert_eq!(fs::read_to_string(world.path("f")).unwrap(), content);
        found
    };
    assert_eq!(probe("a old b", "old", "new"), Probe::DidNotHappen);
    match probe("a\nb new\n", "old", "new") {
        Probe::Happened(output) => {
            assert_eq!(output.text, "edited `f`: the new text is in lines 2");
            assert_eq!(output.verdict, ActionVerdict::Changed);
        }
        other => panic!("{other:?}"),
    }
    // Both are there when the new text holds the old one, before by chance and after.
    assert_eq!(probe("old and more", "old", "old and more"), Probe::Unknown);
    assert_eq!(
        probe("just old", "old", "old and more"),
        Probe::DidNotHappen
    );
    assert_eq!(probe("neither", "old", "new"), Probe::DidNotHappen);
    assert_eq!(probe("deleted or never there", "old", ""), Probe::Unknown);
    assert_eq!(probe("still old", "old", ""), Probe::DidNotHappen);
    assert_eq!(probe("x", "old", "⟦secret:OTHER⟧"), Probe::Unknown);
    assert!(matches!(
        probe("hunter2", "old", "⟦secret:KEY⟧"),
        Probe::Happened(_)
    ));
    assert!(matches!(
        probe("a\r\nb\r\n", "b\n", "a\nb\n"),
        Probe::Unknown
    ));
    fs::remove_file(world.path("f")).unwrap();
    let arguments = json!({"path": "f", "old_text": "a", "new_text": "b"});
    let gone = world.probe(&tool, &world.resolved(&tool, arguments));
    assert_eq!(gone, Probe::DidNotHappen);
}
