//! Every loop, crashed everywhere.

use gyrus_conformance::{
    matrix::{Tried, crash_everywhere},
    scenario::Scenario,
    script::{Script, Turn, too_fast},
    workflow::CHILD_GOAL,
    world::{APPEND, FINISH, LOOK, PUT, claim, line, value},
};
use gyrus_contract::Purpose;
use serde_json::{Value, json};

fn finish() -> Turn {
    Turn::call(FINISH, claim("in order"))
}

fn look() -> Turn {
    Turn::call(LOOK, json!({}))
}

fn config(strategy: &str, reflection: bool) -> Value {
    json!({"strategy": strategy, "reflection": reflection})
}

async fn check(scenario: Scenario, at_least: Tried) {
    let tried = crash_everywhere(&scenario).await;
    eprintln!("{}: {tried:?}", scenario.name);
    assert!(
        tried.crashes >= at_least.crashes && tried.second_crashes >= at_least.second_crashes,
        "{tried:?}"
    );
}

fn tried(crashes: usize, second_crashes: usize) -> Tried {
    Tried { crashes, second_crashes }
}

#[tokio::test]
async fn react_working() {
    let script = Script::agent([
        Turn::say("I look first.").and_call(LOOK, json!({})),
        Turn::call(PUT, value("colour", "green")),
        Turn::call(APPEND, line("one")).and_call(APPEND, line("two")),
        Turn::call(LOOK, json!({})).and_call(LOOK, json!({"again": true})),
        finish(),
    ]);
    check(Scenario::new("react", script), tried(40, 100)).await;
}

#[tokio::test]
async fn react_with_a_model_that_misbehaves() {
    let script = Script::agent([
        look().after([too_fast(), too_fast()]),
        Turn::empty(),
        Turn::say("I have nothing to call.").cut(),
        Turn::call("no_such_tool", json!({})),
        Turn::call(APPEND, Value::String("no object".to_owned())),
        look().without_usage(),
        look(),
        look(),
        look(),
        Turn::call(APPEND, line("one")).and_call(PUT, value("a", "b")).and_call(LOOK, json!({})),
        finish(),
    ])
    .and(Purpose::Reflect, [Turn::say("That failed; do it otherwise.")]);
    let scenario = Scenario::new("react", script).configured(config("react", true));
    check(scenario.named("react, misbehaving"), tried(80, 400)).await;
}

#[tokio::test]
async fn chain_of_thought() {
    let script =
        Script::agent([Turn::call(PUT, value("x", "y")), Turn::call(APPEND, line("one")), finish()])
            .and(Purpose::Plan, [Turn::say("1. put\n2. append").after([too_fast()])]);
    let scenario = Scenario::new("chain-of-thought", script);
    check(scenario.configured(config("chain-of-thought", false)), tried(25, 60)).await;
}

#[tokio::test]
async fn single_shot() {
    let script = Script::agent([Turn::say("It is so.").after([too_fast()])]);
    let scenario = Scenario::new("single-shot", script);
    check(scenario.configured(config("single-shot", false)), tried(7, 5)).await;
}

#[tokio::test]
async fn every_effect_there_is() {
    let script = Script::default()
        .for_goal(
            CHILD_GOAL,
            Purpose::Agent,
            [Turn::call(APPEND, line("by the child")), Turn::call(FINISH, claim("done"))],
        )
        .and(Purpose::Plan, [Turn::say("now the people")]);
    check(Scenario::new("workflow", script), tried(80, 300)).await;
}
