//! A task that is done for the third time, with everything that runs remember, is done no worse.

use std::fs;

use gyrus_player::Player;
use serde_json::Value;

use crate::{
    browsing::{browsing, has_browser},
    support::{World, read, said},
};

/// Fresh tokens by which a prompt of the third run may be longer, as the player counts them.
const MORE_TOKENS_A_PROMPT: f64 = 650.0;

/// Returns the task of ordering a clock for somebody, as the player reads it.
fn order(id: &str, goal: &str, who: &str) -> String {
    format!(
        r#"
[[task]]
id = "{id}"
goal = "{goal}"
start = "/shop/wall-clock"
checks = ["text:Thank you, {who}"]
budget = {{ steps = 15, seconds = 600 }}
does = [
  {{ click = "button Add to cart" }},
  {{ click = "link Check out" }},
  {{ type = "textbox Name", text = "{who}" }},
  {{ type = "textbox Street and number", text = "1 Row" }},
  {{ type = "textbox City", text = "London" }},
  {{ click = "button Place order" }},
]
"#
    )
}

#[test]
fn the_third_run_of_a_task_is_not_worse_than_the_first() {
    if !has_browser() {
        return;
    }
    let world = World::new("");
    let file = world.path("tasks.toml");
    let tasks = [
        order("order", "Order the wall clock for Ada in London.", "Ada"),
        order(
            "order-again",
            "Order the wall clock for Bob in London, and nothing else.",
            "Bob",
        ),
    ];
    fs::write(&file, tasks.concat()).unwrap();
    fs::create_dir(world.path("home")).unwrap();
    fs::write(world.path("home/config.toml"), "reflect = true\n").unwrap();
    world
        .gyrus(&["memory", "add", "Ada lives in 1 Row."])
        .exits(0);
    let player = Player::start(gyrus_player::read(&file).unwrap()).unwrap();
    let (tasks, model) = (file.display().to_string(), player.model());
    let round = |number: u32| -> Vec<Value> {
        let folder = world.path(&format!("report-{number}"));
        let folder = folder.to_str().unwrap();
        let evaluate = ["eval", &tasks, "--model", &model, "--report", folder];
        let told = said(browsing(&world, &evaluate).output().unwrap()).exits(0);
        assert!(told.out.contains("2 of 2 passed"), "{told:#?}");
        let report = read(&world.path(&format!("report-{number}/report.json")));
        let report: Value = serde_json::from_str(&report).unwrap();
        report["attempts"].as_array().unwrap().clone()
    };
    let [first, _, third] = [1, 2, 3].map(round);
    for (first, third) in first.iter().zip(&third) {
        let number = |of: &Value, path: &str| of.pointer(path).unwrap().as_u64().unwrap();
        for path in ["/steps", "/questions/asked"] {
            let (before, after) = (number(first, path), number(third, path));
            assert!(after <= before, "{path}: {after} after {before}");
        }
        let fresh = |of| number(of, "/tokens/fresh") as f64 / number(of, "/tokens/prompts") as f64;
        let more = fresh(third) - fresh(first);
        assert!(more <= MORE_TOKENS_A_PROMPT, "{more}");
    }
    // It really was given something, and all of that counts for it.
    let listed = world.gyrus(&["memory", "lessons", "--json"]).exits(0).out;
    let lessons: Vec<Value> = listed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lessons.len(), 6, "{listed}");
    let given = lessons[5]["given"].as_array().unwrap();
    assert!(!given.is_empty());
    assert!(given.iter().all(|run| run["reached"] == true), "{listed}");
}
