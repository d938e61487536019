//! The ids of the newest events, so that one that is published twice is stored once.

use std::collections::{HashMap, VecDeque};

use crate::event::EventId;

/// Number of the newest events whose ids are known.
pub(super) const DUPLICATE_WINDOW: usize = 10_000;

/// The positions of the newest events by their ids.
#[derive(Debug, Default)]
pub(super) struct RecentIds {
    positions: HashMap<EventId, u64>,
    order: VecDeque<EventId>,
}

impl RecentIds {
    pub(super) fn get(&self, id: &EventId) -> Option<u64> {
        self.positions.get(id).copied()
    }

    pub(super) fn add(&mut self, id: EventId, position: u64) {
        self.positions.insert(id, position);
        self.order.push_back(id);
        if self.order.len() > DUPLICATE_WINDOW
            && let Some(oldest) = self.order.pop_front()
        {
            self.positions.remove(&oldest);
        }
    }
}
