//! Publishing to live subscribers.

use std::{collections::VecDeque, sync::Arc};

use gyrus_runtime::{BUS_SUBSCRIPTIONS, BusError, EventBus, LiveItem, Overflow, TopicPattern};
use serde_json::json;
use tokio::task::JoinSet;

use super::{drain, event, numbered, patterns, subscribe};

#[tokio::test]
async fn events_reach_the_subscriptions_that_match_each_once() {
    let bus = EventBus::in_memory();
    let mut all = subscribe(&bus, "**");
    let mut builds = bus
        .subscribe(
            "builds",
            &patterns(&["build.*", "build.**"]),
            8,
            Overflow::DropOldest,
        )
        .unwrap();
    assert_eq!(bus.publish(numbered("build.done", 1)).await.unwrap(), 2);
    assert_eq!(bus.publish(numbered("deploy.done", 2)).await.unwrap(), 1);
    // Topics that were published to before are known to later subscriptions, and forgotten by
    // dropped ones.
    let mut late = subscribe(&bus, "deploy.*");
    assert_eq!(bus.publish(numbered("deploy.done", 3)).await.unwrap(), 2);
    assert_eq!(drain(&mut late), [3]);
    drop(late);
    assert_eq!(bus.publish(numbered("deploy.done", 4)).await.unwrap(), 1);
    assert_eq!(drain(&mut builds), [1]);
    assert_eq!(drain(&mut all), [1, 2, 3, 4]);
    drop(bus);
    assert_eq!(all.recv().await, None);
}

#[tokio::test]
async fn a_publisher_that_never_waits_lets_its_subscribers_run() {
    let bus = EventBus::in_memory();
    let subscription = bus.subscribe("test", &patterns(&["a"]), 200, Overflow::DropNewest);
    let mut subscription = subscription.unwrap();
    let receiving = tokio::spawn(async move {
        let mut received = 0;
        while let Some(one) = subscription.recv().await {
            assert!(matches!(one, LiveItem::Event(_)), "{one:?}");
            received += 1;
        }
        received
    });
    for number in 0..2_000 {
        bus.publish(numbered("a", number)).await.unwrap();
    }
    drop(bus);
    assert_eq!(receiving.await.unwrap(), 2_000);
}

/// The queue as its documentation describes it: the events, and before each the dropped ones.
#[derive(Default)]
struct Model {
    waiting: VecDeque<(i64, i64)>,
    dropped_last: i64,
    dropped: i64,
}

impl Model {
    fn publish(&mut self, number: i64, capacity: usize, overflow: Overflow) {
        if self.waiting.len() == capacity {
            self.dropped += 1;
            if overflow == Overflow::DropNewest {
                self.dropped_last += 1;
                return;
            }
            let (before, _) = self.waiting.pop_front().unwrap();
            match self.waiting.front_mut() {
                Some((next, _)) => *next += before + 1,
                None => self.dropped_last += before + 1,
            }
        }
        let before = std::mem::take(&mut self.dropped_last);
        self.waiting.push_back((before, number));
    }

    fn receive(&mut self) -> Option<i64> {
        let next = self.waiting.front_mut().map(|(before, _)| before);
        let dropped = std::mem::take(next.unwrap_or(&mut self.dropped_last));
        if dropped > 0 {
            return Some(-dropped);
        }
        self.waiting.pop_front().map(|(_, number)| number)
    }
}

