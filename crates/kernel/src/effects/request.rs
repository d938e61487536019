//! A question to a model in all its parts, with the digest that identifies it.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use gyrus_contract::{
    DEFAULT_IMAGE_TOKENS, Digest, Image, MemoryBuffer, Message, Model, ModelError, Part, Prompt,
    Purpose, RouteQuery, ScreenSize, SystemPart, ToolSpec,
};
use serde_json::Value;

use crate::{
    Stop,
    prompt::{PromptFrame, with_lead},
};

/// Number of bytes counted as one token for a reservation: an estimate that rounds the size of a
/// prompt up.
const BYTES_A_TOKEN: u64 = 3;

/// A question to a model.
#[derive(Debug)]
pub struct ModelQuestion<'a> {
    /// The purpose of the question.
    pub purpose: Purpose,
    /// Instructions, cacheable parts first.
    pub system: Vec<SystemPart>,
    /// Messages at the beginning of memory: the goal.
    pub lead: Vec<Message>,
    /// The number of the memory's item before which the lead is placed; 0 puts it first.
    pub lead_at: u64,
    /// The conversation so far.
    pub memory: Option<&'a MemoryBuffer>,
    /// Messages after memory, for this question only.
    pub tail: Vec<Message>,
    /// The tools that the model may call.
    pub tools: ToolOffer,
    /// The JSON Schema that the reply's text must match.
    pub output_schema: Option<Value>,
    /// Maximum length of the reply in tokens, if the budget affords it.
    pub max_output_tokens: u64,
}

/// The tools that a model is offered.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolOffer {
    /// The model is offered no tools.
    Withheld,
    /// These tools: some of the run's, and those that the loop itself handles.
    Those(Vec<Arc<ToolSpec>>),
    /// Tools of which the reply must call one.
    OneOf(Vec<Arc<ToolSpec>>),
    /// None of the run's tools. The prompt's last picture shows its screen in this size: a provider
    /// may offer its models a built-in tool for it.
    OnScreen(ScreenSize),
}

pub(super) struct WholeQuestion<'a> {
    pub(super) frame: Vec<u8>,
    system: Vec<SystemPart>,
    lead: Vec<Message>,
    lead_at: u64,
    tools: Vec<Arc<ToolSpec>>,
    must_call: bool,
    output_schema: Option<Value>,
    screen: Option<ScreenSize>,
    pub(super) memory: Option<&'a MemoryBuffer>,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) tail: Vec<Message>,
    pub(super) digest: Digest,
    /// Total size of the text in bytes.
    bytes: u64,
    images: Vec<Image>,
}

impl<'a> WholeQuestion<'a> {
    pub(super) fn new(ask: &ModelQuestion<'a>, steered: &[Message]) -> Result<Self, Stop> {
        let tools = match &ask.tools {
            ToolOffer::Withheld | ToolOffer::OnScreen(_) => Vec::new(),
            ToolOffer::Those(specs) | ToolOffer::OneOf(specs) => specs.clone(),
        };
        let must_call = matches!(ask.tools, ToolOffer::OneOf(_));
        let screen = match &ask.tools {
            ToolOffer::OnScreen(shown) => Some(*shown),
            ToolOffer::Withheld | ToolOffer::Those(_) | ToolOffer::OneOf(_) => None,
        };
        let frame = serde_json::to_vec(&PromptFrame {
            system: Cow::Borrowed(&ask.system),
            lead: Cow::Borrowed(&ask.lead),
            lead_at: ask.lead_at,
            tools: Cow::Borrowed(&tools),
            must_call,
            output_schema: Cow::Borrowed(&ask.output_schema),
            screen,
        })
        .map_err(|error| Stop::Failed(error.to_string()))?;
        let (from, to) = ask.memory.map_or((0, 0), |memory| {
            (memory.prompt_start(), memory.next_number())
        });
        let mut tail = ask.tail.clone();
        tail.extend(steered.iter().cloned());

        let mut hasher = blake3::Hasher::new();
        hasher.update(&frame);
        let mut size = PromptSize {
            bytes: frame.len() as u64,
            images: Vec::new(),
        };
        for message in &ask.lead {
            size.add_images(message);
        }
        for item in ask.memory.into_iter().flat_map(|memory| memory.since(from)) {
            hasher.update(item.digest().as_bytes());
            size.add(&item.message);
        }
        for message in &tail {
            hasher.update(Digest::of_json(message).as_bytes());
            size.add(message);
        }
        Ok(Self {
            frame,
            system: ask.system.clone(),
            lead: ask.lead.clone(),
            lead_at: ask.lead_at,
            tools,
            must_call,
            output_schema: ask.output_schema.clone(),
            screen,
            memory: ask.memory,
            from,
            to,
            tail,
            digest: Digest::from_hash(hasher.finalize()),
            bytes: size.bytes,
            images: size.images,
        })
    }

    pub(super) fn tool_names(&self) -> impl Iterator<Item = String> {
        self.tools.iter().map(|tool| tool.name.clone())
    }

    /// Returns the estimated size of the prompt for `model` in tokens, rounded up.
    pub(super) fn input_tokens(&self, model: &dyn Model) -> u64 {
        let images = self.images.iter().map(|image| model.image_tokens(image));
        self.bytes / BYTES_A_TOKEN + 1 + images.sum::<u64>()
    }

    /// Returns the facts by which a router chooses.
    pub(super) fn wanted<'w>(
        &self,
        purpose: Purpose,
        failed: &'w [(String, ModelError)],
    ) -> RouteQuery<'w> {
        RouteQuery {
            purpose,
            input_tokens: self.bytes / BYTES_A_TOKEN
                + 1
                + DEFAULT_IMAGE_TOKENS * self.images.len() as u64,
            tools: !self.tools.is_empty(),
            images: !self.images.is_empty(),
            schema: self.output_schema.is_some(),
            failed,
        }
    }

    pub(super) fn prompt(&self, purpose: Purpose, ordinal: u64, max_output_tokens: u64) -> Prompt {
        let memory = self.memory.into_iter();
        let memory = memory.flat_map(|memory| memory.since(self.from));
        let memory = memory.map(|item| item.message.clone()).collect();
        let mut messages = with_lead(memory, self.from, &self.lead, self.lead_at);
        messages.extend(self.tail.iter().cloned().map(Arc::new));
        Prompt {
            purpose,
            ordinal,
            system: self.system.clone(),
            messages,
            tools: self.tools.clone(),
            must_call: self.must_call,
            output_schema: self.output_schema.clone(),
            screen: self.screen,
            effort: None,
            plainer: BTreeSet::new(),
            max_output_tokens,
        }
    }
}

struct PromptSize {
    bytes: u64,
    images: Vec<Image>,
}

impl PromptSize {
    fn add(&mut self, message: &Message) {
        self.bytes += message.parts.iter().map(part_bytes).sum::<u64>();
        self.add_images(message);
    }

    fn add_images(&mut self, message: &Message) {
        for part in &message.parts {
            match part {
                Part::Image(image) => self.images.push(image.clone()),
                Part::ToolResult(result) => self.images.extend(result.images.iter().cloned()),
                Part::Text(_) | Part::Thinking(_) | Part::ToolCall(_) => {}
            }
        }
    }
}

fn part_bytes(part: &Part) -> u64 {
    match part {
        Part::Text(text) => text.text.len() as u64,
        Part::Image(_) => 0,
        Part::Thinking(value) => value.to_string().len() as u64,
        Part::ToolCall(call) => call.arguments.to_string().len() as u64 + 40,
        Part::ToolResult(result) => result.text.text.len() as u64 + 40,
    }
}
