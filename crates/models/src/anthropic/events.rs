//! The events of the Messages stream, in their wire format.
//!
//! Usage and the beginnings of blocks stay plain JSON: wrong counts must not cost a reply, and a
//! thinking block goes back to the provider with all its fields.

use serde::Deserialize;
use serde_json::{Map, Value};

/// An event of the stream. An unknown type is `Other`: the protocol may grow.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum AnthropicEvent {
    MessageStart {
        message: MessageStart,
    },
    /// A complete message, from a server that does not stream.
    Message(Whole),
    ContentBlockStart {
        index: Option<u64>,
        content_block: Map<String, Value>,
    },
    ContentBlockDelta {
        index: Option<u64>,
        delta: BlockDelta,
    },
    ContentBlockStop {
        index: Option<u64>,
    },
    MessageDelta {
        delta: MessageDelta,
        usage: Option<Value>,
    },
    MessageStop,
    #[serde(other)]
    Other,
}

/// Content of `message_start`.
#[derive(Deserialize)]
pub(super) struct MessageStart {
    pub(super) model: Option<String>,
    pub(super) usage: Option<Value>,
}

/// A message with all its blocks.
#[derive(Deserialize)]
pub(super) struct Whole {
    #[serde(flatten)]
    pub(super) start: MessageStart,
    #[serde(flatten)]
    pub(super) end: MessageDelta,
    pub(super) content: Option<Vec<Map<String, Value>>>,
}

/// Content of the final `message_delta`.
#[derive(Deserialize)]
pub(super) struct MessageDelta {
    pub(super) stop_reason: Option<String>,
    pub(super) stop_details: Option<Value>,
}

/// An increment of a block. One of an unknown type, such as a citation, is `Other`.
#[derive(Deserialize)]
#[serde(tag = "type")]
pub(super) enum BlockDelta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(other)]
    Other,
}
