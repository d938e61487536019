//! Ends of the runs that triggers woke. A trigger whose wakes are of no use is paused.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::task::AbortHandle;

use super::{
    error::TriggerError,
    record::{TriggerFact, TriggerName},
    shared::TriggersInner,
};
use crate::{BusError, DurableItem, Event, EventId, StartAt, TopicPattern};

/// The name under which triggers subscribe to the bus.
const SUBSCRIBER: &str = "triggers";

/// Time after which an end that could not be recorded is tried again.
const BETWEEN_TRIES: Duration = Duration::from_secs(10);

/// Maximum number of characters of a result.
const WORDS: usize = 200;

/// Follows the ends of runs in a task, until it is aborted or the triggers are dropped.
pub(super) async fn follow(shared: &Arc<TriggersInner>) -> Result<AbortHandle, BusError> {
    let topics = ["agent.*.reached", "agent.*.failed"];
    let patterns = topics.map(|topic| topic.parse::<TopicPattern>().expect("it is a pattern"));
    let bus = shared.agents.bus().clone();
    let mut ends = bus
        .subscribe_durable(SUBSCRIBER, &patterns, StartAt::Acknowledged)
        .await?;
    let weak = Arc::downgrade(shared);
    let task = tokio::spawn(async move {
        while let Ok(item) = ends.next().await {
            let Some(shared) = Weak::upgrade(&weak) else {
                return;
            };
            let position = match item {
                DurableItem::Event(position, event) => {
                    // The bus or the disk may be back later.
                    while shared.take_end(&event).await.is_err() {
                        tokio::time::sleep(BETWEEN_TRIES).await;
                    }
                    position
                }
                DurableItem::Lost { to, .. } => to,
            };
            if ends.acknowledge(position).await.is_err() {
                return;
            }
        }
    });
    Ok(task.abort_handle())
}

impl TriggersInner {
    async fn take_end(&self, end: &Event) -> Result<(), TriggerError> {
        let event = end
            .correlation
            .as_deref()
            .and_then(|id| id.parse::<EventId>().ok());
        let (Some(event), Some(agent)) = (event, end.topic.words().nth(1)) else {
            return Ok(());
        };
        // A firing is on the bus before it is recorded: the end of a quick run may come in between.
        let live: Vec<_> = self.live.lock().values().cloned().collect();
        for live in live.iter().filter(|live| live.name.agent == agent) {
            drop(live.firing.lock().await);
        }
        let awaiting: Option<(TriggerName, u32)> = {
            let book = self.book();
            let mut own = book.state().of_agent(agent);
            let found = own.find(|(_, record)| record.awaits(&event));
            found.map(|(name, record)| (name.clone(), record.useless))
        };
        let Some((name, useless)) = awaiting else {
            return Ok(());
        };
        let is = |field: &str| end.payload[field].as_bool() == Some(true);
        let useful = is("reached") && !is("nothing_to_do");
        let summary = end.payload["summary"].as_str().unwrap_or_default();
        let mut facts = vec![TriggerFact::Ended {
            name: name.clone(),
            event,
            useful,
            summary: summary.chars().take(WORDS).collect(),
        }];
        let live = self.live.lock().get(&name).cloned();
        if let Some(live) = live
            && !useful
            && useless + 1 >= live.config.pause_after
        {
            let why = match useless + 1 {
                1 => "the last wake was of no use".to_owned(),
                count => format!("{count} wakes in a row were of no use"),
            };
            self.tell(&live, "paused", &event.to_string(), &why).await?;
            facts.push(TriggerFact::Paused { name, why });
        }
        self.record(facts).await
    }
}
