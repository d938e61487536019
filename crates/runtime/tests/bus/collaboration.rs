//! Requests, gatherings, contracts and barriers.

use std::{future::Future, time::Duration};

use gyrus_contract::Origin;
use gyrus_runtime::{
    Award, AwardAnswer, BusError, ContractOptions, ContractStep, EventBus, LiveItem, Subscription,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{event, numbered, subscribe};

const SECOND: Duration = Duration::from_secs(1);

async fn next(subscription: &mut Subscription) -> std::sync::Arc<gyrus_runtime::Event> {
    match subscription.recv().await {
        Some(LiveItem::Event(event)) => event,
        other => panic!("{other:?}"),
    }
}

/// Answers the next event on a topic as `from`.
fn responder(bus: &EventBus, topic: &str, from: &'static str, answer: Value) -> JoinHandle<()> {
    let (bus, mut asked) = (bus.clone(), subscribe(bus, topic));
    tokio::spawn(async move {
        let asked = next(&mut asked).await;
        let reply = asked.reply(from, Origin::Run, answer).unwrap();
        bus.publish(reply).await.unwrap();
    })
}

#[tokio::test(start_paused = true)]
async fn a_request_gets_the_first_reply_or_says_why_not() {
    let bus = EventBus::in_memory();
    let error = bus.request(numbered("ask", 1), SECOND).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "nobody subscribes to `ask`, so the request cannot be answered"
    );
    let answering = responder(&bus, "ask", "a", json!(2));
    let mut request = numbered("ask", 1);
    request.correlation = Some("mine".to_owned());
    let answer = bus.request(request, SECOND).await.unwrap();
    assert_eq!((&*answer.from, &answer.payload), ("a", &json!(2)));
    assert_eq!(answer.correlation.as_deref(), Some("mine"));
    answering.await.unwrap();

    // A reply after the time is dropped and counted, and nobody else sees it.
    let (mut everything, mut asked) = (subscribe(&bus, "**"), subscribe(&bus, "ask"));
    let error = bus.request(numbered("ask", 3), SECOND).await.unwrap_err();
    assert_eq!(error.to_string(), "no answer on `ask` within 1s");
    let late = next(&mut asked).await.reply("a", Origin::Run, json!(4));
    assert_eq!(bus.publish(late.unwrap()).await.unwrap(), 0);
    let status = bus.status();
    assert_eq!((status.open_conversations, status.late_replies), (0, 1));
    assert_eq!(next(&mut everything).await.payload, json!(3));
    assert_eq!(everything.try_recv(), None);
}

#[tokio::test(start_paused = true)]
async fn gathering_waits_for_enough_and_counts_the_missing() {
    let bus = EventBus::in_memory();
    let _answers = [
        responder(&bus, "ask", "a", json!(1)),
        responder(&bus, "ask", "a", json!(2)),
        responder(&bus, "ask", "b", json!(3)),
    ];
    let gathered = bus.gather(numbered("ask", 0), 2, 3, SECOND).await.unwrap();
    let answers: Vec<_> = gathered.answers.iter().map(|one| &one.payload).collect();
    assert_eq!((answers, gathered.missing), (vec![&json!(1), &json!(3)], 1));
    let _answers = responder(&bus, "ask", "a", json!(1));
    let gathered = bus.gather(numbered("ask", 0), 2, 2, SECOND).await.unwrap();
    assert_eq!((gathered.answers.len(), gathered.missing), (1, 1));
    for (wait_for, of) in [(0, 1), (2, 1), (1, 2_000)] {
        let refused = bus.gather(numbered("ask", 0), wait_for, of, SECOND).await;
        assert!(matches!(refused, Err(BusError::Invalid { .. })));
    }
}

