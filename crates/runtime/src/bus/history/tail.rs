//! The newest events of a history, in memory, and how far it is on disk.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::event::Event;

/// Maximum number of events in memory for subscribers that are nearly at the end.
const TAIL_EVENTS: usize = 1_024;

/// Maximum size of the payloads in memory, in bytes of JSON.
const TAIL_BYTES: usize = 8 << 20;

#[derive(Debug)]
pub(super) struct HistoryTail {
    ring: Mutex<Ring>,
    durable: watch::Sender<Durable>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::bus) struct Durable {
    /// The position of the last event on disk; 0 if there is none.
    pub(in crate::bus) last: u64,
    pub(in crate::bus) is_closed: bool,
}

#[derive(Debug)]
struct Ring {
    /// The events in order of position, each with its size. They may not be on disk yet.
    events: VecDeque<(Arc<Event>, usize)>,
    /// The position after the last event.
    next: u64,
    bytes: usize,
}

impl Ring {
    fn new(last: u64) -> Self {
        Self {
            events: VecDeque::new(),
            next: last + 1,
            bytes: 0,
        }
    }
}

impl HistoryTail {
    pub(super) fn new(last: u64) -> Self {
        let is_closed = false;
        Self {
            ring: Mutex::new(Ring::new(last)),
            durable: watch::Sender::new(Durable { last, is_closed }),
        }
    }

    /// Forgets the events in memory, of which some were not stored after all. Those up to `last`
    /// are on disk.
    pub(super) fn restart(&self, last: u64) {
        *self.ring.lock() = Ring::new(last);
        self.advance(last);
    }

    /// Adds the event at the next position, with the size of its JSON.
    pub(super) fn push(&self, event: &Arc<Event>, bytes: usize) {
        let mut ring = self.ring.lock();
        ring.events.push_back((Arc::clone(event), bytes));
        ring.next += 1;
        ring.bytes += bytes;
        while ring.events.len() > TAIL_EVENTS || ring.bytes > TAIL_BYTES {
            let Some((_, bytes)) = ring.events.pop_front() else {
                break;
            };
            ring.bytes -= bytes;
        }
    }

    /// Returns up to `most` events from `from` to `last`; `None` if the first is not in memory.
    pub(super) fn get(&self, from: u64, last: u64, most: usize) -> Option<Vec<(u64, Arc<Event>)>> {
        let ring = self.ring.lock();
        let first = ring.next - ring.events.len() as u64;
        let skipped = usize::try_from(from.checked_sub(first)?).ok()?;
        let events = ring.events.iter().skip(skipped).zip(from..=last);
        let events = events.take(most);
        Some(
            events
                .map(|((event, _), position)| (position, Arc::clone(event)))
                .collect(),
        )
    }

    /// Announces that everything up to a position is on disk.
    pub(super) fn advance(&self, last: u64) {
        self.durable.send_if_modified(|durable| {
            let is_news = durable.last < last;
            durable.last = durable.last.max(last);
            is_news
        });
    }

    /// Informs subscribers that no more events come.
    pub(super) fn close(&self) {
        self.durable.send_modify(|durable| durable.is_closed = true);
    }

    pub(super) fn durable(&self) -> watch::Receiver<Durable> {
        self.durable.subscribe()
    }

    pub(super) fn last(&self) -> u64 {
        self.durable.borrow().last
    }
}
