//! One run to its end, and again without the world.

use gyrus_conformance::{
    scenario::Scenario,
    script::{Script, Turn},
    world::{APPEND, FINISH, LOOK, PUT, claim, line, value},
};
use gyrus_kernel::Ending;
use serde_json::json;

#[tokio::test]
async fn a_run_reaches_its_goal_and_its_journal_explains_it() {
    let scenario = Scenario::new(
        "react",
        Script::agent([
            Turn::say("I look first.").and_call(LOOK, json!({})),
            Turn::call(PUT, value("colour", "green")),
            Turn::call(APPEND, line("one")).and_call(APPEND, line("two")),
            Turn::call(FINISH, claim("in order")),
        ]),
    );
    let bench = scenario.bench();
    let finished = bench.start().await.unwrap();
    assert!(
        matches!(&finished.ending, Ending::Reached { claim, .. } if claim.answer == "in order")
    );
    assert_eq!(bench.world.state().lines, ["one", "two"]);
    assert_eq!((finished.spent.steps, finished.spent.tokens), (4, 440));

    let deeds = bench.world.deeds();
    let replayed = bench.again().kernel.replay(bench.run()).await.unwrap();
    assert_eq!((replayed.cycles, replayed.unfinished), (4, false));
    assert!(replayed.differences.is_empty());
    assert_eq!(bench.world.deeds(), deeds, "a replay touches nothing");
    insta::assert_snapshot!(bench.recording().kinds().join("\n"));
}
