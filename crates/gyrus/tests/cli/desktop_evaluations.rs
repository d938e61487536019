//! `gyrus eval desktop`: tasks on real programs of a desktop, played by a model that sees only what
//! its requests show.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gyrus_player::Player;
use serde_json::Value;

use crate::{
    desktop_runs::has,
    support::{World, read},
};

/// The folder of the suite.
fn suite() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/suite-of-desktops")
}

/// Plays the tasks that fit, and returns the report.
fn play(world: &World, only: &str, passed: &str) -> Value {
    let player = Player::start(gyrus_player::read(&suite()).unwrap()).unwrap();
    let (model, folder) = (player.model(), world.path("report"));
    let evaluate = ["eval", "desktop", "--only", only, "--model", &model];
    let report = ["--report", folder.to_str().unwrap()];
    let told = world.gyrus(&[&evaluate[..], &report].concat()).exits(0);
    assert!(told.out.contains(passed), "{told:#?}");
    let figures = player.figures();
    assert_eq!(
        (figures.unusable, figures.never_found),
        (0, 0),
        "{figures:?}"
    );
    serde_json::from_str(&read(&folder.join("report.json"))).unwrap()
}

/// Plays a task, and sees that nothing was denied and that every input reached what it named.
fn passes(task: &str, programs: &[&str]) {
    if !has(&[&["Xvfb", "openbox"], programs].concat()) {
        return;
    }
    let world = World::new("");
    let report = play(&world, task, "1 of 1 passed");
    let attempt = &report["attempts"][0];
    assert_eq!(attempt["landed_elsewhere"], 0);
    assert_eq!(attempt["questions"]["denied"], 0, "{attempt:#}");
}

#[test]
fn a_task_with_two_programs_is_played() {
    passes("both-sum", &["mousepad", "galculator"]);
}

/// A message has another name than its window, and dropping what was typed is asked about.
#[test]
fn a_task_with_a_message_of_a_program_is_played() {
    passes("editor-drop-changes", &["mousepad"]);
}

/// The names of files are parts of cells, and the menu is a window of its own.
#[test]
fn a_task_with_a_list_of_files_and_a_menu_is_played() {
    passes("files-rename-by-menu", &["thunar"]);
}

/// Two tasks of which the second one starts what it does not name.
const TASKS: &str = r#"
screen = "x11"

[[task]]
id = "named"
goal = "Open mousepad."
programs = ["mousepad"]
checks = ["text:Mousepad"]
does = [{ open = "mousepad" }]

[[task]]
id = "not-named"
goal = "Open the calculator."
programs = ["mousepad"]
checks = ["text:galculator"]
budget = { steps = 3, seconds = 60 }
does = [{ open = "galculator" }]
"#;

#[test]
fn only_the_programs_of_a_task_are_allowed() {
    if !has(&["Xvfb", "openbox", "mousepad", "galculator"]) {
        return;
    }
    let world = World::new("");
    let file = world.path("tasks.toml");
    fs::write(&file, TASKS).unwrap();
    let player = Player::start(gyrus_player::read(&file).unwrap()).unwrap();
    let (model, folder) = (player.model(), world.path("report"));
    let evaluate = ["eval", file.to_str().unwrap(), "--model", &model];
    let report = ["--report", folder.to_str().unwrap()];
    let told = world.gyrus(&[&evaluate[..], &report].concat()).exits(1);
    assert!(told.out.contains("1 of 2 passed"), "{told:#?}");
    let report: Value = serde_json::from_str(&read(&folder.join("report.json"))).unwrap();
    let [named, other] = [0, 1].map(|number| &report["attempts"][number]);
    assert_eq!(named["passed"], true, "{named:#}");
    assert_eq!(other["passed"], false, "{other:#}");
    assert_eq!(other["questions"]["allowed"], 0, "{other:#}");
    assert!(other["questions"]["denied"].as_u64() > Some(0), "{other:#}");
}

#[test]
fn a_program_that_a_task_needs_and_nobody_has_is_named_at_once() {
    let world = World::new("");
    let tasks = TASKS.replace("\"mousepad\"", "\"no-such-program\"");
    fs::write(world.work().join("tasks.toml"), tasks).unwrap();
    let told = world.gyrus(&["eval", "tasks.toml"]).exits(2);
    assert!(
        told.err.contains("`no-such-program` was not found"),
        "{told:?}"
    );
    assert!(world.runs().is_empty());
}
