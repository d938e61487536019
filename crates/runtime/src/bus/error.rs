//! The errors of the event bus.

use std::time::Duration;

use gyrus_journal::Holder;

use super::position::EventPosition;
use crate::{event::EventError, topic::Topic};

/// The reason why an operation on the event bus failed.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The event is refused.
    #[error(transparent)]
    Event(#[from] EventError),
    /// A limit is reached.
    #[error("the event bus allows at most {limit} {what}")]
    TooMany {
        /// The things whose number is limited.
        what: &'static str,
        /// Maximum number.
        limit: usize,
    },
    /// A number or name is out of its bounds.
    #[error("invalid {what}: {reason}")]
    Invalid { what: &'static str, reason: String },
    #[error("nobody subscribes to `{topic}`, so the request cannot be answered")]
    NoResponder {
        /// The topic of the request.
        topic: Topic,
    },
    /// The time of a request is over.
    #[error("no answer on `{topic}` within {within:?}")]
    TimedOut {
        /// The topic of the request.
        topic: Topic,
        /// The time limit.
        within: Duration,
    },
    /// The bus was dropped.
    #[error("the event bus is closed")]
    Closed,
    /// The bus was created without a store.
    #[error("this event bus keeps no history; open it on a store to publish durable events")]
    NoHistory,
    /// Another process, or another bus of this process, has the history open.
    #[error(
        "the event bus is in use by process {} on {}; only one process may open it",
        holder.process.pid, holder.host
    )]
    InUse {
        /// The process that has the history open.
        holder: Box<Holder>,
    },
    #[error("no durable subscriber is named `{name}`; subscribe first")]
    UnknownSubscriber { name: String },
    #[error("the durable subscriber `{name}` is connected already")]
    Connected { name: String },
    #[error("there is no event at position {position}; the last one is at {last}")]
    NoSuchPosition {
        /// The requested position.
        position: EventPosition,
        /// The position of the last event on disk.
        last: EventPosition,
    },
    /// An entry of the bus's logs does not have the expected form.
    #[error("entry {seq} of {log} cannot be read: {source}")]
    BadEntry {
        log: String,
        /// The number of the entry.
        seq: u64,
        source: serde_json::Error,
    },
    /// A thread of the bus ended early.
    #[error("a task of the event bus was cancelled")]
    Cancelled,
    /// The store failed. The next event or acknowledgement reopens the log, as if the process had
    /// just started.
    #[error(transparent)]
    Journal(gyrus_journal::Error),
}

impl From<gyrus_journal::Error> for BusError {
    fn from(error: gyrus_journal::Error) -> Self {
        match error {
            gyrus_journal::Error::Held { holder, .. } => Self::InUse { holder },
            error => Self::Journal(error),
        }
    }
}
