//! An entry as a reader gets it.

use gyrus_contract::Digest;
use serde_json::value::RawValue;

/// An entry of a log, stored as one line.
#[derive(Debug, Clone)]
pub struct LogEntry {
    /// The number; the first entry of a log has number 1.
    pub seq: u64,
    /// The time of appending, in milliseconds since 1970, UTC.
    pub at_ms: i64,
    /// The time of appending, in microseconds since its writer took the log.
    pub mono_us: u64,
    /// The kind of event.
    pub kind: String,
    /// Version of the payload's format.
    pub version: u16,
    /// The data of the event.
    pub payload: Payload,
    /// The hash of this entry and, through the chain, of all before it.
    pub hash: Digest,
}

/// The payload of an entry.
#[derive(Debug, Clone)]
pub enum Payload {
    /// JSON, unchanged since it was appended.
    Json(Box<RawValue>),
    /// The hash of a payload that was erased.
    Erased(Digest),
}
