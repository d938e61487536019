//! A question to a model in all its parts, with the digest by which it is known again.

use std::{borrow::Cow, sync::Arc};

use gyrus_contract::{Digest, MemoryBuffer, Message, Part, Prompt, Purpose, SystemPart, ToolSpec};
use serde_json::Value;

use crate::{Ask, Stop, Tools, core::Core, prompt::Frame};

/// Rough size of a prompt for the reservation: bytes a token, rounded against us.
const BYTES_A_TOKEN: u64 = 3;

/// One question in all its parts.
pub(super) struct Request<'a> {
    pub(super) frame: Vec<u8>,
    system: Vec<SystemPart>,
    lead: Vec<Message>,
    tools: Vec<Arc<ToolSpec>>,
    output_schema: Option<Value>,
    pub(super) memory: Option<&'a MemoryBuffer>,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) tail: Vec<Message>,
    pub(super) digest: Digest,
    pub(super) input_tokens: u64,
}

impl<'a> Request<'a> {
    pub(super) fn new(core: &Core, ask: &Ask<'a>, steered: &[Message]) -> Result<Self, Stop> {
        let tools = match ask.tools {
            Tools::Withheld => Vec::new(),
            Tools::Offered => core.kernel.organs().specs.clone(),
        };
        let frame = serde_json::to_vec(&Frame {
            system: Cow::Borrowed(&ask.system),
            lead: Cow::Borrowed(&ask.lead),
            tools: Cow::Borrowed(&tools),
            output_schema: Cow::Borrowed(&ask.output_schema),
        })
        .map_err(|error| Stop::Failed(error.to_string()))?;
        let (from, to) = ask.memory.map_or((0, 0), |memory| {
            (memory.prompt_start(), memory.next_number())
        });
        let mut tail = ask.tail.clone();
        tail.extend(steered.iter().cloned());

        let mut hasher = blake3::Hasher::new();
        hasher.update(&frame);
        let mut bytes = frame.len() as u64;
        for item in ask.memory.into_iter().flat_map(|memory| memory.since(from)) {
            hasher.update(item.digest().as_bytes());
            bytes += item.message.parts.iter().map(part_bytes).sum::<u64>();
        }
        for message in &tail {
            hasher.update(Digest::of_json(message).as_bytes());
            bytes += message.parts.iter().map(part_bytes).sum::<u64>();
        }
        Ok(Self {
            frame,
            system: ask.system.clone(),
            lead: ask.lead.clone(),
            tools,
            output_schema: ask.output_schema.clone(),
            memory: ask.memory,
            from,
            to,
            tail,
            digest: Digest::from_hash(hasher.finalize()),
            input_tokens: bytes / BYTES_A_TOKEN + 1,
        })
    }

    pub(super) fn prompt(&self, purpose: Purpose, ordinal: u64, max_output_tokens: u64) -> Prompt {
        let mut messages: Vec<Arc<Message>> = self.lead.iter().cloned().map(Arc::new).collect();
        if let Some(memory) = self.memory {
            messages.extend(memory.since(self.from).map(|item| item.message.clone()));
        }
        messages.extend(self.tail.iter().cloned().map(Arc::new));
        Prompt {
            purpose,
            ordinal,
            system: self.system.clone(),
            messages,
            tools: self.tools.clone(),
            output_schema: self.output_schema.clone(),
            max_output_tokens,
        }
    }
}

/// An image counts as this many bytes of text.
const IMAGE_BYTES: u64 = 4_800;

fn part_bytes(part: &Part) -> u64 {
    match part {
        Part::Text(text) => text.text.len() as u64,
        Part::Image(_) => IMAGE_BYTES,
        Part::Thinking(value) => value.to_string().len() as u64,
        Part::ToolCall(call) => call.arguments.to_string().len() as u64 + 40,
        Part::ToolResult(result) => result.text.text.len() as u64 + 40,
    }
}
