//! Every loop, crashed everywhere.

use gyrus_conformance::{
    matrix::{Tried, crash_everywhere},
    recording::Cut,
    scenario::Scenario,
    script::{Script, Turn, too_fast},
    workflow::CHILD_GOAL,
    world::{APPEND, FINISH, LOOK, PUT, claim, line, value},
};
use gyrus_contract::Purpose;
use gyrus_kernel::{CallEnd, Entry, ForkInto, ResumeChanges};
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
    assert!(
        tried.crashes >= at_least.crashes && tried.second_crashes >= at_least.second_crashes,
        "{tried:?}"
    );
}

fn tried(crashes: usize, second_crashes: usize) -> Tried {
    Tried {
        crashes,
        second_crashes,
    }
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
    check(Scenario::new("react", script), tried(50, 100)).await;
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
        Turn::call(APPEND, line("one"))
            .and_call(PUT, value("a", "b"))
            .and_call(LOOK, json!({})),
        finish(),
    ])
    .and(
        Purpose::Reflect,
        [Turn::say("That failed; do it otherwise.")],
    );
    let scenario = Scenario::new("react", script).configured(config("react", true));
    check(scenario.named("react, misbehaving"), tried(90, 180)).await;
}

#[tokio::test]
async fn chain_of_thought() {
    let script = Script::agent([
        Turn::call(PUT, value("x", "y")),
        Turn::call(APPEND, line("one")),
        finish(),
    ])
    .and(
        Purpose::Plan,
        [Turn::say("1. put\n2. append").after([too_fast()])],
    );
    let scenario = Scenario::new("chain-of-thought", script);
    check(
        scenario.configured(config("chain-of-thought", false)),
        tried(30, 60),
    )
    .await;
}

/// The configuration of a replay of calls, of which each puts a value.
fn replays(tools: &[&str]) -> Value {
    let step = |(number, tool): (usize, &&str)| {
        json!({
            "tool": tool, "arguments": value(&format!("colour {number}"), "green"),
            "texts": [["/value", [0]]], "targets": [], "before": [], "after": [],
            "commits": false, "waited_ms": 0,
        })
    };
    let slot = json!({"name": "colour", "learned": "green", "shape": "words"});
    let procedure = json!({
        "name": "paint", "command": ["paint it ", 0], "slots": [slot],
        "place": {"kind": "folder", "workspace": "/"},
        "steps": tools.iter().enumerate().map(step).collect::<Vec<_>>(),
        "ends": [], "checks": [], "answer": ["it is ", 0],
    });
    let replays = json!({"procedure": procedure, "values": ["blue"]});
    json!({"strategy": "procedure", "replays": replays})
}

#[tokio::test]
async fn a_procedure() {
    let scenario = Scenario::new("procedure", Script::agent([]));
    check(scenario.configured(replays(&[PUT, PUT])), tried(15, 20)).await;
}

#[tokio::test]
async fn a_procedure_that_is_handed_over() {
    let script = Script::agent([Turn::call(PUT, value("x", "y")), finish()]);
    let scenario = Scenario::new("procedure", script).configured(replays(&[PUT, "no_such_tool"]));
    check(scenario.named("procedure, handed over"), tried(25, 40)).await;
}

#[tokio::test]
async fn single_shot() {
    let script = Script::agent([Turn::say("It is so.").after([too_fast()])]);
    let scenario = Scenario::new("single-shot", script);
    check(
        scenario.configured(config("single-shot", false)),
        tried(8, 8),
    )
    .await;
}

#[tokio::test]
async fn every_effect_there_is() {
    check(Scenario::new("workflow", workflow_script()), tried(90, 180)).await;
}

fn workflow_script() -> Script {
    Script::default()
        .for_goal(
            CHILD_GOAL,
            Purpose::Agent,
            [
                Turn::call(APPEND, line("by the child")),
                Turn::call(FINISH, claim("done")),
            ],
        )
        .and(Purpose::Plan, [Turn::say("now the people")])
}

#[tokio::test]
async fn what_a_race_cuts_off_has_an_outcome() {
    let bench = Scenario::new("workflow", workflow_script()).bench();
    bench.start().await.unwrap();
    let recording = bench.recording();
    let cut_off = recording.entries().filter(|entry| {
        matches!(entry, Entry::ToolResulted(result) if result.settled == CallEnd::Cancelled)
    });
    assert_eq!(
        cut_off.count(),
        2,
        "one lost to a branch and one to the clock"
    );
    assert_eq!(
        recording.count("tool.started"),
        recording.count("tool.result")
    );
}

#[tokio::test]
async fn a_cycle_that_a_crash_cut_off_still_keeps_the_workspace() {
    let scenario = Scenario::new(
        "react",
        Script::agent([Turn::call(PUT, value("a", "b")), finish()]),
    );
    let bench = scenario.bench();
    bench.start().await.unwrap();
    let whole = bench.recording();
    let entries = 1 + whole
        .kinds()
        .iter()
        .position(|kind| *kind == "tool.result")
        .unwrap();
    let next = scenario.bench_after(bench.world.deeds()[..1].to_vec());
    whole
        .cut(Cut {
            entries,
            of_child: None,
        })
        .plant(&bench.store, &next.store);
    // What the call had done to a file before the crash.
    std::fs::write(scenario.new.workspace.join("a"), "b").unwrap();
    next.resume().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let fork = ForkInto::Folder(folder.path().join("fork"));
    next.kernel
        .fork(next.run(), 1, fork, ResumeChanges::default())
        .unwrap();
    assert_eq!(
        std::fs::read_to_string(folder.path().join("fork/a")).unwrap(),
        "b"
    );
}
