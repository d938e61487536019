//! The subscriptions of a bus, and which of them match a topic.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use parking_lot::RwLock;

use super::{
    error::BusError,
    queue::{EventQueue, SubscriptionStatus},
};
use crate::topic::Topic;

/// Maximum number of subscriptions of a bus.
pub const BUS_SUBSCRIPTIONS: usize = 10_000;

/// Maximum number of topics with cached subscriptions. At this number, the cache is emptied.
pub const BUS_ROUTES: usize = 4_096;

/// Maximum number of cached subscriptions for all these topics together, of 8 bytes each.
const REMEMBERED: usize = 1_000_000;

/// The queues that match a topic, in order of subscription.
pub(super) type Route = Arc<[Arc<EventQueue>]>;

#[derive(Debug, Default)]
pub(super) struct Routes {
    table: RwLock<RouteTable>,
}

#[derive(Debug, Default)]
struct RouteTable {
    queues: BTreeMap<u64, Arc<EventQueue>>,
    /// Number of subscriptions and ends of subscriptions so far.
    changes: u64,
    /// The queues of recently used topics, until a change of the subscriptions concerns them.
    known: HashMap<Topic, Route>,
    /// Number of queues in `known`.
    remembered: usize,
}

impl RouteTable {
    fn remember(&mut self, topic: &Topic, route: &Route) {
        if self.known.len() >= BUS_ROUTES || self.remembered + route.len() > REMEMBERED {
            self.known.clear();
            self.remembered = 0;
        }
        if self
            .known
            .insert(topic.clone(), Arc::clone(route))
            .is_none()
        {
            self.remembered += route.len();
        }
    }

    /// Removes the cached queues of the topics that match a new or removed subscription.
    fn forget(&mut self, queue: &EventQueue) {
        self.changes += 1;
        self.known.retain(|topic, _| !matches(queue, topic));
        self.remembered = self.known.values().map(|route| route.len()).sum();
    }
}

impl Routes {
    pub(super) fn of(&self, topic: &Topic) -> Route {
        let table = self.table.read();
        if let Some(route) = table.known.get(topic) {
            return Arc::clone(route);
        }
        let matching = |queue: &&Arc<EventQueue>| matches(queue, topic);
        let route: Route = table.queues.values().filter(matching).cloned().collect();
        let changes = table.changes;
        drop(table);
        let mut table = self.table.write();
        if table.changes == changes {
            table.remember(topic, &route);
        }
        route
    }

    pub(super) fn add(&self, queue: Arc<EventQueue>) -> Result<u64, BusError> {
        let mut table = self.table.write();
        if table.queues.len() >= BUS_SUBSCRIPTIONS {
            let (what, limit) = ("subscriptions", BUS_SUBSCRIPTIONS);
            return Err(BusError::TooMany { what, limit });
        }
        table.forget(&queue);
        let number = table.changes;
        table.queues.insert(number, queue);
        Ok(number)
    }

    pub(super) fn remove(&self, number: u64) {
        let mut table = self.table.write();
        if let Some(queue) = table.queues.remove(&number) {
            table.forget(&queue);
        }
    }

    pub(super) fn status(&self) -> Vec<SubscriptionStatus> {
        let table = self.table.read();
        table.queues.values().map(|queue| queue.status()).collect()
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        for queue in self.table.write().queues.values() {
            queue.close();
        }
    }
}

fn matches(queue: &EventQueue, topic: &Topic) -> bool {
    queue.patterns.iter().any(|pattern| pattern.matches(topic))
}
