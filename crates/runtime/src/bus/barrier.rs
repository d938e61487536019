//! A barrier: several members go on together, once all have arrived.
//!
//! It is made of three topics below `barrier.NAME`. A member publishes `arrived`; who opens the
//! barrier publishes `called` first, upon which those who wait already say so again; and `opened`
//! at the end. So neither side needs to come first, and nothing is remembered between two barriers
//! of one name.

use std::{collections::BTreeSet, time::Duration};

use gyrus_contract::Origin;
use serde_json::{Value, json};
use tokio::time::timeout_at;

use super::{
    error::BusError,
    event_bus::EventBus,
    queue::{LiveItem, Overflow},
    replies::deadline,
};
use crate::{
    event::Event,
    topic::{Topic, TopicPattern},
};

/// Maximum number of members of a barrier.
pub const BARRIER_MEMBERS: usize = 1_024;

/// Number of arrivals that wait to be counted. When more come, all members are called again.
const ARRIVALS: usize = 256;

/// Maximum number of calls and openings in the queue of a waiting member.
const CALLS: usize = 16;

/// The name under which the barrier itself publishes.
const BARRIER: &str = "barrier";

/// The members of a barrier when it opened or its time was over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrivals {
    /// The members that arrived, sorted.
    pub arrived: Vec<String>,
    /// The members that did not arrive in time, sorted. The barrier opened if there are none.
    pub missing: Vec<String>,
}

struct BarrierTopics {
    called: Topic,
    arrived: Topic,
    opened: Topic,
}

impl BarrierTopics {
    fn new(name: &str) -> Result<Self, BusError> {
        let topic = |end| {
            let joined = format!("{BARRIER}.{name}.{end}").parse();
            joined.map_err(|error: crate::topic::TopicError| BusError::Invalid {
                what: "name of a barrier",
                reason: error.reason,
            })
        };
        Ok(Self {
            called: topic("called")?,
            arrived: topic("arrived")?,
            opened: topic("opened")?,
        })
    }
}

impl EventBus {
    /// Opens the barrier `name` once all members have arrived there with [`EventBus::arrive`]. If
    /// the time is over first, it stays closed, and the result says who is missing. A member that
    /// arrives twice counts once; others than the members do not count.
    ///
    /// # Errors
    /// Returns an error when the name is not part of a topic, or there are no or too many members.
    pub async fn barrier(
        &self,
        name: &str,
        members: &[&str],
        within: Duration,
    ) -> Result<Arrivals, BusError> {
        let topics = BarrierTopics::new(name)?;
        if members.is_empty() || members.len() > BARRIER_MEMBERS {
            let what = "members of a barrier";
            let reason = format!("there must be 1 to {BARRIER_MEMBERS}");
            return Err(BusError::Invalid { what, reason });
        }
        let mut missing: BTreeSet<&str> = members.iter().copied().collect();
        let mut arrived = Vec::new();
        let all = self.await_arrivals(&topics, &mut missing, &mut arrived);
        // The time being over is told by who is missing.
        if let Ok(result) = timeout_at(deadline(within), all).await {
            result?;
        }
        arrived.sort_unstable();
        Ok(Arrivals {
            arrived,
            missing: missing.into_iter().map(str::to_owned).collect(),
        })
    }

    async fn await_arrivals(
        &self,
        topics: &BarrierTopics,
        missing: &mut BTreeSet<&str>,
        arrived: &mut Vec<String>,
    ) -> Result<(), BusError> {
        let patterns = [TopicPattern::from(&topics.arrived)];
        let mut arrivals = self.subscribe(BARRIER, &patterns, ARRIVALS, Overflow::DropNewest)?;
        let publish = |topic: &Topic, payload: Value| {
            self.publish(Event::new(topic.clone(), BARRIER, Origin::Kernel, payload))
        };
        publish(&topics.called, Value::Null).await?;
        while !missing.is_empty() {
            match arrivals.recv().await.ok_or(BusError::Closed)? {
                LiveItem::Event(event) => {
                    if missing.remove(event.from.as_str()) {
                        arrived.push(event.from.clone());
                    }
                }
                LiveItem::Lagged(_) => {
                    publish(&topics.called, Value::Null).await?;
                }
            }
        }
        publish(&topics.opened, json!({ "members": arrived })).await?;
        Ok(())
    }

    /// Arrives at the barrier `name` as `member`, and waits until it opens. A member whose future
    /// was dropped, or whose process ended, may arrive again.
    ///
    /// # Errors
    /// Returns an error when the barrier has not opened in time.
    pub async fn arrive(&self, name: &str, member: &str, within: Duration) -> Result<(), BusError> {
        let topics = BarrierTopics::new(name)?;
        let deadline = deadline(within);
        let opened = timeout_at(deadline, self.await_opening(&topics, member)).await;
        opened.unwrap_or_else(|_| {
            let topic = topics.opened;
            Err(BusError::TimedOut { topic, within })
        })
    }

    async fn await_opening(&self, topics: &BarrierTopics, member: &str) -> Result<(), BusError> {
        let patterns = [
            TopicPattern::from(&topics.called),
            TopicPattern::from(&topics.opened),
        ];
        let mut calls = self.subscribe(member, &patterns, CALLS, Overflow::DropOldest)?;
        loop {
            let arrived = topics.arrived.clone();
            self.publish(Event::new(arrived, member, Origin::Run, Value::Null))
                .await?;
            loop {
                match calls.recv().await.ok_or(BusError::Closed)? {
                    LiveItem::Event(event) if event.topic == topics.opened => {
                        let members = event.payload["members"].as_array();
                        if members.is_some_and(|all| all.iter().any(|one| one == member)) {
                            return Ok(());
                        }
                    }
                    // Whoever called does not know of the member yet.
                    LiveItem::Event(_) | LiveItem::Lagged(_) => break,
                }
            }
        }
    }
}
