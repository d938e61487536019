//! An entry as one line of JSON, for programs.

use gyrus_contract::{Digest, RunId};
use gyrus_journal::{LogEntry, Payload};
use serde::Serialize;
use serde_json::value::RawValue;

/// The line `{"run":…,"seq":…,"at":…,"kind":…,"v":…,"payload":{…}}`; an erased
/// entry has `"erased":HASH` instead of a payload.
#[derive(Serialize)]
struct JsonLine<'a> {
    run: RunId,
    seq: u64,
    at: String,
    kind: &'a str,
    v: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    erased: Option<Digest>,
}

/// The entry as a value that becomes one line; its payload stands as it does in the journal.
pub fn line(run: RunId, entry: &LogEntry) -> impl Serialize {
    let (payload, erased) = match &entry.payload {
        Payload::Json(payload) => (Some(&**payload), None),
        Payload::Erased(hash) => (None, Some(*hash)),
    };
    JsonLine {
        run,
        seq: entry.seq,
        at: gyrus_text::utc(entry.at_ms),
        kind: &entry.kind,
        v: entry.version,
        payload,
        erased,
    }
}
