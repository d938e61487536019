//! The logs that a history consists of.

use gyrus_journal::{LogEntry, LogName, Payload, Store};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::bus::error::BusError;

pub(super) const KIND: &str = "events";

/// Prefix of the ids of logs of events.
const PREFIX: &str = "history-";

/// Size of an entry beside its payload, in bytes, for the size limits of logs.
const ENTRY_OVERHEAD: u64 = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::bus) struct LogSpan {
    /// The position of the first event, which is also the name of the log.
    pub(super) first: u64,
    /// The position of the last event, or the one before `first` if there is none.
    pub(super) last: u64,
    /// Size in bytes, about.
    pub(super) bytes: u64,
    /// The time of the last event, in milliseconds since 1970.
    pub(super) at_ms: i64,
}

impl LogSpan {
    pub(super) fn empty(first: u64) -> Self {
        Self {
            first,
            last: first - 1,
            bytes: 0,
            at_ms: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.last < self.first
    }

    pub(super) fn add(&mut self, payload: usize, at_ms: i64) {
        self.last += 1;
        self.bytes += payload as u64 + ENTRY_OVERHEAD;
        self.at_ms = self.at_ms.max(at_ms);
    }
}

/// Returns the name of the log that begins with the event at this position.
pub(super) fn log_name(first: u64) -> LogName {
    LogName::new(KIND, &format!("{PREFIX}{first:020}")).expect("letters, digits and a dash")
}

pub(super) fn firsts(store: &Store) -> Result<Vec<u64>, BusError> {
    numbers(store, PREFIX)
}

/// Returns the numbers in the names of logs with this prefix, sorted.
pub(super) fn numbers(store: &Store, prefix: &str) -> Result<Vec<u64>, BusError> {
    let names = store.names(KIND)?;
    let number = |name: &LogName| name.id().strip_prefix(prefix)?.parse().ok();
    let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

pub(super) fn measure(store: &Store, first: u64) -> Result<LogSpan, BusError> {
    let mut span = LogSpan::empty(first);
    for entry in store.reader(&log_name(first))?.entries(1)? {
        let entry = entry?;
        let bytes = match &entry.payload {
            Payload::Json(json) => json.get().len(),
            Payload::Erased(_) => 0,
        };
        span.add(bytes, entry.at_ms);
    }
    Ok(span)
}

/// Reads the payload of an entry; `None` if it was erased.
pub(super) fn read_payload<T: DeserializeOwned>(
    log: &LogName,
    entry: &LogEntry,
) -> Result<Option<T>, BusError> {
    match &entry.payload {
        Payload::Json(json) => serde_json::from_str(json.get())
            .map(Some)
            .map_err(|source| BusError::BadEntry {
                log: log.to_string(),
                seq: entry.seq,
                source,
            }),
        Payload::Erased(_) => Ok(None),
    }
}
