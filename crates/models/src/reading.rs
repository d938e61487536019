//! Parts of readers that all protocols share: bounds, the parsing of events, counts of tokens, and
//! the ids of calls.

use gyrus_contract::{ModelError, Part, Reply, StopReason, ToolCall, Usage};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{
    arguments::{self, MAX_NESTING, nests_too_deep},
    errors::{bad, bounded_line},
    screen::Act,
};

pub(crate) const MAX_REPLY_BYTES: usize = 16 * 1024 * 1024;

pub(crate) const MAX_ARGUMENT_BYTES: usize = 8 * 1024 * 1024;

/// Maximum number of parts in one reply.
pub(crate) const MAX_PARTS: usize = 4096;

/// Maximum accepted count of tokens; a greater one is an error of the provider and counts as not
/// reported.
const MAX_TOKENS: u64 = 1_000_000_000;

/// Amount of content of a reply received so far.
#[derive(Debug, Default)]
pub(crate) struct ContentAmount {
    bytes: usize,
}

impl ContentAmount {
    /// Adds `bytes` to the count.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_REPLY_BYTES {
            Err(bad(format!(
                "the reply is longer than {MAX_REPLY_BYTES} bytes"
            )))
        } else {
            Ok(())
        }
    }
}

/// Appends to the text of a call's arguments.
pub(crate) fn grow_arguments(raw: &mut String, more: &str) -> Result<(), ModelError> {
    if raw.len() + more.len() > MAX_ARGUMENT_BYTES {
        return Err(bad(format!(
            "tool arguments exceed {MAX_ARGUMENT_BYTES} bytes"
        )));
    }
    raw.push_str(more);
    Ok(())
}

/// Parses the JSON of one event; `name` is its name in the stream. An event without a `type`, in a
/// protocol that has types, gets its name as type, or the kind of object that it is.
///
/// # Errors
/// [`ModelError::BadOutput`] if it is not a `T`, or nested deeper than readers of journals support.
pub(crate) fn parse_event<T: DeserializeOwned>(name: &str, data: &str) -> Result<T, ModelError> {
    if nests_too_deep(data) {
        return Err(bad(format!(
            "an event nests deeper than {MAX_NESTING} brackets"
        )));
    }
    let strict = serde_json::from_str(data);
    strict
        .or_else(|error| typed(name, data).ok_or(error))
        .map_err(|error| {
            let start = bounded_line(&gyrus_text::shorten(data, 100));
            let name = bounded_line(name);
            bad(format!(
                "an event `{name}` is not what was expected: {error}: {start}"
            ))
        })
}

fn typed<T: DeserializeOwned>(name: &str, data: &str) -> Option<T> {
    let mut fields = serde_json::from_str::<Map<String, Value>>(data).ok()?;
    if fields.contains_key("type") {
        return None;
    }
    let kind = fields.get("object").cloned();
    fields.insert("type".to_owned(), kind.unwrap_or_else(|| name.into()));
    serde_json::from_value(fields.into()).ok()
}

/// Reads an optional field leniently: it counts as missing.
pub(crate) fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    field: D,
) -> Result<Option<T>, D::Error> {
    let value = Value::deserialize(field)?;
    Ok(match serde_json::from_value(value.clone()) {
        Ok(read) => Some(read),
        // A number as text, or the other way round.
        Err(_) => {
            let other = match value {
                Value::String(text) => serde_json::from_str(&text).ok(),
                Value::Number(number) => Some(Value::String(number.to_string())),
                _ => None,
            };
            other.and_then(|other| serde_json::from_value(other).ok())
        }
    })
}

/// Whether the parts of a reply contain text or calls.
pub(crate) fn has_content(parts: &[Part]) -> bool {
    let is_content = |part: &Part| matches!(part, Part::Text(_) | Part::ToolCall(_));
    parts.iter().any(is_content)
}

/// Whether the text of a call's arguments is whole: an object that is closed.
pub(crate) fn is_whole(raw: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(raw).is_ok()
}

/// Returns a count of tokens from an object of counts, if it is plausible.
pub(crate) fn tokens(counts: &Value, name: &str) -> Option<u64> {
    let count = match counts.get(name)? {
        Value::String(text) => text.parse().ok()?,
        count => count.as_f64()?,
    };
    let is_plausible = count >= 0.0 && count <= MAX_TOKENS as f64 && count.fract() == 0.0;
    is_plausible.then_some(count as u64)
}

/// Returns the id under which a call joins `parts`: the provider's own, or a new one where it is
/// missing or taken.
pub(crate) fn unique_id(wanted: &str, parts: &[Part]) -> String {
    let is_taken = |part: &Part| matches!(part, Part::ToolCall(call) if call.id == wanted);
    if wanted.trim().is_empty() || parts.iter().any(is_taken) {
        format!("call_{}", uuid::Uuid::new_v4().simple())
    } else {
        wanted.to_owned()
    }
}

/// Returns a whole reply. Loops go by its calls, and some servers report the wrong stop reason:
/// only for [`StopReason::MaxTokens`] is the provider's own believed.
pub(crate) fn finished(
    mut parts: Vec<Part>,
    stop: StopReason,
    usage: Option<Usage>,
    model: String,
) -> Reply {
    let has_calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    let stop = match (stop, parts.last_mut()) {
        // A call that was cut off before its first argument is not a call without arguments.
        (StopReason::MaxTokens, Some(Part::ToolCall(call)))
            if arguments::is_empty(&call.arguments) =>
        {
            call.arguments = Value::String(String::new());
            StopReason::MaxTokens
        }
        (StopReason::MaxTokens, _) => StopReason::MaxTokens,
        _ if has_calls => StopReason::ToolCalls,
        _ => StopReason::EndOfTurn,
    };
    Reply {
        parts,
        stop,
        usage,
        model,
    }
}

/// Returns a call in the form in which a reply takes it.
pub(crate) fn call(id: &str, tool: String, arguments: Value, parts: &[Part]) -> Part {
    Part::ToolCall(ToolCall {
        id: unique_id(id, parts),
        tool,
        arguments,
        repairs: Vec::new(),
    })
}

/// Adds the calls into which a call of a provider's own tool is translated. The first one keeps its
/// id.
pub(crate) fn act(id: &str, acts: Vec<Act>, parts: &mut Vec<Part>) -> Result<(), ModelError> {
    if parts.len() + acts.len() > MAX_PARTS {
        return Err(bad(format!("the reply has more than {MAX_PARTS} parts")));
    }
    for Act { tool, arguments } in acts {
        parts.push(call(id, tool, arguments, parts));
    }
    Ok(())
}
