//! Changes of a command reach the folder only after they were judged. A command that breaks its own
//! judgement leaves nothing, and no byte that a person writes meanwhile is taken away.

use std::fs;

use gyrus_kernel::Entry;
use rustix::process::Signal;

use crate::{
    disks::with_mounts,
    refusing::refuse,
    support::{Said, World, said},
};

const RUNS_CODE: &str = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "sh code.sh" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;

fn world(code: &str) -> World {
    let world = World::new(RUNS_CODE);
    fs::write(world.work().join("code.sh"), code).unwrap();
    fs::write(world.work().join("AGENTS.md"), "mine\n").unwrap();
    world
}

/// Enters folders with long names, one after the other, and runs a command in the last.
fn deep(levels: usize, then: &str) -> String {
    format!(
        "echo evil > .envrc; top=$PWD; d=$(printf 'a%.0s' $(seq 200)); \
         for i in $(seq {levels}); do mkdir $d; cd $d; done; {then}; cd \"$top\"; echo fine > plain"
    )
}

/// Whether a file of this name is anywhere below the folder, as `find` sees it.
fn is_anywhere(world: &World, name: &str) -> bool {
    let mut find = std::process::Command::new("find");
    let found = find
        .arg(".")
        .args(["-name", name])
        .current_dir(world.work());
    !found.output().unwrap().stdout.is_empty()
}

/// Lines that make the judgement of what they did hard or impossible.
fn breaking() -> Vec<(&'static str, String)> {
    vec![
        ("a long path", deep(30, "echo evil > .envrc")),
        ("too long a path", deep(60, "echo evil > .envrc")),
        ("a long path to a repository", deep(25, "git init -q --bare; echo x > .envrc")),
        (
            "a folder that cannot be read",
            "mkdir shut; echo evil > shut/.envrc; echo evil > .envrc; chmod 000 shut".to_owned(),
        ),
        (
            "names that are no text",
            "n=$(printf 'a\\377b\\nc'); mkdir \"$n\"; echo evil > \"$n/.envrc\"; echo evil > .envrc"
                .to_owned(),
        ),
        (
            "a folder replaced by one of the same name",
            "rm -rf old; mkdir old; echo evil > old/.envrc; echo evil > .envrc".to_owned(),
        ),
        (
            "a link in the place of a folder",
            "mkdir real; echo evil > real/.envrc; ln -s real linked; echo evil > .envrc".to_owned(),
        ),
        (
            "pipes and sockets",
            "mkfifo .envrc; mkdir d; mkfifo d/.envrc; echo evil > AGENTS.md".to_owned(),
        ),
        (
            "many of them",
            "for i in $(seq 300); do mkdir d$i; echo evil > d$i/.envrc; done; echo evil > .envrc"
                .to_owned(),
        ),
    ]
}

fn nothing_is_planted(world: &World, what: &str, said: &Said) {
    assert!(!is_anywhere(world, ".envrc"), "{what}: {said:?}");
    assert_eq!(world.file("AGENTS.md"), "mine\n", "{what}: {said:?}");
}

#[test]
fn a_command_that_breaks_its_judgement_plants_nothing() {
    for (what, code) in breaking() {
        let world = world(&code);
        fs::create_dir(world.work().join("old")).unwrap();
        fs::write(world.work().join("old/mine"), "").unwrap();
        let said = world.gyrus(&["run", "go"]).exits(0);
        nothing_is_planted(&world, what, &said);
        world.gyrus(&["undo", "last", "--yes"]);
        world.gyrus(&["runs", "rm", "last", "--yes"]);
    }
}

#[test]
fn without_namespaces_it_plants_nothing_either() {
    for (what, code) in breaking() {
        let world = world(&code);
        fs::create_dir(world.work().join("old")).unwrap();
        let said = refused(&world, &["run", "go", "--workdir", "."]);
        nothing_is_planted(&world, what, &said);
    }
}

fn refused(world: &World, arguments: &[&str]) -> Said {
    let mut command = world.command(arguments);
    refuse(&mut command, &world.path(""));
    said(command.output().unwrap())
}

