//! Events: small facts that agents, triggers and surfaces tell each other.

use std::{fmt, io, str::FromStr};

use gyrus_contract::{Origin, time_ordered_uuid};
use gyrus_kernel::now_ms;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::topic::Topic;

/// Maximum size of an event's payload, in bytes of JSON.
pub const EVENT_PAYLOAD_BYTES: usize = 256 << 10;

/// Maximum depth of arrays and objects in an event's payload. What is deeper could be written but
/// not read again.
pub const EVENT_PAYLOAD_DEPTH: usize = 64;

/// Maximum length of a sender's name and of a correlation id, in bytes.
pub const EVENT_NAME_BYTES: usize = 200;

/// The reason why an event is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    #[error(
        "invalid event on `{topic}`: its payload has {bytes} bytes of JSON, and at most \
             {EVENT_PAYLOAD_BYTES} are allowed; put the data into a file and name that"
    )]
    PayloadTooLarge {
        topic: Topic,
        /// Size of the payload.
        bytes: usize,
    },
    #[error("invalid event on `{topic}`: its payload is nested deeper than {EVENT_PAYLOAD_DEPTH}")]
    PayloadTooDeep { topic: Topic },
    /// The sender or the correlation id is empty or too long.
    #[error("invalid event on `{topic}`: {field} must have 1 to {EVENT_NAME_BYTES} bytes")]
    BadName {
        topic: Topic,
        /// The name of the field.
        field: &'static str,
    },
    #[error("invalid event id `{given}`: it is not a UUID of version 7 or 8")]
    BadId {
        /// The invalid text, cut to 80 characters.
        given: String,
    },
}

/// Identifies an event: a UUID of version 7, or of version 8 if it is derived. A publisher that does not know whether an event was
/// stored publishes it again under the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(Uuid);

impl EventId {
    /// Creates the id that always belongs to this text, for an event that may be published again.
    pub fn derived(text: &str) -> Self {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// Creates an id from the present time and randomness.
    #[expect(clippy::new_without_default, reason = "no two ids are equal")]
    pub fn new() -> Self {
        Self(time_ordered_uuid())
    }
}

impl FromStr for EventId {
    type Err = EventError;
    fn from_str(text: &str) -> Result<Self, EventError> {
        let id = Uuid::parse_str(text).ok();
        let id = id.filter(|id| matches!(id.get_version_num(), 7 | 8));
        id.map(Self).ok_or_else(|| EventError::BadId {
            given: text.chars().take(80).collect(),
        })
    }
}

gyrus_contract::stored_as_text!(EventId);

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A message to all subscribers of its topic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub id: EventId,
    pub topic: Topic,
    /// The name of the publisher, as it calls itself: an agent, a trigger, a surface.
    pub from: String,
    /// The id that ties the events of one conversation together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation: Option<String>,
    /// The topic on which the publisher waits for a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Topic>,
    /// The time at which the event was created, in milliseconds since 1970, UTC.
    pub at_ms: i64,
    /// The source of the payload, which decides how far it is trusted.
    pub origin: Origin,
    pub payload: Value,
}

impl Event {
    /// Creates an event with a new id and the present time.
    pub fn new(topic: Topic, from: impl Into<String>, origin: Origin, payload: Value) -> Self {
        Self {
            id: EventId::new(),
            topic,
            from: from.into(),
            correlation: None,
            reply_to: None,
            at_ms: now_ms(),
            origin,
            payload,
        }
    }

    /// Creates a reply to this event, with its correlation id; `None` if nobody waits for one.
    pub fn reply(&self, from: impl Into<String>, origin: Origin, payload: Value) -> Option<Event> {
        let topic = self.reply_to.clone()?;
        let mut reply = Event::new(topic, from, origin, payload);
        reply.correlation.clone_from(&self.correlation);
        Some(reply)
    }

    /// Checks the sizes of the parts.
    ///
    /// # Errors
    /// Returns an error when the payload or a name is too large, or a name is empty.
    pub fn check(&self) -> Result<(), EventError> {
        let topic = || self.topic.clone();
        let bad = |field| EventError::BadName {
            topic: topic(),
            field,
        };
        let is_name = |name: &str| (1..=EVENT_NAME_BYTES).contains(&name.len());
        if !is_name(&self.from) {
            return Err(bad("the sender"));
        }
        if !self.correlation.as_deref().is_none_or(is_name) {
            return Err(bad("the correlation id"));
        }
        if !is_within(&self.payload, EVENT_PAYLOAD_DEPTH) {
            return Err(EventError::PayloadTooDeep { topic: topic() });
        }
        let mut size = ByteCounter(0);
        serde_json::to_writer(&mut size, &self.payload)
            .expect("JSON values have string keys, and counting does not fail");
        if size.0 > EVENT_PAYLOAD_BYTES {
            let (topic, bytes) = (topic(), size.0);
            return Err(EventError::PayloadTooLarge { topic, bytes });
        }
        Ok(())
    }
}

/// Whether arrays and objects are nested no deeper than `depth`.
fn is_within(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(values) => depth > 0 && values.iter().all(|one| is_within(one, depth - 1)),
        Value::Object(fields) => depth > 0 && fields.values().all(|one| is_within(one, depth - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

struct ByteCounter(usize);

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(payload: Value) -> Event {
        let topic = "build.finished".parse().unwrap();
        Event::new(topic, "ci", Origin::Kernel, payload)
    }

    #[test]
    fn sizes_are_bounded() {
        let largest = "x".repeat(EVENT_PAYLOAD_BYTES - 2);
        assert_eq!(event(json!(largest)).check(), Ok(()));
        let error = event(json!(largest + "x")).check().unwrap_err();
        assert!(error.to_string().starts_with(
            "invalid event on `build.finished`: its payload has 262145 bytes of JSON, and at most \
             262144 are allowed"
        ));
        let nest = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        let deepest = event(nest(EVENT_PAYLOAD_DEPTH));
        assert_eq!(deepest.check(), Ok(()));
        let text = serde_json::to_string(&deepest).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), deepest);
        let error = event(nest(EVENT_PAYLOAD_DEPTH + 1)).check().unwrap_err();
        assert!(error.to_string().ends_with("nested deeper than 64"));
        for from in ["", &"x".repeat(201)] {
            let from = from.to_owned();
            let error = Event {
                from,
                ..event(json!(1))
            }
            .check()
            .unwrap_err();
            assert!(error.to_string().contains("the sender must have 1 to 200"));
        }
        let correlation = Some(String::new());
        let error = Event {
            correlation,
            ..event(json!(1))
        }
        .check();
        assert!(error.unwrap_err().to_string().contains("correlation id"));
    }

    #[test]
    fn events_are_read_as_they_were_written() {
        let mut event = event(json!({"passed": true}));
        event.correlation = Some("7".to_owned());
        event.reply_to = Some("ci.answers".parse().unwrap());
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
        let reply = event.reply("me", Origin::Run, json!(0)).unwrap();
        assert_eq!(reply.topic.as_str(), "ci.answers");
        assert_eq!(reply.correlation, event.correlation);
        assert!("0198".parse::<EventId>().is_err());
        assert!(
            "67e55044-10b1-426f-9247-bb680e5fe0c8"
                .parse::<EventId>()
                .is_err()
        );
    }
}
