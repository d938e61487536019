//! Servers that want harm: each is contained, and the next call is answered.

use std::{collections::BTreeSet, fs, time::Instant};

use gyrus_mcp::{ServerState, Servers};
use serde_json::json;

use crate::world::{TIMEOUT, World, named, ready};

/// Maximum memory that a test with a hostile server may ever have had, in kilobytes.
const MAX_MEMORY_KB: u64 = 300_000;

/// Calls a tool of a hostile server, and then a plain one.
async fn contained(name: &str) -> (World, String) {
    let world = World::new();
    let (servers, tools) = ready(world.setup("good")).await;
    let hostile = named(&tools, &format!("srv__{name}"));
    let output = world.call(hostile, json!({})).await;
    let echo = named(&tools, "srv__echo");
    let after = world.call(echo, json!({"message": "again"})).await;
    assert_eq!(after.text, "you said again", "{name}");
    servers.leave().await;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: u64 = peak
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    assert!(peak < MAX_MEMORY_KB, "{name}: {peak} kB");
    (world, output.text)
}

#[tokio::test]
async fn a_flood_of_100_mb_is_cut_off() {
    let (_, text) = contained("flood").await;
    assert!(
        text.contains("a message of more than 8388608 bytes"),
        "{text}"
    );
}

#[tokio::test]
async fn an_answer_belongs_to_its_own_call() {
    let (_, text) = contained("reuse").await;
    assert_eq!(text, "of this call");
}

#[tokio::test]
async fn no_model_is_asked_for_a_server() {
    let (world, text) = contained("samples").await;
    assert_eq!(text, "after the questions");
    let heard = world.heard();
    let answers = heard.lines().filter(|line| line.contains("\"id\":\"s"));
    let mut number = 0;
    for answer in answers {
        assert!(answer.contains("\"error\""), "{answer}");
        number += 1;
    }
    assert_eq!(number, 2_000);
}

#[tokio::test]
async fn no_person_is_asked_for_a_password() {
    let (world, text) = contained("password").await;
    assert_eq!(text, "after the question");
    let heard = world.heard();
    let answer = heard.lines().find(|line| line.contains("\"id\":\"e1\""));
    assert!(
        answer.unwrap().contains("\"action\":\"decline\""),
        "{heard}"
    );
}

#[tokio::test]
async fn a_storm_of_changes_costs_one_list() {
    let (world, text) = contained("storm").await;
    assert_eq!(text, "after the storm");
    let lists = world.heard().matches("tools/list").count();
    // The first one; one or two after the storm, if a part of it was handled later.
    assert!((2..=3).contains(&lists), "{lists}");
}

#[tokio::test]
async fn a_flood_of_progress_is_passed_on_slowly() {
    let (world, text) = contained("progresses").await;
    assert_eq!(text, "after the progress");
    let told = world.told();
    assert!(told.len() < 200, "{}", told.len());
    assert!(told.iter().all(|words| words.len() < 200), "{told:?}");
}

#[tokio::test]
async fn no_tool_takes_the_place_of_another() {
    let world = World::new();
    let (servers, tools) = ready(world.setup("shadow")).await;
    let names: BTreeSet<_> = tools.iter().map(|tool| tool.spec().name.clone()).collect();
    assert_eq!(names.len(), 8, "{names:?}");
    for name in &names {
        assert!(name.starts_with("srv__") && name.is_ascii(), "{name}");
    }
    for own in ["read", "shell", "finish", "find_tools"] {
        assert!(!names.contains(own) && names.contains(&format!("srv__{own}")));
    }
    servers.leave().await;
}

#[tokio::test]
async fn schemas_that_explode_take_no_time() {
    let world = World::new();
    let mut servers = Servers::start(vec![world.setup("bombs")]);
    let state = servers.states(TIMEOUT).await["srv"].clone();
    let ServerState::Ready { left_out, .. } = state else {
        panic!("{state:?}");
    };
    let left_out: Vec<_> = left_out.iter().map(|left| left.to_owned().tool).collect();
    assert_eq!(left_out, ["deep", "wide"]);
    let tools = servers.tools();
    let hostile = "a".repeat(50_000) + "!";
    let begun = Instant::now();
    for name in ["srv__cycle", "srv__fork", "srv__regex"] {
        let arguments = json!({"a": hostile, "b": {"c": {"d": [1, 2, 3]}}});
        let output = world.call(named(&tools, name), arguments).await;
        assert_eq!(output.text, "nothing", "{name}");
    }
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    servers.leave().await;
}

#[tokio::test]
async fn words_before_the_greeting_are_no_answer() {
    let world = World::new();
    let (servers, tools) = ready(world.setup("early")).await;
    let echo = named(&tools, "srv__echo");
    let output = world.call(echo, json!({"message": "hello"})).await;
    assert_eq!(output.text, "you said hello");
    servers.leave().await;
}
