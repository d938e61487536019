//! Changes of a command to files by which other programs run things are taken back until a person
//! has seen them.

use std::fs;

use gyrus_kernel::Entry;
use rustix::process::Signal;

use crate::support::World;

/// A command whose text says nothing of what it does.
const RUNS_CODE: &str = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "sh code.sh" } }]
[[reply]]
when = "were taken back"
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;

fn world(code: &str) -> World {
    let world = World::new(RUNS_CODE);
    fs::write(world.work().join("code.sh"), code).unwrap();
    world
}

const PLANTS: &str = "printf 'echo evil\\n' > .envrc; mkdir -p .vscode sub; \
                      echo '{}' > .vscode/tasks.json; echo x > sub/AGENTS.md; echo fine > plain";

fn asks(entry: &Entry) -> bool {
    matches!(entry, Entry::ApprovalAsked(_))
}

#[test]
fn nobody_to_ask_leaves_nothing_planted() {
    let world = world(PLANTS);
    world.gyrus(&["run", "go"]).exits(0);
    assert_eq!(world.file("plain"), "fine\n");
    for planted in [".envrc", ".vscode/tasks.json", ".vscode", "sub/AGENTS.md"] {
        assert!(!world.work().join(planted).exists(), "{planted}");
    }
    assert!(world.work().join("sub").exists());
    world.gyrus(&["replay", "last"]).exits(0);
    // Without the files, too.
    let file = world.path("run.gyrus");
    let file = file.to_str().unwrap();
    world.gyrus(&["runs", "export", "last", file]).exits(0);
    let elsewhere = World::new(RUNS_CODE);
    elsewhere.gyrus(&["runs", "import", file]).exits(0);
    elsewhere.gyrus(&["replay", "last"]).exits(0);
}

#[test]
fn what_stood_there_stands_there_again() {
    let code = "echo evil >> .envrc; rm -r .vscode; chmod 755 AGENTS.md; \
                ln -sf /etc/passwd CLAUDE.md; mkfifo .mcp.json; mkdir hidden; \
                echo x > hidden/.envrc; chmod 000 hidden; echo fine > plain";
    let world = world(code);
    fs::create_dir(world.work().join(".vscode")).unwrap();
    for (path, text) in [
        (".envrc", "mine\n"),
        (".vscode/tasks.json", "{}\n"),
        ("AGENTS.md", "be kind\n"),
        ("CLAUDE.md", "be brief\n"),
    ] {
        fs::write(world.work().join(path), text).unwrap();
    }
    world.gyrus(&["run", "go"]).exits(0);
    for (path, text) in [
        (".envrc", "mine\n"),
        (".vscode/tasks.json", "{}\n"),
        ("AGENTS.md", "be kind\n"),
        ("CLAUDE.md", "be brief\n"),
        ("plain", "fine\n"),
    ] {
        assert_eq!(world.file(path), text, "{path}");
    }
    assert!(!world.work().join("CLAUDE.md").is_symlink());
    assert!(!world.work().join(".mcp.json").exists());
    assert!(!world.work().join("hidden/.envrc").exists());
}

#[test]
fn a_yes_applies_it_by_another_process() {
    let world = world(PLANTS);
    let said = world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    for words in [
        "A command changed",
        "`.envrc`: it is obeyed by direnv",
        "+echo evil",
        "your yes applies it again",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    assert!(!world.work().join(".envrc").exists());
    world.gyrus(&["approve", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(world.file(".envrc"), "echo evil\n");
    assert_eq!(world.file("sub/AGENTS.md"), "x\n");
    let asked = world.entries().iter().filter(|entry| asks(entry)).count();
    assert_eq!(asked, 1);
    world.gyrus(&["replay", "last"]).exits(0);
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    assert!(!world.work().join(".envrc").exists());
}

#[test]
fn what_a_person_wrote_meanwhile_is_not_overwritten_by_a_yes() {
    let world = world(PLANTS);
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    fs::write(world.work().join(".envrc"), "mine\n").unwrap();
    world.gyrus(&["approve", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(world.file(".envrc"), "mine\n");
    assert_eq!(world.file(".vscode/tasks.json"), "{}\n");
}

#[test]
fn a_command_that_was_cut_off_plants_nothing() {
    let code = format!("{PLANTS}; sleep 60");
    let world = world(&code);
    let running = world.start(&["run", "go"]);
    world.wait_for(|entry| matches!(entry, Entry::ToolStarted(_)));
    world.wait_for_layer("plain");
    running.signal(Signal::KILL);
    running.end();
    world.gyrus(&["resume", "last"]).exits(0);
    assert!(!world.work().join(".envrc").exists());
    assert_eq!(world.file("plain"), "fine\n");
}

#[test]
fn many_files_make_one_card_that_can_be_read() {
    let code = "i=0; while [ $i -lt 2000 ]; do mkdir -p a/b/$i; echo evil > a/b/$i/.envrc; \
                i=$((i+1)); done; echo x > Makefile";
    let world = world(code);
    world.run(&["--on-ask", "park"]).exits(5);
    let card = world.entries().into_iter().find_map(|entry| match entry {
        Entry::ApprovalAsked(asked) => Some(asked.card),
        _ => None,
    });
    let card = card.unwrap();
    let files = "changed 2,000 files `.envrc` below `a/b/`, `Makefile`; the change";
    assert!(card.sentence.contains(files), "{}", card.sentence);
    assert!(format!("{card:?}").len() < 30_000);
    world.gyrus(&["deny", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert!(!world.work().join("a/b/7/.envrc").exists());
}
