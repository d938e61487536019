//! The bus itself: publishing and subscribing.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Poll,
};

use tokio::{
    task::coop::consume_budget,
    time::{Instant, timeout_at},
};

use super::{
    error::BusError,
    history::EventHistory,
    queue::{EventQueue, OfferOutcome, Overflow, SubscriptionStatus},
    replies::{Conversation, Replies},
    routes::Routes,
    subscription::Subscription,
};
use crate::{
    event::Event,
    topic::{Topic, TopicPattern},
};

/// A bus on which events are published. Clones are the same bus.
#[derive(Debug, Clone)]
pub struct EventBus {
    pub(super) parts: Arc<BusParts>,
}

#[derive(Debug)]
pub(super) struct BusParts {
    pub(super) routes: Arc<Routes>,
    pub(super) replies: Arc<Replies>,
    /// The durable events, if the bus was opened on a store.
    history: Option<Arc<EventHistory>>,
}

/// Counts of a bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusStatus {
    /// Number of conversations that wait for replies.
    pub open_conversations: usize,
    /// Number of replies that came after the end of their conversation, or exceeded its maximum.
    pub late_replies: u64,
}

impl EventBus {
    /// Creates a bus that keeps its events in memory only.
    pub fn in_memory() -> Self {
        Self::with_history(None)
    }

    pub(super) fn with_history(history: Option<Arc<EventHistory>>) -> Self {
        let parts = BusParts {
            routes: Arc::default(),
            replies: Arc::default(),
            history,
        };
        Self {
            parts: Arc::new(parts),
        }
    }

    pub(super) fn history(&self) -> Result<&Arc<EventHistory>, BusError> {
        self.parts.history.as_ref().ok_or(BusError::NoHistory)
    }

    /// Subscribes to the events whose topics match one of the patterns. At most `capacity` events
    /// wait in memory until they are received.
    ///
    /// # Errors
    /// Returns an error when there is no pattern, a pattern names private topics, or a limit is
    /// reached.
    pub fn subscribe(
        &self,
        name: &str,
        patterns: &[TopicPattern],
        capacity: usize,
        overflow: Overflow,
    ) -> Result<Subscription, BusError> {
        check_patterns(patterns)?;
        let queue = EventQueue::new(name, patterns.to_vec(), capacity, overflow)?;
        Subscription::new(Arc::new(queue), &self.parts.routes)
    }

    /// Puts an event into the queues of all subscriptions that match its topic, and returns the
    /// number of queues that took it. Waits while a queue with [`Overflow::Wait`] is full; the
    /// others have the event by then. Dropping the future leaves the event in the queues that took
    /// it. Nothing is stored.
    ///
    /// # Errors
    /// Returns an error when the event is too large; then no subscription gets it.
    pub async fn publish(&self, event: impl Into<Arc<Event>>) -> Result<usize, BusError> {
        let event = event.into();
        event.check()?;
        // A publisher that never waits lets its subscribers run now and then.
        consume_budget().await;
        Ok(self.deliver(&event).await)
    }

    pub(super) async fn deliver(&self, event: &Arc<Event>) -> usize {
        if event.topic.is_private() {
            return usize::from(self.parts.replies.deliver(event));
        }
        let route = self.parts.routes.of(&event.topic);
        let mut delivered = 0;
        let mut full = Vec::new();
        for queue in route.iter() {
            match queue.offer(event) {
                OfferOutcome::Queued => delivered += 1,
                OfferOutcome::Dropped => {}
                OfferOutcome::Full => full.push(queue.wait(event)),
            }
        }
        if full.is_empty() {
            return delivered;
        }
        delivered + all(full.into_iter().map(|waiting| Box::pin(waiting) as _)).await
    }

    /// Returns the state of every subscription, oldest first.
    pub fn subscriptions(&self) -> Vec<SubscriptionStatus> {
        self.parts.routes.status()
    }

    /// Returns the counts of conversations and replies.
    pub fn status(&self) -> BusStatus {
        let (open_conversations, late_replies) = self.parts.replies.counts();
        BusStatus {
            open_conversations,
            late_replies,
        }
    }

    /// Opens a conversation and publishes its first event. Returns it with the number of
    /// subscriptions that got the event before the deadline.
    pub(super) async fn converse(
        &self,
        mut event: Event,
        replies: usize,
        deadline: Instant,
    ) -> Result<(Conversation, usize), BusError> {
        let conversation = Conversation::open(&self.parts.replies, replies)?;
        conversation.ask(&mut event);
        event.check()?;
        let reached = timeout_at(deadline, self.deliver(&Arc::new(event))).await;
        Ok((conversation, reached.unwrap_or(0)))
    }

    /// Fails if a conversation cannot get a reply because no subscription matches its topic.
    pub(super) fn check_responders(&self, topic: &Topic) -> Result<(), BusError> {
        if !topic.is_private() && self.parts.routes.of(topic).is_empty() {
            let topic = topic.clone();
            return Err(BusError::NoResponder { topic });
        }
        Ok(())
    }
}

impl Drop for BusParts {
    fn drop(&mut self) {
        if let Some(history) = &self.history {
            history.close();
        }
    }
}

pub(super) fn check_patterns(patterns: &[TopicPattern]) -> Result<(), BusError> {
    let invalid = |reason: String| {
        let what = "patterns";
        Err(BusError::Invalid { what, reason })
    };
    if patterns.is_empty() {
        return invalid("there must be at least one".to_owned());
    }
    match patterns.iter().find(|pattern| pattern.is_private()) {
        Some(private) => invalid(format!(
            "`{private}` names topics of replies, which are private"
        )),
        None => Ok(()),
    }
}

type PendingSends<'a> = Pin<Box<dyn Future<Output = OfferOutcome> + Send + 'a>>;

/// Waits for all sends at once, and returns how many queued the event.
async fn all<'a>(waiting: impl Iterator<Item = PendingSends<'a>>) -> usize {
    let mut waiting: Vec<PendingSends<'a>> = waiting.collect();
    let mut queued = 0;
    poll_fn(|context| {
        waiting.retain_mut(|one| match one.as_mut().poll(context) {
            Poll::Pending => true,
            Poll::Ready(offered) => {
                queued += usize::from(offered == OfferOutcome::Queued);
                false
            }
        });
        if waiting.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    queued
}
