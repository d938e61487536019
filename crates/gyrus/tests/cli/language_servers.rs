//! Language servers after an edit, over their real protocol: what they find reaches the model, and none of
//! them can harm a run.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use gyrus_kernel::Entry;

use crate::{
    support::{Said, World, said, works},
    terminal::Terminal,
};

const SERVER: &str = include_str!("language_server.py");

/// Installs a server for Go that behaves like this; `None` where there is no Python.
fn install(world: &World, mode: &str) -> Option<String> {
    if !works("python3", &["--version"]) {
        eprintln!("skipped: there is no python3");
        return None;
    }
    let folder = world.path("servers");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("gopls");
    fs::write(&program, SERVER.replace("@MODE@", mode)).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    Some(format!("{}:{path}", folder.display()))
}

fn with_server<'a>(command: &'a mut Command, path: &str) -> &'a mut Command {
    command
        .env("PATH", path)
        .env("GYRUS_LANGUAGE_SERVERS", "gopls")
}

fn run(world: &World, path: &str) -> Said {
    let mut command = world.command(&world.run_arguments(&[]));
    said(with_server(&mut command, path).output().unwrap())
}

/// Returns what the servers answered, in the order of the edits.
fn answers(world: &World) -> Vec<String> {
    let entries = world.entries().into_iter();
    let noted = entries.filter_map(|entry| match entry {
        Entry::Noted { kind, fact, .. } if kind == "hooks.ran" => Some(fact.fact.to_string()),
        _ => None,
    });
    noted.collect()
}

/// Whether a process with these words in its command line lives.
fn lives(words: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| fs::read(process.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(words))
}

#[test]
fn what_is_wrong_with_a_file_comes_with_the_edit() {
    let world = World::new(
        r#"
[[reply]]
calls = [{ tool = "write", arguments = { path = "a.go", content = "fine\n  unused\nundefined x\nhint\n" } }]
[[reply]]
when = '(?s)gopls: 2 problems in a\.go\n  3:1 error: undefined \[E\d+\]\n  2:3 warning: unused \[E\d+\]$'
calls = [{ tool = "write", arguments = { path = "dir/b c.go", content = "undefined\n" } }]
[[reply]]
when = 'gopls: 1 problem in dir/b c\.go\n  1:1 error'
calls = [{ tool = "edit", arguments = { path = "a.go", old_text = "undefined x\n", new_text = "" } }]
[[reply]]
when = 'gopls: 1 problem in a\.go\n  2:3 warning'
calls = [{ tool = "edit", arguments = { path = "a.go", old_text = "unused", new_text = "used" } }]
[[reply]]
when = 'gopls: no problems in a\.go any more'
calls = [{ tool = "write", arguments = { path = "c.txt", content = "undefined\n" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#,
    );
    let Some(path) = install(&world, "works") else {
        return;
    };
    run(&world, &path).exits(0);
    assert_eq!(answers(&world).len(), 4, "{:?}", answers(&world));
    assert!(!world.work().join("planted").exists());
    assert!(!lives(&world.path("servers").display().to_string()));
    // A replay starts none, and reads the same.
    world.replays();
}

/// Edits two files that a server knows.
const TWO_EDITS: &str = r#"
[[reply]]
calls = [{ tool = "write", arguments = { path = "a.go", content = "undefined\n" } }]
[[reply]]
calls = [{ tool = "edit", arguments = { path = "a.go", old_text = "undefined", new_text = "undefined 2" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;

#[test]
fn a_server_that_misbehaves_harms_no_run() {
    for (mode, told) in [
        ("hangs", ""),
        (
            "dies",
            "gopls is left out: it ended with code 1, and said: it fell over",
        ),
        (
            "nonsense",
            "gopls is left out: a message of it has no length",
        ),
        (
            "huge",
            "gopls is left out: it sent a message of 99999999999 bytes",
        ),
        ("floods", "gopls is left out: it said more than"),
    ] {
        let world = World::new(TWO_EDITS);
        let Some(path) = install(&world, mode) else {
            return;
        };
        let ended = run(&world, &path).exits(0);
        assert!(ended.err.contains(told), "{mode}: {ended:#?}");
        assert_eq!(world.file("a.go"), "undefined 2\n", "{mode}");
        assert!(!answers(&world).concat().contains("gopls:"), "{mode}");
        assert!(
            !lives(&world.path("servers").display().to_string()),
            "{mode}"
        );
        world.replays();
    }
}

#[test]
fn what_a_server_says_is_bounded_and_shown_as_text() {
    let world = World::new(TWO_EDITS);
    let Some(path) = install(&world, "lies") else {
        return;
    };
    run(&world, &path).exits(0);
    for answer in answers(&world) {
        assert!(answer.len() < 10_000, "{}", answer.len());
        assert!(answer.contains("100 problems in a.go") && answer.contains("and 80 more"));
        assert!(answer.contains("undefined⏎␛[2Jignore") && !answer.contains("\\u001b"));
    }
    world.replays();
}

#[test]
fn a_conversation_has_one_server_which_ends_with_it() {
    let world = World::new(
        "[[reply]]\ncalls = [{ tool = \"write\", arguments = { path = \"a.go\", content = \"undefined\\n\" } }]\n\
         [[reply]]\ntext = \"Done.\"\n",
    );
    let Some(path) = install(&world, "works") else {
        return;
    };
    let environment = [
        ("TERM", "xterm-256color"),
        ("PATH", &*path),
        ("GYRUS_LANGUAGE_SERVERS", "gopls"),
    ];
    let arguments = ["--workdir", ".", "--approve", "auto"];
    let Some(mut terminal) = Terminal::start_with(&world, &arguments, "", &environment) else {
        return;
    };
    let mut seen = Vec::new();
    for _ in 0..2 {
        terminal.stands("❯ a goal");
        terminal.types("go\r");
        // The person sees it, too.
        let screen = terminal.stands("gopls: 1 problem in a.go");
        let token = screen.rsplit_once("[E").unwrap().1;
        seen.push(token.split_once(']').unwrap().0.to_owned());
        terminal.shows("this session:");
    }
    assert_eq!(seen[0], seen[1], "it was started again");
    let program = world.path("servers").display().to_string();
    assert!(lives(&program));
    terminal.stands("❯ a goal");
    terminal.types("/quit\r");
    assert_eq!(terminal.exit_code(), Some(0));
    assert!(!lives(&program));
}

#[test]
fn a_name_that_is_not_known_is_refused_with_those_that_are() {
    let world = World::new(TWO_EDITS);
    fs::create_dir_all(world.path("home")).unwrap();
    fs::write(
        world.path("home/config.toml"),
        "language-servers = [\"goplsx\"]\n",
    )
    .unwrap();
    let refused = world.run(&[]).exits(2);
    assert!(refused.err.contains("there is no `goplsx`"), "{refused:#?}");
    assert!(refused.err.contains("rust-analyzer, pyright, gopls"));
}
