//! People and a running run: interrupting, stopping, steering, and being stuck.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use gyrus_conformance::{
    recording::Cut,
    scenario::{Bench, Scenario},
    script::{Script, Turn},
    world::{APPEND, FINISH, HOLD, LOOK, claim, line},
};
use gyrus_contract::{MessageBody, Prompt};
use gyrus_kernel::{AttemptResult, CallEnd, Controls, DriveResult, Ending, Entry, KernelError};
use serde_json::json;

fn finish() -> Turn {
    Turn::call(FINISH, claim("in order"))
}

/// A run that holds on in its first call, and has two more to make.
fn holding() -> Scenario {
    let hold = Turn::call(HOLD, line("held")).and_call(APPEND, line("next"));
    Scenario::new("react", Script::agent([hold, finish()]))
}

/// Drives a new run, and does something to it once its first call is in progress.
async fn disturbed(
    bench: &Bench,
    disturb: impl FnOnce(Controls),
) -> Result<DriveResult, KernelError> {
    let ready = bench.create();
    let controls = ready.controls();
    let disturbing = async {
        bench.world.holding().await;
        disturb(controls);
    };
    tokio::join!(ready.drive(), disturbing).0
}

fn outcome(bench: &Bench, tool: &str) -> Option<CallEnd> {
    let recording = bench.recording();
    let effect = recording.entries().find_map(|entry| match entry {
        Entry::ToolCalled(called) if called.call.tool == tool => Some(called.effect.clone()),
        _ => None,
    })?;
    recording.entries().find_map(|entry| match entry {
        Entry::ToolResulted(result) if result.effect == effect => Some(result.settled),
        _ => None,
    })
}

async fn goes_on(bench: &Bench, lines: &[&str]) {
    bench.world.release();
    let ended = bench.again().resume().await.unwrap();
    assert!(matches!(ended.ending, Ending::Reached { .. }), "{ended:?}");
    assert_eq!(bench.world.state().lines, lines);
    let replayed = bench.kernel.replay(bench.run()).await.unwrap();
    assert!(!replayed.unfinished && replayed.differences.is_empty());
}

#[tokio::test]
async fn an_interrupt_finishes_what_is_in_hand() {
    let bench = holding().bench();
    let parked = disturbed(&bench, |controls| {
        controls.interrupt();
        bench.world.release();
    })
    .await
    .unwrap();
    assert_eq!(parked.ending, Ending::Interrupted);
    assert_eq!(outcome(&bench, HOLD), Some(CallEnd::Done));
    assert_eq!(outcome(&bench, APPEND), None, "it began something new");
    goes_on(&bench, &["held", "next"]).await;
}

#[tokio::test]
async fn an_urgent_interrupt_cuts_off_and_says_so() {
    let bench = holding().bench();
    let parked = disturbed(&bench, |controls| controls.interrupt_now())
        .await
        .unwrap();
    assert_eq!(parked.ending, Ending::Interrupted);
    assert_eq!(outcome(&bench, HOLD), Some(CallEnd::Cancelled));
    goes_on(&bench, &["next"]).await;
}

#[tokio::test]
async fn a_cut_off_request_is_made_again_and_paid_for_twice() {
    let mut scenario = holding();
    scenario.script = Script::agent([finish().hanging()]);
    let bench = scenario.bench();
    let ready = bench.create();
    let controls = ready.controls();
    let interrupting = async {
        bench.model.hanging().await;
        controls.interrupt_now();
    };
    let (parked, ()) = tokio::join!(ready.drive(), interrupting);
    let parked = parked.unwrap();
    assert_eq!(parked.ending, Ending::Interrupted);
    let recording = bench.recording();
    let cut_off = recording.entries().any(
        |entry| matches!(entry, Entry::ModelReply(reply) if reply.came == AttemptResult::CutOff),
    );
    assert!(cut_off && parked.spent.tokens > 0 && parked.spent.estimated);
    scenario.script = Script::agent([finish()]);
    let ended = bench.again_as(scenario).resume().await.unwrap();
    assert_eq!(ended.spent.tokens, parked.spent.tokens + 110);
}

#[tokio::test]
async fn orders_come_by_the_inbox_too() {
    for (order, settled, lines) in [
        (MessageBody::Stop, CallEnd::Cancelled, ["next"].as_slice()),
        (
            MessageBody::Pause,
            CallEnd::Done,
            ["held", "next"].as_slice(),
        ),
    ] {
        let bench = holding().bench();
        let pauses = order == MessageBody::Pause;
        let ready = bench.create();
        let ordering = async {
            bench.world.holding().await;
            bench.send(order);
            while bench.waiting() > 0 {
                tokio::task::yield_now().await;
            }
            if pauses {
                bench.world.release();
            }
        };
        let (parked, ()) = tokio::join!(ready.drive(), ordering);
        let parked = parked.unwrap();
        assert!(
            matches!(&parked.ending, Ending::Stopped { by, .. } if by.id == "ann"),
            "{parked:?}"
        );
        assert_eq!(outcome(&bench, HOLD), Some(settled));
        goes_on(&bench, lines).await;
    }
}

