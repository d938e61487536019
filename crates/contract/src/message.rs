//! A conversation with a model: messages made of parts.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BlobId, Text};

/// Whose turn a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// What the model is told, observations included.
    User,
    /// What the model said.
    Assistant,
}

/// One turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Message {
    /// Whose turn.
    pub role: Role,
    /// What it consists of, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// A user turn of one text.
    pub fn user(text: Text) -> Self {
        Self {
            role: Role::User,
            parts: vec![Part::Text(text)],
        }
    }

    /// All text of the message, joined by newlines.
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

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Words.
    Text(Text),
    /// A picture.
    Image(Image),
    /// A provider's thinking block, carried back to it byte for byte and never read.
    Thinking(#[serde(with = "block")] Value),
    /// The model asks for a tool.
    ToolCall(ToolCall),
    /// What the tool returned.
    ToolResult(ToolResult),
}

/// A provider's block has a `type` of its own, which must not meet ours.
mod block {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    #[derive(Serialize)]
    struct Lent<'a> {
        block: &'a Value,
    }

    #[derive(Deserialize)]
    struct Owned {
        block: Value,
    }

    pub(super) fn serialize<S: Serializer>(block: &Value, to: S) -> Result<S::Ok, S::Error> {
        Lent { block }.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
        Owned::deserialize(from).map(|owned| owned.block)
    }
}

/// A picture in the blob store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Image {
    /// Where the bytes are.
    pub blob: BlobId,
    /// `image/png`, `image/webp` or `image/jpeg`.
    pub media_type: String,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
}

/// A model's wish to use a tool. Nothing has been judged yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's own id for the call, by which the result finds its way back.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments, as JSON that has not been checked against the tool's schema.
    pub arguments: Value,
}

impl ToolCall {
    /// A call of `tool` that no model made: by hand in a [`crate::Plan`], or by a loop's own rule.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self {
            id: String::new(),
            tool: tool.into(),
            arguments,
        }
    }
}

/// What a tool returned, as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the call that this answers.
    pub call_id: String,
    /// The bounded text; it says what was cut.
    #[serde(flatten)]
    pub text: Text,
    /// Pictures that it returned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The tool failed, was refused or was interrupted.
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
