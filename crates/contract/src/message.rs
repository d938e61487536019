//! A conversation with a model: messages made of parts.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BlobId, Text};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Input of the model, observations included.
    User,
    /// Output of the model.
    Assistant,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    /// The parts, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// Creates a user turn with one text.
    pub fn user(text: Text) -> Self {
        Self {
            role: Role::User,
            parts: vec![Part::Text(text)],
        }
    }

    /// Returns the texts of the message, to be changed in place.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut Text> {
        self.parts.iter_mut().filter_map(|part| match part {
            Part::Text(text) => Some(text),
            Part::ToolResult(result) => Some(&mut result.text),
            Part::Image(_) | Part::Thinking(_) | Part::ToolCall(_) => None,
        })
    }

    /// Returns the text of the message, joined by newlines.
    pub fn text(&self) -> String {
        let texts: Vec<_> = self
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(text.text.as_str()),
                Part::ToolResult(result) => Some(result.text.text.as_str()),
                Part::Image(_) | Part::Thinking(_) | Part::ToolCall(_) => None,
            })
            .collect();
        texts.join("\n")
    }
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    Text(Text),
    Image(Image),
    /// A provider's thinking block, which is sent back to it byte for byte and never read.
    Thinking(#[serde(with = "block")] Value),
    /// A call of a tool, requested by the model.
    ToolCall(ToolCall),
    /// The result of a tool call.
    ToolResult(ToolResult),
}

/// Serializes a provider's block inside an object of its own, because the block's `type` would
/// clash with the tag of [`Part`].
mod block {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    #[derive(Serialize)]
    struct Lent<'a> {
        block: &'a Value,
    }

    #[derive(Deserialize)]
    struct OwnedBlock {
        block: Value,
    }

    pub(super) fn serialize<S: Serializer>(block: &Value, to: S) -> Result<S::Ok, S::Error> {
        Lent { block }.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
        OwnedBlock::deserialize(from).map(|owned| owned.block)
    }
}

/// A picture in the blob store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Image {
    /// Id of the blob with the picture's bytes.
    pub blob: BlobId,
    /// `image/png`, `image/webp` or `image/jpeg`.
    pub media_type: String,
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
}

/// A request of a model to call a tool. It has not been judged yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's own id for the call, which the result refers to.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments as JSON, not checked against the tool's schema yet.
    pub arguments: Value,
    /// The repairs of the arguments, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<String>,
}

impl ToolCall {
    /// Creates a call that no model made: by hand in a [`crate::Plan`], or by a loop's own rule.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self {
            id: String::new(),
            tool: tool.into(),
            arguments,
            repairs: Vec::new(),
        }
    }
}

/// The result of a tool call, as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the call to which the result belongs.
    pub call_id: String,
    /// The bounded text, which says if it was cut.
    #[serde(flatten)]
    pub text: Text,
    /// Pictures that the call returned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Whether the tool failed, was denied or was interrupted.
    pub is_error: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_providers_own_type_survives() {
        for block in [
            json!({"type": "thinking", "thinking": "hm", "signature": "s"}),
            json!("no object at all"),
        ] {
            let part = Part::Thinking(block);
            let text = serde_json::to_string(&part).unwrap();
            assert_eq!(serde_json::from_str::<Part>(&text).unwrap(), part, "{text}");
        }
    }
}