#[test]
fn a_full_disk_plants_nothing() {
    for fill in [
        "dd if=/dev/zero of=filler bs=64k",
        "i=0; while mkdir many$i; do i=$((i+1)); : > many$i/f || break; done",
        "dd if=/dev/zero of=/tmp/filler bs=64k",
    ] {
        let world = world(&format!(
            "echo evil > .envrc; echo evil > AGENTS.md; {fill}; true"
        ));
        fs::create_dir(world.path("home")).unwrap();
        let line = r#"
            mount -t tmpfs -o size=24m,nr_inodes=4k tmpfs "$GYRUS_HOME"
            mkdir "$GYRUS_HOME/../shared" 2>/dev/null || true
            mkdir "$GYRUS_HOME/work" "$GYRUS_HOME/state"
            cp code.sh AGENTS.md "$GYRUS_HOME/work"
            cd "$GYRUS_HOME/work"
            export GYRUS_HOME="$GYRUS_HOME/state"
            code=0; "$GYRUS" run go --workdir . || code=$?
            echo "code $code; planted: $(find . -name .envrc); agents: $(cat AGENTS.md)"
        "#;
        let Some(said) = with_mounts(&world, line) else {
            return;
        };
        assert!(
            said.out.contains("planted: ; agents: mine\n"),
            "{fill}: {said:?}"
        );
    }
}

/// Changes control files, and waits.
const PLANTS: &str = "echo evil > .envrc; echo evil >> AGENTS.md; mkdir -p .vscode; \
                      echo '{}' > .vscode/tasks.json; echo fine > plain; echo done > mark; sleep 60";

#[test]
fn after_a_kill_whoever_comes_next_finds_nothing_planted() {
    for next in ["undo", "abandon", "run", "resume"] {
        let world = world(PLANTS);
        let running = world.start(&["run", "go"]);
        world.wait_for(|entry| matches!(entry, Entry::ToolStarted(_)));
        world.wait_for_layer("mark");
        running.signal(Signal::KILL);
        running.end();
        let is_clean = |when: &str| {
            for planted in [".envrc", ".vscode"] {
                let path = world.work().join(planted);
                assert!(
                    path.symlink_metadata().is_err(),
                    "{next}, {when}: {planted}"
                );
            }
            assert_eq!(world.file("AGENTS.md"), "mine\n", "{next}, {when}");
        };
        is_clean("killed");
        // Between the crash and whatever comes next, the folder is the person's.
        fs::write(world.work().join(".envrc"), "of the person\n").unwrap();
        fs::write(world.work().join("AGENTS.md"), "of the person\n").unwrap();
        fs::write(world.work().join("plain"), "of the person\n").unwrap();
        match next {
            "undo" => world.gyrus(&["undo", "last", "--yes"]).exits(0),
            "abandon" => world.gyrus(&["abandon", "last"]).exits(0),
            "resume" => world.gyrus(&["resume", "last"]).exits(0),
            _ => {
                fs::write(world.work().join("code.sh"), "true").unwrap();
                world.gyrus(&["run", "go"]).exits(0)
            }
        };
        for name in [".envrc", "AGENTS.md", "plain"] {
            assert_eq!(world.file(name), "of the person\n", "{next}: {name}");
        }
        assert!(!world.work().join(".vscode").exists(), "{next}");
    }
}

#[test]
fn what_a_person_changes_meanwhile_is_theirs() {
    let world = world(
        "echo evil > .envrc; echo evil > both; echo evil > Makefile; echo ready > mark; \
         while [ ! -e go ]; do sleep 0.05; done; rm gone; echo made > made",
    );
    let work = world.work();
    for name in ["both", "gone"] {
        fs::write(work.join(name), "before\n").unwrap();
    }
    let running = world.start(&["run", "go"]);
    world.wait_for_layer("mark");
    let files = [
        "AGENTS.md",
        ".envrc",
        "Makefile",
        "both",
        "gone",
        ".github/workflows/ci.yml",
    ];
    for name in files {
        fs::create_dir_all(work.join(name).parent().unwrap()).unwrap();
        fs::write(work.join(name), "of the person\n").unwrap();
    }
    fs::write(work.join("go"), "").unwrap();
    let said = running.end();
    assert_eq!(said.code, Some(0), "{}", said.err);
    for name in files {
        assert_eq!(world.file(name), "of the person\n", "{name}");
    }
    assert_eq!(world.file("made"), "made\n");
    let told = world.gyrus(&["show", "last"]);
    assert!(told.out.contains("was not applied"), "{told:?}");
}