/// Bids on the next call, and handles the award if it gets it.
fn bidder<F: Future<Output = ()> + Send>(
    bus: &EventBus,
    from: &'static str,
    price: i64,
    work: impl Fn(Award) -> F + Send + 'static,
) -> JoinHandle<bool> {
    let (bus, mut calls) = (bus.clone(), subscribe(bus, "work"));
    tokio::spawn(async move {
        let call = next(&mut calls).await;
        let origin = Origin::Run;
        let award = bus.bid(&call, from, origin, json!(price), 100 * SECOND);
        match award.await.unwrap() {
            Some(award) => {
                work(award).await;
                true
            }
            None => false,
        }
    })
}

async fn done(award: Award) {
    let answer = AwardAnswer::Done(json!("built"));
    assert!(award.answer(answer, Origin::Run).unwrap());
}

async fn decline(award: Award) {
    let answer = AwardAnswer::Declined("too busy".to_owned());
    award.answer(answer, Origin::Run).unwrap();
}

async fn hang(award: Award) {
    std::future::pending::<()>().await;
    drop(award);
}

fn cheapest(bid: &gyrus_runtime::Event) -> Option<f64> {
    bid.payload.as_f64().map(|price| -price)
}

fn options(awards: usize) -> ContractOptions {
    ContractOptions {
        bid_within: SECOND,
        result_within: 10 * SECOND,
        awards,
        ..ContractOptions::default()
    }
}

/// Writes the steps down shortly.
fn steps(steps: &[ContractStep]) -> Vec<String> {
    let step = |step: &ContractStep| match step {
        ContractStep::Called { reached } => format!("called {reached}"),
        ContractStep::Bid { by, score } => format!("{by} bids {score}"),
        ContractStep::Refused { by, reason } => format!("{by} refused: {reason}"),
        ContractStep::Awarded { to } => format!("awarded to {to}"),
        ContractStep::Declined { by, reason } => format!("{by} declined: {reason}"),
        ContractStep::Failed { by, reason } => format!("{by} failed: {reason}"),
        ContractStep::Silent { by } => format!("{by} silent"),
        ContractStep::Done { by } => format!("{by} done"),
        ContractStep::Rejected { by } => format!("{by} rejected"),
    };
    steps.iter().map(step).collect()
}

#[tokio::test(start_paused = true)]
async fn a_contract_goes_to_the_next_best_when_winners_decline_die_or_stay_silent() {
    let bus = EventBus::in_memory();
    let declining = bidder(&bus, "declining", 1, decline);
    let hanging = bidder(&bus, "hanging", 2, hang);
    // The award of a task that is aborted is dropped.
    let (aborted, abort) = tokio::sync::oneshot::channel();
    let aborted = parking_lot::Mutex::new(Some(aborted));
    let dying = bidder(&bus, "dying", 3, move |award| {
        let aborted = aborted.lock().take().unwrap();
        async move {
            aborted.send(()).unwrap();
            hang(award).await;
        }
    });
    let dying_too = dying.abort_handle();
    tokio::spawn(async move {
        abort.await.unwrap();
        dying_too.abort();
    });
    // Of two equal bids, that of the first by name is better.
    let second = bidder(&bus, "equal-b", 4, done);
    let first = bidder(&bus, "equal-a", 4, done);
    let nonsense = {
        let (bus, mut calls) = (bus.clone(), subscribe(&bus, "work"));
        tokio::spawn(async move {
            let call = next(&mut calls).await;
            let bid = bus.bid(&call, "unscored", Origin::Run, json!("?"), SECOND);
            bid.await.unwrap().is_some()
        })
    };
    // A second bid of one bidder is refused, and it is told at once.
    let again = bidder(&bus, "equal-a", 0, done);
    let call = event("work", json!("build it"));
    let outcome = bus.contract_net(call, options(5), cheapest).await.unwrap();
    assert_eq!(
        steps(&outcome.steps),
        [
            "called 7",
            "declining bids -1",
            "hanging bids -2",
            "dying bids -3",
            "equal-b bids -4",
            "equal-a bids -4",
            "unscored refused: it has no score",
            "equal-a refused: the bidder has a bid already",
            "awarded to declining",
            "declining declined: too busy",
            "awarded to hanging",
            "hanging silent",
            "awarded to dying",
            "dying failed: the bidder stopped without a result",
            "awarded to equal-a",
            "equal-a done",
            "equal-b rejected",
        ]
    );
    let result = outcome.result.unwrap();
    assert_eq!((&*result.by, result.value), ("equal-a", json!("built")));
    assert!(first.await.unwrap() && declining.await.unwrap());
    assert!(!second.await.unwrap() && !nonsense.await.unwrap() && !again.await.unwrap());
    hanging.abort();
    assert!(hanging.await.unwrap_err().is_cancelled());
    assert_eq!(bus.status().open_conversations, 0);
}

