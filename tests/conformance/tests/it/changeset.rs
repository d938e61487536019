//! The changeset loop, crashed everywhere; its two questions, answered by whatever process.

use std::time::Duration;

use gyrus_conformance::{
    matrix::crash_everywhere,
    scenario::Scenario,
    script::{Script, Turn, too_fast},
    world::{CONFLICT, LOOK, PROPOSE, PUT, World, value},
};
use gyrus_contract::{OnAsk, Purpose};
use gyrus_kernel::{Ending, Entry};
use serde_json::{Value, json};

use crate::plan::{cut, later, yes};

fn propose(summary: &str, colour: &str) -> Turn {
    let changes = json!([
        {"path": "colour", "reason": "asked for", "content": colour},
        {"path": "size", "reason": "too", "content": "large"},
    ]);
    Turn::call(PROPOSE, json!({"summary": summary, "changes": changes}))
}

fn scenario(turns: impl IntoIterator<Item = Turn>, reviews: &Value) -> Scenario {
    let learned = Turn::say(r#"{"worked": "Green.", "did_not": "The first time."}"#);
    let script = Script::default()
        .and(Purpose::Plan, turns)
        .and(Purpose::Reflect, [learned.after([too_fast()])]);
    let config = json!({"strategy": "changeset", "reviews": reviews});
    let mut scenario = Scenario::new("changeset", script).configured(config);
    scenario.tools = World::tools_for_changesets;
    scenario
}

#[tokio::test]
async fn crashed_everywhere() {
    let turns = [
        // No tool of this phase.
        Turn::call(PUT, value("early", "yes")),
        Turn::call(LOOK, json!({})).after([too_fast()]),
        propose("wrong", "green"),
        propose("this cannot be applied", CONFLICT),
        propose("this can", "green"),
    ];
    let scenario = scenario(turns, &json!([]));
    let bench = scenario.bench();
    let ended = bench.start().await.unwrap();
    assert!(
        matches!(ended.ending, Ending::Reached { .. }),
        "{:?}",
        ended.ending
    );
    let state = bench.world.state().values;
    let names: Vec<_> = state.keys().collect();
    assert_eq!(names, ["colour", "size", "tried"]);
    let tried = crash_everywhere(&scenario).await;
    assert!(
        tried.crashes >= 40 && tried.second_crashes >= 80,
        "{tried:?}"
    );
}

fn reviewed() -> Scenario {
    let mut scenario = scenario(
        [propose("this can", "green")],
        &json!(["context", "proposal"]),
    );
    scenario.new.on_ask = OnAsk::Park;
    scenario.questions_last = Duration::from_secs(48 * 60 * 60);
    scenario
}

/// After any entry the next process goes on, asks what nobody has answered, and comes to the same.
#[tokio::test]
async fn crashed_everywhere_around_both_yeses() {
    let scenario = reviewed();
    let mut bench = scenario.bench();
    bench.start().await.unwrap();
    for _ in 0..2 {
        assert!(bench.world.state().values.is_empty(), "done without a yes");
        bench.send(yes(&bench));
        bench = bench.again();
        bench.resume().await.unwrap();
    }
    let whole = bench;
    let recording = whole.recording();
    assert_eq!(recording.count("changeset.reflection"), 1);
    for entries in 1..recording.lines.len() {
        let left = cut(&recording, entries);
        let deeds = whole.world.deeds().into_iter();
        let deeds = deeds.filter(|deed| left.has_settled(deed));
        let mut next = scenario.bench_after(deeds.collect());
        left.plant(&whole.store, &next.store);
        let mut finished = next.resume().await.unwrap().ending;
        let mut asked = 0;
        while let Ending::Waiting { .. } = finished {
            asked += 1;
            assert!(asked <= 2, "after {entries}: it asks again and again");
            next.send(yes(&next));
            next = next.again();
            finished = next.resume().await.unwrap().ending;
        }
        let answered = left.count("approval.answered");
        assert_eq!(answered + asked, 2, "after {entries}");
        assert!(
            matches!(finished, Ending::Reached { .. }),
            "after {entries}: {finished:?}"
        );
        assert_eq!(next.world.state(), whole.world.state(), "after {entries}");
    }
}

#[tokio::test]
async fn both_questions_are_answered_a_day_later_by_other_processes() {
    let bench = reviewed().bench();
    bench.start().await.unwrap();
    let next = later(&bench, 24);
    next.send(yes(&next));
    let parked = next.again();
    let ended = parked.resume().await.unwrap();
    assert!(matches!(ended.ending, Ending::Waiting { .. }), "{ended:?}");
    let last = later(&parked, 24);
    last.send(yes(&last));
    let ended = last.again().resume().await.unwrap();
    assert!(matches!(ended.ending, Ending::Reached { .. }), "{ended:?}");
    assert_eq!(last.world.state().values.len(), 2);
    let asked = last.recording();
    let asked = asked
        .entries()
        .filter(|entry| matches!(entry, Entry::ApprovalAsked(_)));
    assert_eq!(asked.count(), 2);
}
