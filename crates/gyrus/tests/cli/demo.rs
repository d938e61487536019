//! The demo holds what it shows.

use serde_json::Value;

use crate::support::World;

#[test]
fn everything_holds() {
    let world = World::new("");
    let said = world.gyrus(&["demo", "--json"]).exits(0);
    let findings: Vec<Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        findings.iter().all(|finding| finding["held"] == true),
        "{said:?}"
    );
    let names: Vec<&str> = findings
        .iter()
        .map(|finding| finding["finding"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
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
    let said = world.gyrus(&["demo", "--keep"]).exits(0);
    let first = said.out.lines().next().unwrap();
    assert!(
        first.contains("Scripted") && first.contains("Real"),
        "{first}"
    );
    let home = said
        .out
        .lines()
        .find_map(|line| line.trim().strip_prefix("export GYRUS_HOME="));
    let home = std::path::PathBuf::from(home.expect("it says where"));
    assert!(home.join("journal").is_dir());
    std::fs::remove_dir_all(home.parent().unwrap()).unwrap();
}
