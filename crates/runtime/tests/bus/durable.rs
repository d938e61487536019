//! Durable events: order, acknowledgement, and what remains across restarts.

use std::{sync::Arc, time::Duration};

use gyrus_journal::Store;
use gyrus_runtime::{
    BusError, DurableItem, DurableSubscription, EventBus, EventPosition, HistoryLimits, StartAt,
};
use serde_json::json;
use tokio::task::JoinSet;

use super::{drain, numbered, patterns, subscribe};

struct Place {
    _folder: tempfile::TempDir,
    store: Store,
    limits: HistoryLimits,
}

impl Place {
    fn new(limits: HistoryLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        Self {
            _folder: folder,
            store,
            limits,
        }
    }

    fn open(&self) -> EventBus {
        EventBus::open(&self.store, self.limits).unwrap()
    }

    /// Returns the number of logs with events.
    fn logs(&self) -> usize {
        let names = self.store.names("events").unwrap();
        let is_history = |name: &&gyrus_journal::LogName| name.id().starts_with("history-");
        names.iter().filter(is_history).count()
    }
}

/// Limits under which a log holds few events and is removed as soon as it was acknowledged.
fn small(log_events: u64) -> HistoryLimits {
    HistoryLimits {
        log_events,
        keep_bytes: 0,
        duplicate_window: 0,
        ..HistoryLimits::default()
    }
}

async fn publish(bus: &EventBus, topic: &str, number: i64) -> u64 {
    let event = numbered(topic, number);
    bus.publish_durable(event).await.unwrap().0
}

/// Returns the position and number of the next event.
async fn next(subscription: &mut DurableSubscription) -> (u64, i64) {
    match subscription.next().await.unwrap() {
        DurableItem::Event(position, event) => (position.0, event.payload.as_i64().unwrap()),
        lost @ DurableItem::Lost { .. } => panic!("{lost:?}"),
    }
}

async fn connect(bus: &EventBus, name: &str, start: StartAt) -> DurableSubscription {
    let patterns = patterns(&["**"]);
    bus.subscribe_durable(name, &patterns, start).await.unwrap()
}

#[tokio::test]
async fn a_subscriber_goes_on_behind_what_it_acknowledged_whoever_restarts() {
    let place = Place::new(HistoryLimits::default());
    let bus = place.open();
    let mut live = subscribe(&bus, "a");
    for number in 1..=5 {
        assert_eq!(publish(&bus, "a", number).await, number.unsigned_abs());
    }
    assert_eq!(drain(&mut live), [1, 2, 3, 4, 5]);
    let mut worker = connect(&bus, "worker", StartAt::Acknowledged).await;
    for number in 1..=4_i64 {
        assert_eq!(next(&mut worker).await, (number.unsigned_abs(), number));
    }
    bus.acknowledge("worker", EventPosition(3)).await.unwrap();
    bus.acknowledge("worker", EventPosition(2)).await.unwrap();
    drop(worker);
    let mut again = connect(&bus, "worker", StartAt::Acknowledged).await;
    assert_eq!(next(&mut again).await, (4, 4));
    let status = &bus.durable_subscribers()[0];
    assert_eq!((&*status.name, status.acknowledged.0), ("worker", 3));
    assert!(status.is_connected);
    drop((again, bus));

    let bus = place.open();
    let mut worker = connect(&bus, "worker", StartAt::Acknowledged).await;
    assert_eq!(next(&mut worker).await, (4, 4));
    assert_eq!(next(&mut worker).await, (5, 5));
    // From here on live.
    let waiting = tokio::spawn(async move { (next(&mut worker).await, worker) });
    assert_eq!(publish(&bus, "a", 6).await, 6);
    let (received, mut worker) = waiting.await.unwrap();
    assert_eq!(received, (6, 6));
    let mut own = connect(&bus, "own", StartAt::Position(EventPosition(5))).await;
    assert_eq!(next(&mut own).await, (5, 5));
    let mut new = connect(&bus, "new", StartAt::Next).await;
    assert_eq!(publish(&bus, "a", 7).await, 7);
    assert_eq!(next(&mut new).await, (7, 7));
    drop(bus);
    assert!(matches!(worker.next().await, Err(BusError::Closed)));
}

