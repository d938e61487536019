//! The topics of the bus, with how often and when each came. Each event is counted once, as it is
//! read, and the counts are kept: looking again costs only what came in between.

use std::{collections::BTreeMap, sync::Arc};

use gyrus_runtime::{BusError, EventBus, EventPosition, TopicPattern};
use tokio::sync::Mutex;

/// Maximum number of events before the first look that are counted.
const COUNTED: u64 = 10_000;

/// Maximum number of topics in memory: those that came last.
const KEPT: usize = 2_000;

/// Number of events that are read at once.
const STRETCH: usize = 256;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TopicCount {
    pub(crate) events: u64,
    pub(crate) last: u64,
    /// The time of the last event, in UTC milliseconds.
    pub(crate) last_ms: i64,
}

/// Topics by name, with the position up to which their events were counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct TopicCounts {
    pub(crate) since: u64,
    pub(crate) topics: Arc<BTreeMap<String, TopicCount>>,
}

#[derive(Debug, Default)]
pub(crate) struct Topics(Mutex<Option<(EventPosition, TopicCounts)>>);

impl Topics {
    pub(crate) async fn of(&self, bus: &EventBus) -> Result<TopicCounts, BusError> {
        let last = bus.last_position()?;
        let mut known = self.0.lock().await;
        let (mut passed, mut counts) = known.take().unwrap_or_else(|| {
            let since = last.0.saturating_sub(COUNTED);
            let counts = TopicCounts {
                since,
                ..TopicCounts::default()
            };
            (EventPosition(since), counts)
        });
        let all: TopicPattern = "**".parse().expect("it is a pattern");
        while passed < last {
            let (events, to) = bus
                .read(passed, std::slice::from_ref(&all), STRETCH)
                .await?;
            let topics = Arc::make_mut(&mut counts.topics);
            for (position, event) in events {
                let count = topics.entry(event.topic.to_string()).or_default();
                count.events += 1;
                (count.last, count.last_ms) = (position.0, event.at_ms);
            }
            forget_oldest(topics);
            if to == passed {
                break;
            }
            passed = to;
        }
        *known = Some((passed, counts.clone()));
        Ok(counts)
    }
}

fn forget_oldest(topics: &mut BTreeMap<String, TopicCount>) {
    if topics.len() <= KEPT {
        return;
    }
    let mut lasts: Vec<u64> = topics.values().map(|count| count.last).collect();
    lasts.sort_unstable();
    let first_kept = lasts[lasts.len() - KEPT];
    topics.retain(|_, count| count.last >= first_kept);
}
