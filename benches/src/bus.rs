//! Deliveries of the event bus beside those of a tokio broadcast channel, in turns: one publisher,
//! a hundred subscribers. The bus matches patterns; the channel sends everything to everybody.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gyrus_contract::Origin;
use gyrus_runtime::{Event, EventBus, LiveItem, Overflow, TopicPattern};
use serde_json::json;
use tokio::sync::{Semaphore, broadcast};

use crate::{Row, row};

const SUBSCRIBERS: u32 = 100;

/// Events published before all subscribers have received them. A queue holds twice as many, so
/// that none is dropped.
const BURST: u32 = 512;

/// Patterns that match the topic. The subscribers take turns.
const PATTERNS: [&str; 5] = [
    "**",
    "build.*.finished",
    "*.main.*",
    "build.**",
    "**.finished",
];

/// Duration of one turn, and number of turns of each.
const TURN: Duration = Duration::from_millis(250);
const TURNS: usize = 15;

/// Publishes bursts for one turn, and returns the number of deliveries a second. Each subscriber
/// adds a permit to `received` when it has a burst.
async fn deliveries<F: Future<Output = ()>>(
    received: &Semaphore,
    publish: impl Fn() -> F,
) -> anyhow::Result<f64> {
    let since = Instant::now();
    let mut bursts = 0;
    while since.elapsed() < TURN {
        for _ in 0..BURST {
            publish().await;
        }
        received.acquire_many(SUBSCRIBERS).await?.forget();
        bursts += 1;
    }
    let delivered = f64::from(bursts) * f64::from(BURST) * f64::from(SUBSCRIBERS);
    Ok(delivered / since.elapsed().as_secs_f64())
}

async fn of_bus(event: Event) -> anyhow::Result<f64> {
    let bus = EventBus::in_memory();
    let received = Arc::new(Semaphore::new(0));
    for pattern in PATTERNS.iter().cycle().take(SUBSCRIBERS as usize) {
        let pattern: TopicPattern = pattern.parse()?;
        let capacity = 2 * BURST as usize;
        let mut subscription =
            bus.subscribe("bench", &[pattern], capacity, Overflow::DropNewest)?;
        let received = Arc::clone(&received);
        tokio::spawn(async move {
            let mut count = 0;
            while let Some(LiveItem::Event(_)) = subscription.recv().await {
                count += 1;
                if count % BURST == 0 {
                    received.add_permits(1);
                }
            }
        });
    }
    deliveries(&received, || async {
        // A refused event would be missed below.
        let _ = bus.publish(event.clone()).await;
    })
    .await
}

async fn of_broadcast(event: Event) -> anyhow::Result<f64> {
    let (sender, _) = broadcast::channel(2 * BURST as usize);
    let received = Arc::new(Semaphore::new(0));
    for _ in 0..SUBSCRIBERS {
        let mut receiver: broadcast::Receiver<Arc<Event>> = sender.subscribe();
        let received = Arc::clone(&received);
        tokio::spawn(async move {
            let mut count = 0;
            while receiver.recv().await.is_ok() {
                count += 1;
                if count % BURST == 0 {
                    received.add_permits(1);
                }
            }
        });
    }
    deliveries(&received, || async {
        let _ = sender.send(Arc::new(event.clone()));
    })
    .await
}

pub(crate) fn bus() -> anyhow::Result<Vec<Row>> {
    let topic = "build.main.finished".parse()?;
    let payload = json!({ "passed": true });
    let event = Event::new(topic, "bench", Origin::Kernel, payload);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        // On a task, as publishers are.
        let ours = runtime.block_on(runtime.spawn(of_bus(event.clone())))??;
        let theirs = runtime.block_on(runtime.spawn(of_broadcast(event.clone())))??;
        turns.push((ours / theirs, ours, theirs));
    }
    turns.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (ratio, ours, theirs) = turns[TURNS / 2];
    Ok(vec![row(
        "100 subscribers of the event bus, by patterns, beside 100 of tokio's broadcast channel: \
         deliveries a second (the median turn)",
        format!(
            "{:.2}× ({:.1} million beside {:.1} million)",
            ratio,
            ours / 1e6,
            theirs / 1e6
        ),
        "≥ 0.5×",
    )])
}