#[tokio::test]
async fn an_event_published_twice_is_stored_once() {
    let place = Place::new(HistoryLimits {
        duplicate_window: 7,
        ..small(3)
    });
    let bus = place.open();
    let event = Arc::new(numbered("a", 1));
    let mut live = subscribe(&bus, "a");
    for _ in 0..2 {
        let position = bus.publish_durable(Arc::clone(&event)).await.unwrap();
        assert_eq!(position, EventPosition(1));
    }
    assert_eq!(drain(&mut live), [1]);
    // Also when it lies in an earlier log, which is kept for that, and the process has ended since.
    for number in 2..=7 {
        publish(&bus, "a", number).await;
    }
    assert_eq!(place.logs(), 3);
    drop(bus);
    let bus = place.open();
    let position = bus.publish_durable(Arc::clone(&event)).await.unwrap();
    assert_eq!(position, EventPosition(1));
    assert_eq!(publish(&bus, "a", 8).await, 8);
    // Now it is out of the window.
    let position = bus.publish_durable(event).await.unwrap();
    assert_eq!(position, EventPosition(9));
    for number in 10..=13 {
        publish(&bus, "a", number).await;
    }
    assert_eq!(place.logs(), 4, "the logs from 4, 7, 10 and 13");
    let error = EventBus::open(
        &place.store,
        HistoryLimits {
            duplicate_window: 2_000_000,
            ..HistoryLimits::default()
        },
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "invalid limits of a history: the window for duplicates is larger than 1000000"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_event_is_missed_or_doubled_where_the_log_ends_and_memory_begins() {
    const EVENTS: u64 = 2_000;
    let place = Place::new(HistoryLimits {
        log_events: 150,
        ..HistoryLimits::default()
    });
    let bus = place.open();
    let mut publishers = JoinSet::new();
    for publisher in 0..8 {
        let bus = bus.clone();
        publishers.spawn(async move {
            for number in 0..EVENTS.cast_signed() / 8 {
                publish(&bus, &format!("p.{publisher}"), number).await;
            }
        });
    }
    let mut subscribers = JoinSet::new();
    for subscriber in 0..6 {
        let bus = bus.clone();
        subscribers.spawn(async move {
            let name = format!("s-{subscriber}");
            let mut expected = [0; 8];
            let mut position = 0;
            let mut subscription = connect(&bus, &name, StartAt::Oldest).await;
            while position < EVENTS {
                let DurableItem::Event(at, event) = subscription.next().await.unwrap() else {
                    panic!("nothing is removed")
                };
                assert_eq!(at.0, position + 1);
                position = at.0;
                let publisher: usize = event.topic.as_str()[2..].parse().unwrap();
                assert_eq!(event.payload, json!(expected[publisher]));
                expected[publisher] += 1;
                // Some fall far behind, and come back from the log.
                if subscriber % 2 == 0 && position % 97 == 0 {
                    drop(subscription);
                    let start = StartAt::Position(EventPosition(position + 1));
                    subscription = connect(&bus, &name, start).await;
                }
            }
        });
    }
    for result in publishers.join_all().await {
        result
    }
    subscribers.join_all().await;
}

#[tokio::test]
async fn a_log_stays_until_every_subscriber_has_acknowledged_it() {
    let place = Place::new(small(4));
    let bus = place.open();
    let mut slow = connect(&bus, "slow", StartAt::Oldest).await;
    let only_b = patterns(&["b"]);
    // Nothing matches, so this one has nothing to acknowledge.
    let mut idle = bus
        .subscribe_durable("idle", &only_b, StartAt::Oldest)
        .await
        .unwrap();
    for number in 1..=13 {
        publish(&bus, "a", number).await;
    }
    assert_eq!(place.logs(), 4);
    for position in 1..=9 {
        assert_eq!(next(&mut slow).await.0, position);
    }
    bus.acknowledge("slow", EventPosition(9)).await.unwrap();
    let none = tokio::time::timeout(Duration::from_millis(1), idle.next()).await;
    assert!(none.is_err());
    // Removal happens when a log is begun.
    for number in 14..=17 {
        publish(&bus, "a", number).await;
    }
    assert_eq!(place.logs(), 3, "the logs from 9, 13 and 17");
    drop((slow, idle, bus));
    let bus = place.open();
    let mut slow = connect(&bus, "slow", StartAt::Acknowledged).await;
    assert_eq!(next(&mut slow).await, (10, 10));
    let refused = bus.unsubscribe_durable("slow").await;
    assert!(matches!(refused, Err(BusError::Connected { .. })));
    drop(slow);
    bus.unsubscribe_durable("slow").await.unwrap();
    assert_eq!(bus.durable_subscribers().len(), 1);
}

#[tokio::test]
async fn a_subscriber_away_for_too_long_is_told_what_it_lost() {
    let place = Place::new(HistoryLimits {
        unseen_for: Duration::ZERO,
        ..small(4)
    });
    let bus = place.open();
    drop(connect(&bus, "away", StartAt::Oldest).await);
    // It was last seen before this millisecond.
    let left = bus.durable_subscribers()[0].seen_ms;
    while numbered("a", 0).at_ms <= left {
        tokio::task::yield_now().await;
    }
    for number in 1..=9 {
        publish(&bus, "a", number).await;
    }
    // The newest events are in memory too, until the bus is opened again.
    drop(bus);
    let bus = place.open();
    let mut away = connect(&bus, "away", StartAt::Acknowledged).await;
    let lost = away.next().await.unwrap();
    assert_eq!(
        lost,
        DurableItem::Lost {
            from: EventPosition(1),
            to: EventPosition(8)
        }
    );
    assert_eq!(next(&mut away).await, (9, 9));
    // One that is connected keeps its events, unless the history grows over its largest size.
    drop((away, bus));
    let place = Place::new(HistoryLimits {
        most_bytes: 3_000,
        ..small(4)
    });
    let bus = place.open();
    let connected = connect(&bus, "connected", StartAt::Oldest).await;
    for number in 1..=40 {
        publish(&bus, "a", number).await;
    }
    drop((connected, bus));
    let bus = place.open();
    let mut connected = connect(&bus, "connected", StartAt::Acknowledged).await;
    let lost = connected.next().await.unwrap();
    assert!(matches!(lost, DurableItem::Lost { from: EventPosition(1), to } if to.0 > 20));
}

#[tokio::test]
async fn what_cannot_be_done_says_why() {
    let place = Place::new(HistoryLimits::default());
    let bus = place.open();
    let in_use = EventBus::open(&place.store, place.limits).unwrap_err();
    let pid = std::process::id();
    let message = in_use.to_string();
    assert!(
        message.starts_with(&format!("the event bus is in use by process {pid} on ")),
        "{message}"
    );
    publish(&bus, "a", 1).await;
    let refused = bus.acknowledge("nobody", EventPosition(1)).await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "no durable subscriber is named `nobody`; subscribe first"
    );
    let _worker = connect(&bus, "worker", StartAt::Oldest).await;
    let refused = bus.acknowledge("worker", EventPosition(2)).await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "there is no event at position 2; the last one is at 1"
    );
    let any = patterns(&["**"]);
    for (name, start, expected) in [
        ("worker", StartAt::Next, "`worker` is connected already"),
        ("", StartAt::Next, "it must have 1 to 200 bytes"),
        (
            "other",
            StartAt::Position(EventPosition(3)),
            "no event at position 3",
        ),
        (
            "other",
            StartAt::Position(EventPosition(0)),
            "no event at position 0",
        ),
    ] {
        let refused = bus.subscribe_durable(name, &any, start).await;
        let message = refused.unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    let private = bus.publish_durable(numbered("_reply.a", 1)).await;
    assert!(private.unwrap_err().to_string().contains("private"));
}
