//! The prompts that were really sent to a model, stored so that they can be rebuilt byte for byte:
//! the parts that many prompts share in one blob, the messages of memory in the entries that first
//! held them, and the rest in the entry of the request.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use gyrus_contract::{Message, Prompt, ScreenSize, SystemPart, ToolSpec, is_default};
use gyrus_journal::LogReader;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BadBlob, Entry, Stop, UnreadableEntry, log::parse, position::items_back};

/// The parts that many prompts share, which are stored once.
#[derive(Serialize, Deserialize)]
pub(crate) struct PromptFrame<'a> {
    pub(crate) system: Cow<'a, [SystemPart]>,
    pub(crate) lead: Cow<'a, [Message]>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) lead_at: u64,
    pub(crate) tools: Cow<'a, [Arc<ToolSpec>]>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) must_call: bool,
    pub(crate) output_schema: Cow<'a, Option<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) screen: Option<ScreenSize>,
}

/// Returns messages of memory, numbered from `first`, with the lead before the message with the
/// number `lead_at`.
pub(crate) fn with_lead(
    mut memory: Vec<Arc<Message>>,
    first: u64,
    lead: &[Message],
    lead_at: u64,
) -> Vec<Arc<Message>> {
    let before = usize::try_from(lead_at.saturating_sub(first)).unwrap_or(usize::MAX);
    let at = before.min(memory.len());
    memory.splice(at..at, lead.iter().cloned().map(Arc::new));
    memory
}

/// Returns the prompt that the `model.call` with the number `seq` sent, byte for byte.
///
/// # Errors
/// Returns an error when there is no such entry, or when content that it names was erased or
/// dropped.
pub fn prompt_of(reader: &LogReader, seq: u64) -> Result<Prompt, Stop> {
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
    let frame: PromptFrame<'_> =
        serde_json::from_slice(&reader.blob(&call.frame)?).map_err(|error| BadBlob {
            blob: call.frame,
            reason: error.to_string(),
        })?;
    let (first, items) = items_back(reader, call.from..call.to, |number, _| number == seq)?;
    if first > call.from {
        let reason = format!("message {} of its memory is in no entry", first - 1);
        return Err(unreadable("model.call", reason).into());
    }
    let memory = items.into_iter().map(|item| item.message).collect();
    let mut messages = with_lead(memory, call.from, &frame.lead, frame.lead_at);
    messages.extend(call.tail.into_iter().map(Arc::new));
    let mut prompt = Prompt {
        purpose: call.purpose,
        ordinal: call.ordinal,
        messages,
        system: frame.system.into_owned(),
        tools: frame.tools.into_owned(),
        must_call: frame.must_call,
        output_schema: frame.output_schema.into_owned(),
        screen: frame.screen,
        effort: None,
        plainer: BTreeSet::new(),
        max_output_tokens: call.max_output_tokens,
    };
    call.plainer.apply(&mut prompt);
    Ok(prompt)
}
