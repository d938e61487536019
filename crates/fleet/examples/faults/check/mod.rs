//! The checks. They read only the streams, the ledgers, and what was seen and told while all went on.

pub(crate) mod appends;
pub(crate) mod effects;
pub(crate) mod mistakes;
pub(crate) mod queue;
pub(crate) mod run;
pub(crate) mod streams;
pub(crate) mod takeovers;

use std::collections::BTreeMap;

use crate::{
    appends::Attempted,
    reader::{Message, Seen},
    runs::Submitted,
};

/// Everything that the checks read.
pub(crate) struct Evidence {
    /// The streams at the end.
    pub(crate) streams: BTreeMap<&'static str, Vec<Message>>,
    /// The messages that were seen before.
    pub(crate) seen: Seen,
    /// The answers that writers got.
    pub(crate) history: Vec<Attempted>,
    pub(crate) runs: Vec<Submitted>,
}

impl Evidence {
    /// Returns the messages of a stream.
    pub(crate) fn of(&self, stream: &str) -> &[Message] {
        self.streams.get(stream).map_or(&[], Vec::as_slice)
    }
}
