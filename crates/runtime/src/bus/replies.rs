//! Conversations: private topics on which the replies to one event arrive.

use std::{
    collections::HashMap,
    future::poll_fn,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use super::{
    error::BusError,
    queue::{EventQueue, LiveItem, OfferOutcome, Overflow},
};
use crate::{event::Event, topic::Topic};

/// Maximum number of conversations at once: requests, gatherings, bids and awards in progress.
pub const OPEN_CONVERSATIONS: usize = 10_000;

/// Maximum time for any wait for replies; longer ones are cut to this.
const LONGEST_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Returns the moment at which a wait that begins now ends.
pub(super) fn deadline(within: Duration) -> Instant {
    Instant::now() + within.min(LONGEST_WAIT)
}

#[derive(Debug, Default)]
pub(super) struct Replies {
    open: Mutex<HashMap<Topic, Arc<EventQueue>>>,
    /// Number of replies that came to no open conversation, or to a full one.
    late: AtomicU64,
}

impl Replies {
    /// Delivers an event on a private topic; returns whether a conversation waited for it.
    pub(super) fn deliver(&self, event: &Arc<Event>) -> bool {
        let queue = self.open.lock().get(&event.topic).cloned();
        let offered = queue.map_or(OfferOutcome::Dropped, |queue| queue.offer(event));
        let is_delivered = offered == OfferOutcome::Queued;
        if !is_delivered {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
        is_delivered
    }

    /// Returns the number of open conversations, and of replies that came too late.
    pub(super) fn counts(&self) -> (usize, u64) {
        (self.open.lock().len(), self.late.load(Ordering::Relaxed))
    }
}

/// A private topic for replies, which is closed when this is dropped.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) topic: Topic,
    queue: Arc<EventQueue>,
    replies: Weak<Replies>,
}

impl Conversation {
    /// Opens a conversation that stores up to `capacity` replies. A new reply beyond these is late.
    pub(super) fn open(replies: &Arc<Replies>, capacity: usize) -> Result<Self, BusError> {
        let topic = Topic::private(gyrus_contract::time_ordered_uuid());
        let queue = EventQueue::new("replies", Vec::new(), capacity, Overflow::DropNewest)?;
        let queue = Arc::new(queue);
        let mut open = replies.open.lock();
        if open.len() >= OPEN_CONVERSATIONS {
            let (what, limit) = ("open conversations", OPEN_CONVERSATIONS);
            return Err(BusError::TooMany { what, limit });
        }
        open.insert(topic.clone(), Arc::clone(&queue));
        drop(open);
        Ok(Self {
            topic,
            queue,
            replies: Arc::downgrade(replies),
        })
    }

    /// Marks an event as the beginning of this conversation. A correlation id that it has stays.
    pub(super) fn ask(&self, event: &mut Event) {
        event.reply_to = Some(self.topic.clone());
        event
            .correlation
            .get_or_insert_with(|| self.topic.as_str().to_owned());
    }

    /// Waits for the next reply; `None` once the deadline is over.
    pub(super) async fn next(&self, deadline: Instant) -> Option<Arc<Event>> {
        let next = async {
            loop {
                match poll_fn(|context| self.queue.poll_recv(context)).await {
                    Some(LiveItem::Event(event)) => return Some(event),
                    // Counted as late.
                    Some(LiveItem::Lagged(_)) => {}
                    None => return None,
                }
            }
        };
        timeout_at(deadline, next).await.ok().flatten()
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        if let Some(replies) = self.replies.upgrade() {
            replies.open.lock().remove(&self.topic);
        }
    }
}
