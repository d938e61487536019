//! The prompts that were really sent to a model, stored so that they can be rebuilt byte for byte:
//! the parts that many prompts share in one blob, the messages of memory in the entries that first
//! held them, and the rest in the entry of the request.

use std::{borrow::Cow, sync::Arc};

use gyrus_contract::{Message, Prompt, Shown, SystemPart, ToolSpec};
use gyrus_journal::Reader;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BadBlob, Entry, Stop, UnreadableEntry, log::parse, position::items_back};

/// The parts that many prompts share, which are stored once.
#[derive(Serialize, Deserialize)]
pub(crate) struct Frame<'a> {
    pub(crate) system: Cow<'a, [SystemPart]>,
    pub(crate) lead: Cow<'a, [Message]>,
    pub(crate) tools: Cow<'a, [Arc<ToolSpec>]>,
    pub(crate) output_schema: Cow<'a, Option<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) screen: Option<Shown>,
}

/// Returns the prompt that the `model.call` with the number `seq` sent, byte for byte.
///
/// # Errors
/// Returns an error when there is no such entry, or when content that it names was erased or
/// dropped.
pub fn prompt_of(reader: &Reader, seq: u64) -> Result<Prompt, Stop> {
    let unreadable = |kind: &str, reason: String| UnreadableEntry {
        kind: kind.to_owned(),
        reason,
    };
    let Some(entry) = reader.entry(seq)? else {
        return Err(unreadable("model.call", format!("there is no entry {seq}")).into());
    };
    let Entry::ModelCall(call) = parse(&entry)? else {
        let reason = format!("entry {seq} is not a request to a model");
        return Err(unreadable(&entry.kind, reason).into());
    };
    let frame: Frame<'_> =
        serde_json::from_slice(&reader.blob(&call.frame)?).map_err(|error| BadBlob {
            blob: call.frame,
            reason: error.to_string(),
        })?;
    let (first, items) = items_back(reader, call.from..call.to, |number, _| number == seq)?;
    if first > call.from {
        let reason = format!("message {} of its memory is in no entry", first - 1);
        return Err(unreadable("model.call", reason).into());
    }
    let messages = frame
        .lead
        .iter()
        .cloned()
        .map(Arc::new)
        .chain(items.into_iter().map(|item| item.message))
        .chain(call.tail.into_iter().map(Arc::new));
    Ok(Prompt {
        purpose: call.purpose,
        ordinal: call.ordinal,
        messages: messages.collect(),
        system: frame.system.into_owned(),
        tools: frame.tools.into_owned(),
        output_schema: frame.output_schema.into_owned(),
        screen: frame.screen,
        max_output_tokens: call.max_output_tokens,
    })
}
