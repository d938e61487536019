//! Properties that must hold for every result of a reader.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
};

use gyrus_contract::{ModelError, Origin, Part, Reply, StopReason};
use gyrus_models::Specimen;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// Maximum bytes of arguments of one tool call, as the readers have it.
const MAX_ARGUMENT_BYTES: usize = 8 * 1024 * 1024;

/// Maximum depth of arguments, as the readers have it.
const MAX_NESTING: usize = 100;

/// Reads `stream` in `pieces` and as a whole; returns whether it was a reply, or the violated
/// property.
pub(super) fn judge(specimen: &Specimen, stream: &[u8], pieces: &[usize]) -> Result<bool, String> {
    let mut rest = stream;
    let mut cut = pieces.iter().cycle();
    let mut pieces = std::iter::from_fn(|| {
        let (piece, left) = rest.split_at(rest.len().min(*cut.next()?));
        rest = left;
        (!piece.is_empty()).then_some(piece)
    });
    let panicked = || "the reader panicked".to_owned();
    let in_pieces = read(specimen, &mut pieces).ok_or_else(panicked)?;
    let whole = read(specimen, &mut std::iter::once(stream)).ok_or_else(panicked)?;
    match (in_pieces, whole) {
        (Ok(reply), Ok(other)) => {
            if without_ids(&reply) != without_ids(&other) {
                return Err(format!("the pieces matter: {reply:?} or {other:?}"));
            }
            check(specimen, stream, &reply)?;
            Ok(true)
        }
        (Err(error), Err(other)) if error == other => {
            check_error(&error)?;
            Ok(false)
        }
        (one, other) => Err(format!("the pieces matter: {one:?} or {other:?}")),
    }
}

/// Reads a stream; `None` if the reader panicked.
fn read(
    specimen: &Specimen,
    pieces: &mut dyn Iterator<Item = &[u8]>,
) -> Option<Result<Reply, ModelError>> {
    catch_unwind(AssertUnwindSafe(|| (specimen.read)(pieces))).ok()
}

/// Removes ids, which may be generated and differ then.
fn without_ids(reply: &Reply) -> Reply {
    let mut reply = reply.clone();
    for part in &mut reply.parts {
        if let Part::ToolCall(call) = part {
            call.id.clear();
        }
    }
    reply
}

fn check_error(error: &ModelError) -> Result<(), String> {
    let words = error.to_string();
    if words.chars().count() < 1_500 && !words.contains('\n') {
        Ok(())
    } else {
        Err(format!("an error of more than a line: {words:?}"))
    }
}

fn check(specimen: &Specimen, stream: &[u8], reply: &Reply) -> Result<(), String> {
    let text = String::from_utf8_lossy(stream);
    let is_closed = specimen.closing.iter().any(|mark| text.contains(mark));
    if !is_closed && !reply.parts.iter().any(is_content) {
        return Err(format!("a reply of nothing that nothing closed: {reply:?}"));
    }
    let mut ids = BTreeSet::new();
    let has_calls = reply.tool_calls().next().is_some();
    for part in &reply.parts {
        let is_well_formed = match part {
            Part::Text(text) => !text.text.is_empty() && text.origin == Origin::Model,
            Part::Thinking(block) => block.is_object(),
            Part::ToolCall(call) => {
                let arguments = call.arguments.to_string();
                let is_new = ids.insert(&call.id) && !call.id.trim().is_empty();
                let is_bounded = nesting(&call.arguments) <= MAX_NESTING;
                is_new
                    && is_bounded
                    && !call.tool.is_empty()
                    && arguments.len() <= 2 * MAX_ARGUMENT_BYTES
            }
            Part::Image(_) | Part::ToolResult(_) => false,
        };
        if !is_well_formed {
            return Err(format!("a part that is not well-formed: {part:?}"));
        }
    }
    let expected = if has_calls {
        StopReason::ToolCalls
    } else {
        StopReason::EndOfTurn
    };
    if reply.stop != expected && reply.stop != StopReason::MaxTokens {
        return Err(format!("it stopped for {:?}: {reply:?}", reply.stop));
    }
    if let Some(usage) = &reply.usage {
        let of_cache = usage.cached_tokens.checked_add(usage.cache_written_tokens);
        if of_cache.is_none_or(|tokens| tokens > usage.input_tokens) {
            return Err(format!(
                "more tokens in the cache than there are: {usage:?}"
            ));
        }
    }
    let mut size = 0;
    for part in &reply.parts {
        size += match part {
            Part::Thinking(block) => written(block)?,
            part => written(part)?,
        };
    }
    if size > 8 * stream.len() + 1024 {
        Err(format!("{} bytes became {size}", stream.len()))
    } else {
        Ok(())
    }
}

/// Whether a part says or does something.
fn is_content(part: &Part) -> bool {
    matches!(part, Part::Text(_) | Part::ToolCall(_))
}

/// Returns the number of brackets around the innermost value.
fn nesting(value: &Value) -> usize {
    let innermost = match value {
        Value::Array(values) => values.iter().map(nesting).max(),
        Value::Object(fields) => fields.values().map(nesting).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return 0,
    };
    1 + innermost.unwrap_or(0)
}

/// Returns the size of `value` in a journal; what it cannot give back would end the run.
fn written<T: Serialize + DeserializeOwned + PartialEq>(value: &T) -> Result<usize, String> {
    let json = serde_json::to_string(value).map_err(|error| error.to_string())?;
    match serde_json::from_str::<T>(&json) {
        Ok(read) if read == *value => Ok(json.len()),
        _ => Err(format!("it does not come back from a journal: {json}")),
    }
}
