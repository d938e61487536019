//! The queue of a subscription: how many events wait, and what happens when it is full.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::Semaphore;

use super::error::BusError;
use crate::{event::Event, topic::TopicPattern};

/// Maximum number of events that wait in the queue of one subscription.
pub const QUEUE_CAPACITY: usize = 65_536;

/// Maximum number of patterns of one subscription.
pub const SUBSCRIPTION_PATTERNS: usize = 64;

/// Maximum length of a subscription's name, in bytes.
const NAME_BYTES: usize = 200;

/// The policy of a full queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// The oldest waiting event is dropped.
    DropOldest,
    /// The new event is dropped.
    DropNewest,
    /// The publisher waits until the queue has room or the subscription is dropped.
    Wait,
}

/// The next item of a subscription.
#[derive(Debug, Clone, PartialEq)]
pub enum LiveItem {
    Event(Arc<Event>),
    /// This number of events was dropped at this place in the order.
    Lagged(u64),
}

/// The state of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SubscriptionStatus {
    /// The name, which need not be unique.
    pub name: String,
    pub patterns: Vec<TopicPattern>,
    /// Number of events that wait.
    pub depth: usize,
    /// Maximum number of events that wait.
    pub capacity: usize,
    /// The policy of the full queue.
    pub overflow: Overflow,
    /// Number of events dropped so far.
    pub dropped: u64,
}

#[derive(Debug)]
pub(super) struct EventQueue {
    name: String,
    pub(super) patterns: Vec<TopicPattern>,
    capacity: usize,
    overflow: Overflow,
    state: Mutex<QueueState>,
    /// Free places, which publishers take with [`Overflow::Wait`]. Not used otherwise.
    room: Semaphore,
}

#[derive(Debug, Default)]
struct QueueState {
    /// The waiting events, each with the number of dropped ones right before it.
    waiting: VecDeque<(u64, Arc<Event>)>,
    /// Number of events dropped behind the last one that waits.
    dropped_last: u64,
    dropped: u64,
    is_closed: bool,
    receiver: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfferOutcome {
    Queued,
    /// The event was dropped, or the subscription is closed.
    Dropped,
    /// The queue is full, and the publisher is to wait.
    Full,
}

impl EventQueue {
    /// Creates an empty queue.
    ///
    /// # Errors
    /// Returns an error when an argument is out of its bounds.
    pub(super) fn new(
        name: &str,
        patterns: Vec<TopicPattern>,
        capacity: usize,
        overflow: Overflow,
    ) -> Result<Self, BusError> {
        let invalid = |what, reason| Err(BusError::Invalid { what, reason });
        if !(1..=NAME_BYTES).contains(&name.len()) {
            let reason = format!("it must have 1 to {NAME_BYTES} bytes");
            return invalid("name of a subscription", reason);
        }
        if !(1..=QUEUE_CAPACITY).contains(&capacity) {
            let reason = format!("{capacity} is not between 1 and {QUEUE_CAPACITY}");
            return invalid("capacity of a subscription", reason);
        }
        if patterns.len() > SUBSCRIPTION_PATTERNS {
            let (what, limit) = ("patterns for a subscription", SUBSCRIPTION_PATTERNS);
            return Err(BusError::TooMany { what, limit });
        }
        Ok(Self {
            name: name.to_owned(),
            patterns,
            capacity,
            overflow,
            state: Mutex::default(),
            room: Semaphore::new(match overflow {
                Overflow::Wait => capacity,
                Overflow::DropOldest | Overflow::DropNewest => 0,
            }),
        })
    }

    /// Adds an event to the queue if the overflow policy allows.
    pub(super) fn offer(&self, event: &Arc<Event>) -> OfferOutcome {
        if self.overflow == Overflow::Wait {
            return match self.room.try_acquire() {
                Ok(place) => {
                    place.forget();
                    self.push(event)
                }
                Err(tokio::sync::TryAcquireError::NoPermits) => OfferOutcome::Full,
                Err(tokio::sync::TryAcquireError::Closed) => OfferOutcome::Dropped,
            };
        }
        self.push(event)
    }

    /// Adds an event to a full queue once it has room. Waiting publishers are served in order.
    pub(super) async fn wait(&self, event: &Arc<Event>) -> OfferOutcome {
        match self.room.acquire().await {
            Ok(place) => {
                place.forget();
                self.push(event)
            }
            Err(_) => OfferOutcome::Dropped,
        }
    }

    fn push(&self, event: &Arc<Event>) -> OfferOutcome {
        let mut state = self.state.lock();
        if state.is_closed {
            return OfferOutcome::Dropped;
        }
        // With `Wait`, the publisher holds a place, so the queue is not full.
        if state.waiting.len() >= self.capacity {
            state.dropped += 1;
            match self.overflow {
                Overflow::DropOldest => state.drop_oldest(),
                Overflow::DropNewest | Overflow::Wait => {
                    state.dropped_last += 1;
                    return OfferOutcome::Dropped;
                }
            }
        }
        let dropped_before = std::mem::take(&mut state.dropped_last);
        state.waiting.push_back((dropped_before, Arc::clone(event)));
        // A receiver waits only while the queue is empty.
        let receiver = state.receiver.take();
        drop(state);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
        OfferOutcome::Queued
    }

    pub(super) fn poll_recv(&self, context: &mut Context<'_>) -> Poll<Option<LiveItem>> {
        let mut state = self.state.lock();
        if let Some(received) = state.pop() {
            drop(state);
            self.free_place(&received);
            return Poll::Ready(Some(received));
        }
        if state.is_closed {
            return Poll::Ready(None);
        }
        match &mut state.receiver {
            Some(receiver) => receiver.clone_from(context.waker()),
            None => state.receiver = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    pub(super) fn try_recv(&self) -> Option<LiveItem> {
        let received = self.state.lock().pop()?;
        self.free_place(&received);
        Some(received)
    }

    fn free_place(&self, received: &LiveItem) {
        if self.overflow == Overflow::Wait && matches!(received, LiveItem::Event(_)) {
            self.room.add_permits(1);
        }
    }

    /// Accepts no more events, and releases publishers that wait. What waits can still be received.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let receiver = state.receiver.take();
        drop(state);
        self.room.close();
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }

    pub(super) fn status(&self) -> SubscriptionStatus {
        let state = self.state.lock();
        SubscriptionStatus {
            name: self.name.clone(),
            patterns: self.patterns.clone(),
            depth: state.waiting.len(),
            capacity: self.capacity,
            overflow: self.overflow,
            dropped: state.dropped,
        }
    }
}

impl QueueState {
    fn drop_oldest(&mut self) {
        let Some((dropped_before, _)) = self.waiting.pop_front() else {
            return;
        };
        let next = self.waiting.front_mut().map(|(dropped, _)| dropped);
        *next.unwrap_or(&mut self.dropped_last) += dropped_before + 1;
    }

    fn pop(&mut self) -> Option<LiveItem> {
        let next = self.waiting.front_mut().map(|(dropped, _)| dropped);
        let dropped = std::mem::take(next.unwrap_or(&mut self.dropped_last));
        if dropped > 0 {
            return Some(LiveItem::Lagged(dropped));
        }
        let (_, event) = self.waiting.pop_front()?;
        Some(LiveItem::Event(event))
    }
}
