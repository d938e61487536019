//! The receiving end of a subscription.

use std::{
    future::poll_fn,
    sync::{Arc, Weak},
};

use tokio::task::coop::cooperative;

use super::{
    error::BusError,
    queue::{EventQueue, LiveItem, SubscriptionStatus},
    routes::Routes,
};

/// The receiving end of a subscription. Dropping it ends the subscription and frees publishers
/// that wait for room in it.
#[derive(Debug)]
pub struct Subscription {
    queue: Arc<EventQueue>,
    routes: Weak<Routes>,
    number: u64,
}

impl Subscription {
    pub(super) fn new(queue: Arc<EventQueue>, routes: &Arc<Routes>) -> Result<Self, BusError> {
        let number = routes.add(Arc::clone(&queue))?;
        Ok(Self {
            queue,
            routes: Arc::downgrade(routes),
            number,
        })
    }

    /// Waits for the next event or for the notice that some were dropped. Returns `None` once the
    /// bus is gone and the queue is empty. Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<LiveItem> {
        cooperative(poll_fn(|context| self.queue.poll_recv(context))).await
    }

    /// Returns the next item without waiting; `None` if nothing waits.
    pub fn try_recv(&mut self) -> Option<LiveItem> {
        self.queue.try_recv()
    }

    /// Returns the state of the subscription.
    pub fn status(&self) -> SubscriptionStatus {
        self.queue.status()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(routes) = self.routes.upgrade() {
            routes.remove(self.number);
        }
        self.queue.close();
    }
}