#[tokio::test]
async fn full_queues_drop_what_their_policy_says_and_tell() {
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..200 {
        let overflow = [Overflow::DropOldest, Overflow::DropNewest][round % 2];
        let capacity = random.usize(1..5);
        let bus = EventBus::in_memory();
        let mut subscription = bus
            .subscribe("test", &patterns(&["a"]), capacity, overflow)
            .unwrap();
        let mut model = Model::default();
        for number in 1..100 {
            if random.bool() {
                model.publish(number, capacity, overflow);
                bus.publish(numbered("a", number)).await.unwrap();
            } else {
                let received = subscription.try_recv().map(super::number);
                assert_eq!(received, model.receive(), "{overflow:?} {capacity}");
            }
            let status = &bus.subscriptions()[0];
            assert_eq!(status.depth, model.waiting.len());
            assert_eq!(status.dropped, model.dropped.unsigned_abs());
        }
        let rest: Vec<i64> = std::iter::from_fn(|| model.receive()).collect();
        assert_eq!(drain(&mut subscription), rest);
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_publisher_keeps_only_its_own_event_back() {
    let bus = EventBus::in_memory();
    let mut slow = bus
        .subscribe("slow", &patterns(&["a"]), 1, Overflow::Wait)
        .unwrap();
    let mut stuck = bus
        .subscribe("stuck", &patterns(&["a"]), 1, Overflow::Wait)
        .unwrap();
    let mut fast = subscribe(&bus, "*");
    bus.publish(numbered("a", 1)).await.unwrap();
    let publisher = bus.clone();
    let waiting = tokio::spawn(async move { publisher.publish(numbered("a", 2)).await.unwrap() });
    tokio::task::yield_now().await;
    // Others have the event already, and other topics are not held up.
    bus.publish(numbered("b", 3)).await.unwrap();
    assert_eq!(drain(&mut fast), [1, 2, 3]);
    // Each of the two that it waits for gets the event as soon as it has room.
    assert_eq!(slow.recv().await.map(super::number), Some(1));
    assert_eq!(slow.recv().await.map(super::number), Some(2));
    assert!(!waiting.is_finished());
    assert_eq!(drain(&mut stuck), [1]);
    assert_eq!(waiting.await.unwrap(), 3);
    // A subscription that is dropped frees its publishers.
    let publisher = bus.clone();
    let waiting = tokio::spawn(async move { publisher.publish(numbered("a", 4)).await.unwrap() });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    drop(stuck);
    assert_eq!(waiting.await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_publishers_and_subscribers_lose_and_double_nothing_untold() {
    const PUBLISHERS: i64 = 4;
    const EVENTS: i64 = 2_000;
    let bus = EventBus::in_memory();
    let mut receivers = JoinSet::new();
    for overflow in [Overflow::Wait, Overflow::DropOldest, Overflow::DropNewest] {
        for capacity in [1, 7, 64] {
            let subscription = bus.subscribe("race", &patterns(&["p.*"]), capacity, overflow);
            let mut subscription = subscription.unwrap();
            receivers.spawn(async move {
                let mut last = [0; PUBLISHERS as usize];
                let (mut received, mut lagged) = (0, 0);
                while let Some(one) = subscription.recv().await {
                    match one {
                        LiveItem::Lagged(dropped) => lagged += i64::try_from(dropped).unwrap(),
                        LiveItem::Event(event) => {
                            let number = event.payload.as_i64().unwrap();
                            let publisher: usize = event.from.parse().unwrap();
                            assert!(number > last[publisher], "out of order");
                            last[publisher] = number;
                            received += 1;
                        }
                    }
                }
                assert_eq!(received + lagged, PUBLISHERS * EVENTS);
                assert!(overflow != Overflow::Wait || lagged == 0);
            });
        }
    }
    let mut publishers = JoinSet::new();
    for publisher in 0..PUBLISHERS {
        let bus = bus.clone();
        publishers.spawn(async move {
            for number in 1..=EVENTS {
                let mut event = numbered(&format!("p.{}", number % 3), number);
                event.from = publisher.to_string();
                bus.publish(event).await.unwrap();
                if number % 50 == 0 {
                    // Subscriptions come and go, full and with publishers waiting for them.
                    drop(bus.subscribe("brief", &patterns(&["**"]), 1, Overflow::Wait));
                }
            }
        });
    }
    while let Some(published) = publishers.join_next().await {
        published.unwrap();
    }
    drop(bus);
    while let Some(received) = receivers.join_next().await {
        received.unwrap();
    }
}

#[tokio::test]
async fn what_is_out_of_bounds_is_refused() {
    let bus = EventBus::in_memory();
    let one = patterns(&["a"]);
    let refused = |name: &str, patterns: &[TopicPattern], capacity: usize| {
        let refused = bus.subscribe(name, patterns, capacity, Overflow::Wait);
        refused.unwrap_err().to_string()
    };
    assert_eq!(
        refused("a", &[], 1),
        "invalid patterns: there must be at least one"
    );
    assert_eq!(
        refused("a", &patterns(&["_reply.*"]), 1),
        "invalid patterns: `_reply.*` names topics of replies, which are private"
    );
    assert_eq!(
        refused("a", &one, 0),
        "invalid capacity of a subscription: 0 is not between 1 and 65536"
    );
    assert_eq!(
        refused("a", &patterns(&["a"; 65]), 1),
        "the event bus allows at most 64 patterns for a subscription"
    );
    assert!(refused("", &one, 1).contains("1 to 200 bytes"));
    let all: Vec<_> = (0..BUS_SUBSCRIPTIONS)
        .map(|_| bus.subscribe("a", &one, 1, Overflow::DropNewest).unwrap())
        .collect();
    assert_eq!(
        refused("a", &one, 1),
        "the event bus allows at most 10000 subscriptions"
    );
    drop(all);
    assert!(bus.subscriptions().is_empty());
    // An event that is refused reaches nobody.
    let mut subscription = subscribe(&bus, "a");
    let large = event("a", json!("x".repeat(300_000)));
    let refused = bus.publish(Arc::new(large)).await;
    assert!(matches!(refused, Err(BusError::Event(_))));
    assert_eq!(drain(&mut subscription), [0; 0]);
    assert!(matches!(bus.last_position(), Err(BusError::NoHistory)));
}
