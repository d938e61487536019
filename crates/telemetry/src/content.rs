//! Texts of entries in the shapes of the conventions, for exports that include content.

use gyrus_contract::{Message, Part, Role};
use gyrus_journal::LogReader;
use gyrus_kernel::{Inline, Stop};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// Reads a value, wherever it is stored; `None` if it was removed.
pub(crate) fn stored<T>(value: &Inline<T>, reader: &LogReader) -> Option<T>
where
    T: Serialize + DeserializeOwned + Clone,
{
    value.read(|id| reader.blob(id).map_err(Stop::from)).ok()
}

/// Returns a message with one text.
pub(crate) fn said(role: &str, words: &str) -> String {
    let parts = json!([{ "type": "text", "content": words }]);
    json!([{ "role": role, "parts": parts }]).to_string()
}

/// Returns messages in the form of the conventions. Pictures and thinking blocks are left out.
pub(crate) fn messages<'a>(messages: impl Iterator<Item = &'a Message>) -> String {
    let messages = messages.map(|message| {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        json!({ "role": role, "parts": parts(&message.parts) })
    });
    Value::Array(messages.collect()).to_string()
}

/// Returns a reply as the conventions write it.
pub(crate) fn reply(said: &[Part], finish_reason: &str) -> String {
    let message = json!({
        "role": "assistant",
        "parts": parts(said),
        "finish_reason": finish_reason,
    });
    Value::Array(vec![message]).to_string()
}

fn parts(parts: &[Part]) -> Vec<Value> {
    let parts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(json!({ "type": "text", "content": text.text })),
        Part::ToolCall(call) => Some(json!({
            "type": "tool_call",
            "id": call.id,
            "name": call.tool,
            "arguments": call.arguments,
        })),
        Part::ToolResult(result) => Some(json!({
            "type": "tool_call_response",
            "id": result.call_id,
            "response": result.text.text,
        })),
        Part::Image(_) | Part::Thinking(_) => None,
    });
    parts.collect()
}

/// Returns the name of an enum's variant in the journal.
pub(crate) fn tag(value: &impl Serialize, key: &str) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    let word = value.as_str().or_else(|| value[key].as_str());
    word.unwrap_or("_OTHER").to_owned()
}
