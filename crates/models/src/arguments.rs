//! Parses the arguments of a tool call from the model's text.
//!
//! A model's text may not be JSON. That is an error of the model and not of the wire, so the reply
//! must not be lost: such arguments stay a string with the raw text, so that the loop can tell the
//! model.

use serde_json::{Map, Value};

/// Maximum nesting of JSON, in brackets. What comes in is written into journals and requests some
/// levels deeper and must be readable there, where readers stop at 128.
pub(crate) const MAX_NESTING: usize = 100;

/// Returns the arguments of a call. Empty text stands for the empty object.
pub(crate) fn parse(raw: String, begun_with: Value) -> Value {
    if raw.trim().is_empty() {
        return match begun_with {
            Value::Object(_) => begun_with,
            _ => Value::Object(Map::new()),
        };
    }
    if nests_too_deep(&raw) {
        return Value::String(raw);
    }
    serde_json::from_str(&raw).unwrap_or(Value::String(raw))
}

/// Whether a call has no arguments.
pub(crate) fn is_empty(arguments: &Value) -> bool {
    arguments.as_object().is_some_and(Map::is_empty)
}

/// Whether a text of JSON opens more than [`MAX_NESTING`] brackets at once.
pub(crate) fn nests_too_deep(json: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if std::mem::take(&mut escaped) => {}
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return true;
        }
    }
    false
}
