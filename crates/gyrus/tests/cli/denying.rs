//! A policy's rules on paths hold for commands, however they are written.

use std::fs;

use gyrus_kernel::Entry;
use serde_json::{Value, json};

use crate::support::World;

/// Runs that read what is denied without naming it as an operand, and one that may read.
const READS: [&str; 10] = [
    "wc -c --files0-from=.env",
    "diff --to-file=.env plain",
    "git grep --no-index -h -f .env . ; grep -rh KEY= .",
    "cat .e* deep/*",
    "sh code.sh",
    "cp -r .e* deep plain /tmp; cat /tmp/.e* /tmp/deep/.e*",
    "ln .env linked; cat linked; mv deep moved; cat moved/* moved/.e*",
    "mv anchored elsewhere",
    "cat elsewhere/keys/*; cat anchored/k*/*",
    "cat plain",
];

fn world(lines: &[&str], policy: &str) -> World {
    let replies = lines.iter().map(|line| {
        let line = json!(line);
        format!("[[reply]]\ncalls = [{{ tool = \"shell\", arguments = {{ command = {line} }} }}]\n")
    });
    let end = "[[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \"x\" } }]\n";
    let world = World::new(&(replies.collect::<String>() + end));
    for (file, text) in [
        (".env", "KEY=canary-of-the-person\n"),
        ("deep/.env", "KEY=canary-of-the-person\n"),
        ("anchored/keys/one", "KEY=canary-of-the-person\n"),
        ("plain", "plain text\n"),
        ("code.sh", "cat \"$(printf '.%s' env)\"; echo read > made\n"),
    ] {
        let file = world.work().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    fs::create_dir(world.path("home")).unwrap();
    fs::write(world.path("home/policy.toml"), policy).unwrap();
    world
}

fn asked(world: &World) -> usize {
    let asks = |entry: &&Entry| matches!(entry, Entry::ApprovalAsked(_));
    world.entries().iter().filter(asks).count()
}

/// Whether commands are confined on this machine.
fn is_confined(world: &World) -> bool {
    let said = world
        .gyrus(&["policy", "explain", "--json", "make"])
        .exits(0);
    let explained: Value = serde_json::from_str(&said.out).unwrap();
    !explained["containment"].is_null()
}

#[test]
fn what_is_denied_is_kept_from_commands() {
    let rule =
        "[[rule]]\ndecide = \"deny\"\nwhy = \"keys\"\npath = [\".env\", \"anchored/keys/**\"]\n";
    for (mode, is_large) in [("ask", false), ("ask", true), ("read-only", false)] {
        let world = world(&READS, rule);
        if !is_confined(&world) {
            return;
        }
        if is_large {
            let large = fs::File::create(world.work().join("large")).unwrap();
            large.set_len(1 << 40).unwrap();
        }
        let said = world.gyrus(&["run", "go", "--approve", mode]).exits(0);
        assert!(!said.err.contains("canary-of"), "{}", said.err);
        assert!(said.err.contains("plain text"), "{}", said.err);
        let made = if mode == "ask" { "read\n" } else { "" };
        assert_eq!(world.file("made"), made, "the script itself ran");
        for file in [".env", "anchored/keys/one"] {
            assert_eq!(
                world.file(file),
                "KEY=canary-of-the-person\n",
                "{}",
                said.err
            );
        }
        assert_eq!(asked(&world), 0, "nobody had to be asked");
    }
}

#[test]
fn what_is_asked_about_is_asked_for_every_word_that_could_be_it() {
    let rule = "[[rule]]\ndecide = \"ask\"\nwhy = \"keys\"\npath = \".env\"\n";
    let lines = [
        "wc -c --files0-from=.env",
        "cd deep && cat .e*",
        "python3 -c 'open(\".env\")'",
        "cat $x",
        "ls",
        "cat plain *.sh",
        "echo made > other",
    ];
    let world = world(&lines, rule);
    if !is_confined(&world) {
        return;
    }
    world.gyrus(&["run", "go", "--on-ask", "deny"]).exits(0);
    assert_eq!(asked(&world), 4);
    assert_eq!(world.file("other"), "made\n");
}
