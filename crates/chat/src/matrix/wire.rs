//! The parts of the client-server API's objects that are read
//! (spec.matrix.org/latest/client-server-api).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub(super) struct WhoAmI {
    pub(super) user_id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct SyncAnswer {
    pub(super) next_batch: String,
    #[serde(default)]
    pub(super) rooms: SyncedRooms,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SyncedRooms {
    pub(super) join: BTreeMap<String, JoinedRoom>,
    pub(super) invite: BTreeMap<String, InvitedRoom>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct JoinedRoom {
    pub(super) timeline: Timeline,
    pub(super) state: EventList,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Timeline {
    /// Events, read one by one: one that cannot be read must not hold up all others.
    pub(super) events: Vec<Value>,
    /// Whether events before these are missing.
    pub(super) limited: bool,
    pub(super) prev_batch: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventList {
    pub(super) events: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct InvitedRoom {
    pub(super) invite_state: EventList,
}

/// A page of older events, the newest first.
#[derive(Debug, Deserialize)]
pub(super) struct OlderEvents {
    #[serde(default)]
    pub(super) chunk: Vec<Value>,
    pub(super) end: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RoomEvent {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) event_id: String,
    pub(super) sender: String,
    /// Present in events that are state of the room.
    pub(super) state_key: Option<String>,
    #[serde(default)]
    pub(super) content: Value,
}

#[derive(Debug, Deserialize)]
pub(super) struct SentEvent {
    pub(super) event_id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct UploadedFile {
    pub(super) content_uri: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct JoinedMembers {
    pub(super) joined: BTreeMap<String, Value>,
}