/// Messages that amended the goal, in order, of everything that was not given up.
fn steered(bench: &Bench) -> Vec<String> {
    let recording = bench.recording();
    let messages = recording.entries().flat_map(|entry| match entry {
        Entry::Steered(steered) => steered.messages.clone(),
        _ => Vec::new(),
    });
    messages.map(|message| message.id).collect()
}

#[tokio::test]
async fn steering_amends_the_goal_once_and_for_good() {
    let looks = (0..3).map(|n| Turn::call(LOOK, json!({ "n": n })));
    let hold = Turn::call(HOLD, line("held"));
    let script = Script::agent([hold].into_iter().chain(looks).chain([finish()]));
    let scenario = Scenario::new("react", script);
    let bench = scenario.bench();
    let mut id = String::new();
    disturbed(&bench, |_| {
        let text = "mind the colours".to_owned();
        id = bench.send(MessageBody::steer(text));
        bench.world.release();
    })
    .await
    .unwrap();
    assert_eq!(steered(&bench), [id.clone()]);
    assert_eq!(bench.waiting(), 0);
    let heard = bench.model.heard();
    let times = |prompt: &Prompt| {
        let messages = prompt.messages.iter();
        let texts: String = messages.map(|message| message.text()).collect();
        texts.matches("mind the colours").count()
    };
    assert_eq!(times(&heard[0]), 0);
    assert!(heard[1..].iter().all(|prompt| times(prompt) == 1));

    // Whatever the crash left of it, the message counts once.
    let whole = bench.recording();
    for entries in 1..whole.lines.len() {
        let left = whole.cut(Cut {
            entries,
            of_child: None,
        });
        let settled = bench
            .world
            .deeds()
            .into_iter()
            .filter(|deed| left.has_settled(deed));
        let next = scenario.bench_after(settled.collect());
        next.world.release();
        left.plant(&bench.store, &next.store);
        let text = "mind the colours".to_owned();
        let body = MessageBody::steer(text);
        next.send_as(&id, body);
        next.resume().await.unwrap();
        assert_eq!(steered(&next), [id.clone()], "after {entries} entries");
        assert_eq!(next.waiting(), 0, "after {entries} entries");
        let goals: BTreeSet<_> = next.model.heard().iter().map(times).collect();
        assert!(
            !goals.contains(&2),
            "after {entries} entries it was added twice"
        );
    }
}

#[tokio::test]
async fn a_message_with_a_wrong_id_inside_is_used_once_all_the_same() {
    let scenario = holding();
    let bench = scenario.bench();
    bench.world.release();
    let ready = bench.create();
    let inside = bench.message("not an id at all", MessageBody::steer("hm"));
    bench.put(&uuid::Uuid::now_v7().to_string(), &inside);
    ready.drive().await.unwrap();
    assert_eq!((steered(&bench).len(), bench.waiting()), (1, 0));
}

#[tokio::test]
async fn a_run_that_repeats_itself_parks_and_goes_on_when_resumed() {
    let look = || Turn::call(LOOK, json!({}));
    let again = (0..8).map(|_| look());
    let script = Script::agent(again.chain([Turn::call(APPEND, line("new")), finish()]));
    let bench = Scenario::new("react", script).bench();
    let parked = bench.start().await.unwrap();
    assert!(
        matches!(&parked.ending, Ending::Stuck { what } if what.contains("look")),
        "{parked:?}"
    );
    assert_eq!(bench.world.deeds().len(), 8);
    let next = bench.again();
    let ended = next.resume().await.unwrap();
    assert!(matches!(ended.ending, Ending::Reached { .. }), "{ended:?}");
    let told = next.model.heard()[0].messages.last().unwrap().text();
    assert!(told.contains("Do it differently"), "{told}");
    assert_eq!(bench.world.state().lines, ["new"]);
}

#[tokio::test]
async fn time_before_a_pause_counts_and_time_in_it_does_not() {
    let bench = holding().bench();
    let ready = bench.create();
    let controls = ready.controls();
    let interrupting = async {
        bench.world.holding().await;
        tokio::time::sleep(Duration::from_millis(60)).await;
        controls.interrupt_now();
    };
    let (parked, ()) = tokio::join!(ready.drive(), interrupting);
    let before = parked.unwrap().spent.time_ms;
    assert!(before >= 60, "{before}");
    let between = Instant::now();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let between = between.elapsed();
    let since = Instant::now();
    let after = bench.again().resume().await.unwrap().spent.time_ms;
    let most = u128::from(before) + since.elapsed().as_millis() + 1;
    assert!(after >= before, "{before} ms, then {after} ms");
    assert!(
        u128::from(after) <= most,
        "{before} ms, {between:?} parked, then {after} ms"
    );
}
