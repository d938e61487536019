//! Positions in the history of a bus.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The position of a durable event: 1 for the first one of a bus, and one more for each that
/// follows, whatever is removed and however often the bus is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventPosition(pub u64);

impl fmt::Display for EventPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The first position for a durable subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    /// The oldest stored event.
    Oldest,
    /// The next published event.
    Next,
    /// This position, for subscribers that store their own cursor. All before it count as
    /// acknowledged.
    Position(EventPosition),
    /// The position after the last one that the subscriber acknowledged. A new subscriber starts at
    /// the oldest event that is kept.
    Acknowledged,
}