#[tokio::test(start_paused = true)]
async fn a_contract_ends_without_bidders_and_after_its_last_award() {
    let bus = EventBus::in_memory();
    let call = || event("work", Value::Null);
    let outcome = bus.contract_net(call(), options(1), cheapest).await;
    assert_eq!(steps(&outcome.unwrap().steps), ["called 0"]);
    // A bidder that dies before the award has closed its conversation: nothing waits for it.
    let gone = bidder(&bus, "gone", 1, done);
    let killer = {
        let (gone, mut calls) = (gone.abort_handle(), subscribe(&bus, "work"));
        tokio::spawn(async move {
            next(&mut calls).await;
            tokio::time::sleep(SECOND / 2).await;
            gone.abort();
        })
    };
    let left_over = bidder(&bus, "left-over", 2, done);
    let started = tokio::time::Instant::now();
    let outcome = bus
        .contract_net(call(), options(1), cheapest)
        .await
        .unwrap();
    assert_eq!(started.elapsed(), SECOND);
    assert_eq!(outcome.result, None);
    assert_eq!(
        steps(&outcome.steps)[3..],
        ["awarded to gone", "gone silent", "left-over rejected"]
    );
    assert!(!left_over.await.unwrap());
    killer.await.unwrap();
    let refused = bus.contract_net(call(), options(0), cheapest).await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "invalid number of awards: 0 is not between 1 and 16"
    );
}

fn arrive(bus: &EventBus, member: &'static str) -> JoinHandle<Result<(), BusError>> {
    let bus = bus.clone();
    tokio::spawn(async move { bus.arrive("start", member, 60 * SECOND).await })
}

#[tokio::test(start_paused = true)]
async fn a_barrier_opens_when_all_have_arrived_or_says_who_is_missing() {
    let bus = EventBus::in_memory();
    // One member comes before the barrier, twice, and dies; a stranger does not count.
    let early = arrive(&bus, "early");
    let stranger = arrive(&bus, "stranger");
    let dying = arrive(&bus, "dying");
    tokio::task::yield_now().await;
    dying.abort();
    assert!(dying.await.unwrap_err().is_cancelled());
    let members = ["early", "dying", "early"];
    let arrivals = bus.barrier("start", &members, SECOND).await.unwrap();
    assert_eq!(arrivals.arrived, ["early"]);
    assert_eq!(arrivals.missing, ["dying"]);
    assert!(!early.is_finished());
    // It comes back while the next barrier waits.
    let waiting = {
        let bus = bus.clone();
        tokio::spawn(async move { bus.barrier("start", &members, SECOND).await })
    };
    tokio::task::yield_now().await;
    let back = [arrive(&bus, "dying"), arrive(&bus, "dying")];
    let arrivals = waiting.await.unwrap().unwrap();
    assert_eq!(arrivals.arrived, ["dying", "early"]);
    assert!(arrivals.missing.is_empty());
    early.await.unwrap().unwrap();
    for arrival in back {
        arrival.await.unwrap().unwrap();
    }
    assert!(matches!(
        stranger.await.unwrap(),
        Err(BusError::TimedOut { .. })
    ));
    assert!(bus.subscriptions().is_empty());
    let refused = bus.barrier("a b", &["a"], SECOND).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("invalid name of a barrier: word 2")
    );
}
