//! The ids of the newest events, so that one that is published twice is stored once.

use std::collections::{HashMap, VecDeque};

use crate::event::EventId;

#[derive(Debug)]
pub(super) struct RecentIds {
    positions: HashMap<EventId, u64>,
    order: VecDeque<EventId>,
    window: u64,
}

impl RecentIds {
    /// Creates an empty window for this many events.
    pub(super) fn new(window: u64) -> Self {
        Self {
            positions: HashMap::new(),
            order: VecDeque::new(),
            window,
        }
    }

    pub(super) fn get(&self, id: &EventId) -> Option<u64> {
        self.positions.get(id).copied()
    }

    pub(super) fn add(&mut self, id: EventId, position: u64) {
        self.positions.insert(id, position);
        self.order.push_back(id);
        if self.order.len() as u64 > self.window
            && let Some(oldest) = self.order.pop_front()
        {
            self.positions.remove(&oldest);
        }
    }
}
