//! The demo holds what it shows.

use std::{path::PathBuf, process::Command};

use serde_json::Value;

use crate::{
    browsing::has_browser,
    support::{Said, World, said},
};

fn demo(world: &World, more: &[&str], with_browser: bool) -> Said {
    let arguments: Vec<_> = [&["demo"], more].concat();
    let mut command: Command = world.command(&arguments);
    if with_browser {
        command.env_remove("GYRUS_BROWSER");
    }
    said(command.output().unwrap())
}

fn findings(said: &Said) -> Vec<String> {
    let findings: Vec<Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        findings.iter().all(|finding| finding["held"] == true),
        "{said:?}"
    );
    let name = |finding: &Value| finding["finding"].as_str().unwrap().to_owned();
    findings.iter().map(name).collect()
}

#[test]
fn in_a_shop_everything_holds() {
    if !has_browser() {
        return;
    }
    let world = World::new("");
    let said = demo(&world, &["--json", "--item", "copper kettle"], true).exits(0);
    assert_eq!(
        findings(&said),
        [
            "nothing_survives_the_kill",
            "the_run_reaches_its_goal",
            "ordered_exactly_once",
            "what_the_page_demands_is_refused",
            "the_outcome_is_checked",
            "the_replay_agrees",
            "the_film_shows_every_step",
        ]
    );
    assert!(said.out.contains("1 × copper-kettle to Ada Lovelace"));
    assert!(world.runs().is_empty(), "it has a home of its own");
    let film = said.out.split("file://").nth(1).unwrap();
    let film = PathBuf::from(film.split('"').next().unwrap());
    let page = std::fs::read_to_string(&film).unwrap();
    assert!(page.contains("<img") && page.contains("Place order"));
    assert!(page.contains("gyrus demo"), "who said yes");
    std::fs::remove_file(film).unwrap();
}

#[test]
fn without_a_browser_it_works_in_a_folder() {
    let world = World::new("");
    let said = demo(&world, &["--json"], false).exits(0);
    assert_eq!(
        findings(&said),
        [
            "nothing_survives_the_kill",
            "the_run_reaches_its_goal",
            "finished_effects_happen_once",
            "the_interrupted_effect_is_not_repeated",
            "the_replay_agrees",
            "the_fork_goes_its_own_way",
            "the_chain_holds",
            "the_chain_holds",
        ]
    );
    assert!(world.runs().is_empty(), "it has a home of its own");
}

#[test]
fn the_first_line_says_what_is_scripted_and_what_is_real() {
    let world = World::new("");
    let said = demo(&world, &["--keep"], false).exits(0);
    let first = said.out.lines().next().unwrap();
    assert!(
        first.contains("Scripted") && first.contains("Real"),
        "{first}"
    );
    assert!(said.out.contains("Left out: the shop"), "{said:?}");
    let home = said
        .out
        .lines()
        .find_map(|line| line.trim().strip_prefix("export GYRUS_HOME="));
    let home = PathBuf::from(home.expect("it says where"));
    assert!(home.join("journal").is_dir());
    std::fs::remove_dir_all(home.parent().unwrap()).unwrap();
}

#[test]
fn what_is_not_on_sale_is_said_at_once() {
    let world = World::new("");
    demo(&world, &["--item", "copper ketle"], false)
        .exits(2)
        .says("did you mean `Copper kettle`?");
}
