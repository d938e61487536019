//! The engineer loop, crashed everywhere, in every phase.

use gyrus_conformance::{
    matrix::crash_everywhere,
    scenario::Scenario,
    script::{Script, Turn, too_fast},
    world::{APPEND, LOOK, PUT, line, value},
};
use gyrus_contract::Purpose;
use gyrus_kernel::Ending;
use serde_json::json;

/// The judge of these scenarios is the tool that shows the world: it accepts one in which it reads
/// a verdict.
fn scenario(name: &str, turns: impl IntoIterator<Item = Turn>) -> Scenario {
    let preparing = [
        // No tool of this phase.
        Turn::call(PUT, value("early", "yes")),
        Turn::empty(),
        Turn::say("1. look 2. mend").after([too_fast()]),
    ];
    let script = Script::agent(turns)
        .and(Purpose::Plan, preparing)
        .and(Purpose::Reflect, [Turn::say("Looking first.")]);
    let config = json!({"strategy": "engineer", "judge": format!("mcp:{LOOK}")});
    Scenario::new("engineer", script)
        .configured(config)
        .named(name)
}

fn submit() -> Turn {
    Turn::call(LOOK, json!({}))
}

#[tokio::test]
async fn crashed_everywhere_on_the_way_to_a_yes() {
    let scenario = scenario(
        "engineer",
        [
            Turn::call(PUT, value("colour", "green")),
            submit().after([too_fast()]),
            Turn::call(PUT, value("verdict", r#"{"accepted": true}"#)),
            submit().and_call(PUT, value("late", "yes")),
        ],
    );
    let bench = scenario.bench();
    let ended = bench.start().await.unwrap();
    assert!(
        matches!(ended.ending, Ending::Reached { .. }),
        "{:?}",
        ended.ending
    );
    let names: Vec<_> = bench.world.state().values.into_keys().collect();
    assert_eq!(names, ["colour", "verdict"]);
    let tried = crash_everywhere(&scenario).await;
    assert!(
        tried.crashes >= 40 && tried.second_crashes >= 80,
        "{tried:?}"
    );
}

#[tokio::test]
async fn crashed_everywhere_on_the_way_to_the_last_no() {
    let turns = [
        Turn::call(PUT, value("verdict", r#"{"accepted": false}"#)),
        submit(),
        Turn::call(APPEND, line("one")),
        submit(),
        submit(),
        submit(),
    ];
    let scenario = scenario("engineer, rejected", turns);
    let ended = scenario.bench().start().await.unwrap();
    let Ending::Failed { reason, .. } = ended.ending else {
        panic!("{:?}", ended.ending);
    };
    assert!(reason.contains("rejected the work 4 times"), "{reason}");
    let tried = crash_everywhere(&scenario).await;
    assert!(
        tried.crashes >= 40 && tried.second_crashes >= 80,
        "{tried:?}"
    );
}
