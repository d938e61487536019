//! Commands and the folder that they are typed in: `last`, lists, and folders that are no workspaces.

use std::fs;

use crate::{
    support::{Said, World, said},
    terminal::Terminal,
};

const ANSWER: &str = "[[reply]]\ntext = \"All is well.\"\n";

impl World {
    /// gyrus in another folder of this test.
    fn in_folder(&self, folder: &str, arguments: &[&str]) -> Said {
        fs::create_dir_all(self.path(folder)).unwrap();
        let mut command = self.command(arguments);
        said(command.current_dir(self.path(folder)).output().unwrap())
    }
}

#[test]
fn last_is_the_newest_run_of_the_folder_that_one_is_in() {
    let world = World::new(ANSWER);
    world
        .in_folder("elsewhere", &["show"])
        .exits(2)
        .says("no run yet");
    world.gyrus(&["run", "the first goal"]).exits(0);
    world
        .in_folder("elsewhere", &["run", "the second goal"])
        .exits(0);
    for arguments in [&["show"][..], &["show", "last"], &["record"], &["trace"]] {
        let shown = world.gyrus(arguments).exits(0).out;
        assert!(!shown.contains("second"), "{arguments:?}: {shown}");
    }
    let below = world.in_folder("work/sub/folder", &["show"]).exits(0).out;
    assert!(below.contains("the first goal"), "{below}");
    let nowhere: [&[&str]; 9] = [
        &["show"],
        &["undo", "last"],
        &["stop"],
        &["resume"],
        &["approve"],
        &["steer", "more"],
        &["abandon"],
        &["runs", "rm", "last", "--yes"],
        &["runs", "verify", "last"],
    ];
    for arguments in nowhere {
        world
            .in_folder("a third", arguments)
            .exits(2)
            .says("you have begun no run in")
            .says("--anywhere");
    }
    let newest = world
        .in_folder("a third", &["show", "--anywhere"])
        .exits(0)
        .out;
    assert!(newest.contains("the second goal"), "{newest}");
}

#[test]
fn a_list_has_the_runs_of_the_folder() {
    let world = World::new(ANSWER);
    world.gyrus(&["run", "the first goal"]).exits(0);
    world
        .in_folder("elsewhere", &["run", "the second goal"])
        .exits(0);
    let goals = |folder: &str, arguments: &[&str]| {
        let listed = world
            .in_folder(folder, &[&["runs"], arguments].concat())
            .exits(0)
            .out;
        ["first", "second"].map(|word| listed.contains(word))
    };
    assert_eq!(goals("work", &[]), [true, false]);
    assert_eq!(goals("work/sub", &[]), [true, false]);
    assert_eq!(goals("work", &["--all"]), [true, true]);
    assert_eq!(goals("elsewhere", &["--json"]), [false, true]);
    let other = ["--workdir", "../work"];
    assert_eq!(goals("elsewhere", &other), [true, false]);
    let none = world.in_folder("a third", &["runs"]).exits(0).out;
    assert!(
        none.contains("2 runs on this machine: gyrus runs --all"),
        "{none}"
    );
}

#[test]
fn a_folder_of_the_system_needs_a_yes() {
    let world = World::new(ANSWER);
    let settings = world.path("person/.config/editor");
    fs::create_dir_all(&settings).unwrap();
    let settings = settings.canonicalize().unwrap();
    let there = settings.to_str().unwrap();
    for folder in ["/etc", "/usr/share", "/var/log", "/boot", there] {
        let said = world.gyrus(&["run", "go", "--workdir", folder]).exits(2);
        said.says("belongs to the system").says("agree once");
    }
    let run = ["run", "go", "--workdir", there];
    for (answer, code) in [("n\r", 1), ("y\r", 0)] {
        let Some(mut terminal) = Terminal::start(&world, &run, "") else {
            return;
        };
        terminal.shows("[y/N]");
        terminal.types(answer);
        let end = terminal.rest();
        assert_eq!(terminal.exit_code(), Some(code), "{answer:?}: {end}");
    }
    // The yes counts from then on, for what lies below, and for nothing else.
    world.gyrus(&run).exits(0);
    fs::create_dir(settings.join("themes")).unwrap();
    let below = format!("{there}/themes");
    world.gyrus(&["run", "go", "--workdir", &below]).exits(0);
    world.gyrus(&["run", "go", "--workdir", "/etc"]).exits(2);
}

#[test]
fn in_the_home_folder_a_person_names_another_one() {
    let world = World::new(ANSWER);
    for only_looks in [
        "skills list",
        "mcp list",
        "policy explain ls",
        "tools",
        "runs",
        "approvals",
    ] {
        let words: Vec<&str> = only_looks.split(' ').collect();
        world.in_folder("person", &words).exits(0);
    }
    let home = world.path("person");
    let run = ["run", "go", "--workdir", home.to_str().unwrap()];
    let Some(mut terminal) = Terminal::start(&world, &run, "") else {
        return;
    };
    terminal.shows("Name a folder");
    terminal.types("a garden\r");
    terminal.rest();
    assert_eq!(terminal.exit_code(), Some(0));
    let garden = world.in_folder("person/a garden", &["show"]).exits(0).out;
    assert!(garden.contains("goal: go"), "{garden}");

    let mut terminal = Terminal::start(&world, &run, "").unwrap();
    terminal.shows("Name a folder");
    terminal.types("\r");
    terminal.shows("read-only");
    terminal.rest();
    assert_eq!(terminal.exit_code(), Some(0));
    let left: Vec<_> = fs::read_dir(&home)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["a garden"]);
}

/// The register of the runs can be torn, older than the runs, or gone: the journals say the same.
#[test]
fn lists_are_the_same_without_their_register() {
    let world = World::new(ANSWER);
    for goal in ["the first goal", "the second goal", "the third goal"] {
        world.gyrus(&["run", goal]).exits(0);
    }
    let register = world.store().root().join("runs.register");
    let list = || world.gyrus(&["runs"]).exits(0).out;
    let (whole, listed) = (fs::read(&register).unwrap(), list());
    assert_eq!(listed.lines().count(), 3);
    let old = || {
        let file = fs::OpenOptions::new().write(true).open(&register).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    };
    // A line is cut off, or its characters are none, or the newest are missing.
    for length in [whole.len() - 3, whole.len() / 2, 50, 7, 0] {
        fs::write(&register, &whole[..length]).unwrap();
        old();
        assert_eq!(list(), listed, "{length}");
    }
    fs::write(
        &register,
        [&whole[..], b"\nbegan \xff\xfe\nbegan x y\n\nover"].concat(),
    )
    .unwrap();
    assert_eq!(list(), listed);
    fs::remove_file(&register).unwrap();
    assert_eq!(list(), listed);
    world.gyrus(&["runs", "rm", "last", "--yes"]).exits(0);
    let left = list();
    assert!(
        left.lines().count() == 2 && !left.contains("third"),
        "{left}"
    );
    world.gyrus(&["run", "a fourth goal"]).exits(0);
    assert!(list().lines().next().unwrap().contains("a fourth goal"));
    assert_eq!(
        world
            .gyrus(&["runs", "--limit", "1"])
            .exits(0)
            .out
            .lines()
            .count(),
        1
    );
    let last = world.gyrus(&["show", "last"]).exits(0).out;
    assert!(last.contains("a fourth goal"), "{last}");
}
