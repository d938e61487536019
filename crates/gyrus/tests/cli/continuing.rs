//! Sessions: a run that goes on with what the last one knows, and what comes with a goal.

use std::{fs, io::Write, process::Stdio};

use gyrus_kernel::Entry;

use crate::support::{THREE_STEPS, World, said};

#[test]
fn a_follow_up_knows_what_was_said() {
    let world = World::new(THREE_STEPS);
    world.run(&[]).exits(0);
    world
        .gyrus(&[
            "run",
            "-c",
            "and again",
            "--workdir",
            ".",
            "--approve",
            "auto",
        ])
        .exits(0);
    let [first, second] = world.runs().try_into().unwrap();
    let reader = world
        .store()
        .reader(&gyrus_kernel::log_name(second))
        .unwrap();
    let started = gyrus_kernel::parse(&reader.entry(1).unwrap().unwrap()).unwrap();
    let Entry::RunStarted(started) = started else {
        panic!("{started:?}")
    };
    assert_eq!(started.continues, Some(first));
    let remembered = serde_json::to_string(&started.memory).unwrap();
    assert!(remembered.contains("say hello"), "{remembered}");
    world.gyrus(&["replay", "last"]).exits(0);
}

#[test]
fn there_must_be_something_to_continue() {
    let world = World::new(THREE_STEPS);
    world
        .gyrus(&["run", "-c", "go"])
        .exits(2)
        .says("nothing to continue");
    world.run(&[]).exits(0);
    let other = world.path("other");
    fs::create_dir(&other).unwrap();
    world
        .gyrus(&["run", "-c", "go", "--workdir", other.to_str().unwrap()])
        .exits(2)
        .says("the last one worked in");
}

/// The smallest picture: one pixel.
const PIXEL: &[u8] = &[
    0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0,
    0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0, 0x3a, 0x7e, 0x9b, 0x55, 0, 0, 0, 10, b'I', b'D', b'A', b'T',
    0x78, 0x9c, 0x63, 0, 0, 0, 2, 0, 1, 0x48, 0xaf, 0xa4, 0x71, 0, 0, 0, 0, b'I', b'E', b'N', b'D',
    0xae, 0x42, 0x60, 0x82,
];

#[test]
fn files_pictures_and_standard_input_come_with_the_goal() {
    let world = World::new(THREE_STEPS);
    fs::write(world.path("notes.txt"), "the moon is full").unwrap();
    fs::write(world.path("pixel.png"), PIXEL).unwrap();
    let mut command = world.command(&world.run_arguments(&[
        "--file",
        "../notes.txt",
        "--image",
        "../pixel.png",
        "--file",
        "-",
    ]));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"the sun is up").unwrap();
    drop(stdin);
    said(child.wait_with_output().unwrap()).exits(0);
    let Entry::RunStarted(started) = world.entries().remove(0) else {
        panic!("a run begins with its start")
    };
    let text = serde_json::to_string(&started).unwrap();
    for words in [
        "the moon is full",
        "the sun is up",
        "image/png",
        "\"exposed\":true",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    world.gyrus(&["replay", "last"]).exits(0);
}

#[test]
fn what_cannot_come_with_a_goal_is_said() {
    let world = World::new(THREE_STEPS);
    fs::write(world.path("binary"), b"\xff\xfe\x00").unwrap();
    for (arguments, words) in [
        (["--file", "../nothing"], "cannot be read"),
        (["--file", ".."], "is a folder"),
        (["--file", "../binary"], "not text in UTF-8"),
        (["--image", "../binary"], "not a PNG, JPEG or WebP"),
        (["--image", "../nothing"], "cannot be read"),
    ] {
        world.run(&arguments).exits(2).says(words);
    }
    assert!(!world.path("home/journal").exists() || world.runs().is_empty());
}

#[test]
fn a_pipe_that_never_ends_is_not_read() {
    let world = World::new(THREE_STEPS);
    let mut command = world.command(&world.run_arguments(&[]));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Held open until the end.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"something").unwrap();
    let output = said(child.wait_with_output().unwrap()).exits(0);
    drop(stdin);
    // Whether the bytes were there in time to be noticed is chance; that nothing waits is not.
    assert!(output.out.contains("It says hello."));
}

#[test]
fn a_run_becomes_a_script_that_plays_it_again() {
    let world = World::new(THREE_STEPS);
    world.run(&[]).exits(0);
    let first = world.gyrus(&["record", "last"]).exits(0);
    world
        .gyrus(&["record", "last", "-o", "../again.toml"])
        .exits(0)
        .says("--model script:");
    world
        .gyrus(&["record", "last", "-o", "../again.toml"])
        .exits(2);
    fs::remove_file(world.work().join("out.txt")).unwrap();
    world.run(&["--model", "script:../again.toml"]).exits(0);
    assert_eq!(world.file("out.txt"), "hello\n");
    let second = world.gyrus(&["record", "last"]).exits(0);
    assert_eq!(first.out, second.out);
    // The tokens depend on the name of the folder.
    let lines = first.out.lines().take(16).map(|line| match line {
        _ if line.starts_with("input = ") => "input = 1400",
        line => line,
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
    [[reply]]
    purpose = "agent"
    text = "First a file."

    [[reply.calls]]
    tool = "write"

    [reply.calls.arguments]
    content = """
    hello
    """
    path = "out.txt"

    [reply.usage]
    input = 1400
    output = 14
    "#);
}
