//! The event bus as its users see it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod collaboration;
mod durable;
mod faults;
#[path = "../../examples/event_kills/kills.rs"]
mod kills;
mod live;

use gyrus_contract::Origin;
use gyrus_runtime::{Event, EventBus, LiveItem, Overflow, Subscription, TopicPattern};
use serde_json::{Value, json};

/// Creates an event.
fn event(topic: &str, payload: Value) -> Event {
    Event::new(topic.parse().unwrap(), "test", Origin::Kernel, payload)
}

fn patterns(texts: &[&str]) -> Vec<TopicPattern> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Subscribes with room for many events.
fn subscribe(bus: &EventBus, pattern: &str) -> Subscription {
    let patterns = patterns(&[pattern]);
    bus.subscribe("test", &patterns, 1_000, Overflow::DropNewest)
        .unwrap()
}

/// Returns the number that an event carries, or the number of dropped ones below zero.
fn number(received: LiveItem) -> i64 {
    match received {
        LiveItem::Event(event) => event.payload.as_i64().unwrap(),
        LiveItem::Lagged(dropped) => -i64::try_from(dropped).unwrap(),
    }
}

/// Returns everything that waits.
fn drain(subscription: &mut Subscription) -> Vec<i64> {
    std::iter::from_fn(|| subscription.try_recv().map(number)).collect()
}

fn numbered(topic: &str, number: i64) -> Event {
    event(topic, json!(number))
}

/// Publishes and receives until it is killed, in a process of its own. Not a test by itself.
#[test]
fn victim() {
    if let Some(orders) = kills::Orders::given() {
        kills::run_until_killed(&orders);
    }
}

#[test]
fn no_acknowledged_event_is_lost_however_often_the_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--exact", "victim", "--nocapture"];
    let report = kills::kill_repeatedly(folder.path(), 20, 1, &arguments).unwrap();
    // Most lives are long enough to publish something.
    assert!(report.published > 20, "{report}");
}
