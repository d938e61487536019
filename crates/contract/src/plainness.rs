//! Requests that are made plainer because a model's server refused them.
//!
//! Servers differ in what they accept. Whatever the reason is, the same request is refused again, so
//! something has to be left out of it; the rest is still of use. [`Plainness`] says what is left out
//! for one model, and is applied to each prompt just before it is sent.

use std::{collections::BTreeSet, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Arguments, BlobId, FINISH, Image, Message, Origin, Part, Prompt, ReadCall, ShellCall,
    Simplification, Text, ToolSpec,
};

/// The text in place of an omitted picture.
const NO_PICTURE: &str = "[a picture is left out here, because this model's server refused it]";

/// The parts and properties that requests to one model omit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plainness {
    /// The properties that are left out of requests.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub steps: BTreeSet<Simplification>,
    /// Ids of the omitted pictures, while others are sent.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub pictures: BTreeSet<BlobId>,
}

impl Plainness {
    /// Whether nothing is omitted.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.pictures.is_empty()
    }

    /// Returns a description of what was left out after refusals; empty if nothing was.
    pub fn words(&self) -> String {
        let steps = self.steps.iter();
        let steps = steps.filter(|step| **step != Simplification::FewTools);
        let steps = steps.map(|step| step.words().to_owned());
        let pictures = match self.pictures.len() {
            0 => None,
            1 => Some("one picture left out".to_owned()),
            count => Some(format!("{count} pictures left out")),
        };
        steps.chain(pictures).collect::<Vec<_>>().join(", ")
    }

    /// Whether the tools of a prompt have plain schemas already.
    pub fn has_plain_schemas(prompt: &Prompt) -> bool {
        let mut tools = prompt.tools.iter();
        tools.all(|tool| {
            let told = tool.told_parameters();
            plain_schema(&told, 0) == told
        })
    }

    /// Leaves the parts and properties out of a prompt. What only the protocol knows is left out by
    /// the model's client, which finds the steps in the prompt.
    pub fn apply(&self, prompt: &mut Prompt) {
        if self.is_empty() {
            return;
        }
        let has = |step| self.steps.contains(&step);
        if has(Simplification::FewTools) {
            offer_few_tools(prompt);
        }
        let (no_pictures, no_thinking) = (
            has(Simplification::NoPictures),
            has(Simplification::NoThinking),
        );
        if no_pictures || no_thinking || !self.pictures.is_empty() {
            let keeps = |image: &Image| !no_pictures && !self.pictures.contains(&image.blob);
            for message in &mut prompt.messages {
                leave_out(Arc::make_mut(message), keeps, no_thinking);
            }
        }
        if no_pictures {
            prompt.screen = None;
        }
        if has(Simplification::PlainSchemas) {
            for tool in &mut prompt.tools {
                let tool = Arc::make_mut(tool);
                tool.parameters = plain_schema(&tool.parameters, 0);
            }
        }
        if has(Simplification::UnboundReply) {
            prompt.must_call = false;
            // Every prompt with a schema also describes the form in words.
            prompt.output_schema = None;
        }
        prompt.plainer = self.steps.clone();
    }
}

/// The tools of a model with a small window.
const FEW_TOOLS: [&str; 5] = [ShellCall::TOOL, ReadCall::TOOL, "edit", "write", FINISH];

/// Maximum tokens of a reply with one call: a small model may write without an end.
const ONE_CALL_TOKENS: u64 = 2_048;

/// Leaves the few tools in a prompt for work with tools.
fn offer_few_tools(prompt: &mut Prompt) {
    let is_offered = |name: &str| prompt.tools.iter().any(|tool| tool.name == name);
    if !is_offered(ShellCall::TOOL) || !is_offered(FINISH) {
        return;
    }
    let is_served = |tool: &ToolSpec| tool.is_served();
    prompt
        .tools
        .retain(|tool| FEW_TOOLS.contains(&&*tool.name) || is_served(tool));
    let place = |name: &str| FEW_TOOLS.iter().position(|few| *few == name);
    prompt
        .tools
        .sort_by_key(|tool| place(&tool.name).unwrap_or(FEW_TOOLS.len()));
    // Not bound: a server that forbids the end of a reply has the model go on after its answer.
    prompt.max_output_tokens = prompt.max_output_tokens.min(ONE_CALL_TOKENS);
    for part in &mut prompt.system {
        if let Some(brief) = part.brief.take() {
            part.text = brief;
        }
    }
}

fn leave_out(message: &mut Message, keeps: impl Fn(&Image) -> bool, no_thinking: bool) {
    for part in &mut message.parts {
        match part {
            Part::Image(image) if !keeps(image) => {
                *part = Part::Text(Text::new(NO_PICTURE, Origin::Kernel));
            }
            Part::ToolResult(result) => {
                let before = result.images.len();
                result.images.retain(&keeps);
                if result.images.len() < before {
                    result.text.text.push('\n');
                    result.text.text.push_str(NO_PICTURE);
                }
            }
            Part::Image(_) | Part::Text(_) | Part::Thinking(_) | Part::ToolCall(_) => {}
        }
    }
    if no_thinking {
        message
            .parts
            .retain(|part| !matches!(part, Part::Thinking(_)));
    }
}

/// Maximum depth of a plain schema.
const DEEPEST: usize = 8;

/// Returns a schema with the keywords that all providers accept: one type, a description,
/// properties, required ones, items, and a choice of texts. Anything else accepts any value.
fn plain_schema(schema: &Value, depth: usize) -> Value {
    let Some(schema) = schema.as_object().filter(|_| depth <= DEEPEST) else {
        return Value::Object(Map::new());
    };
    let choices = ["anyOf", "oneOf", "allOf"].iter();
    let choice = choices
        .filter_map(|keyword| schema.get(*keyword)?.as_array())
        .flatten()
        .find(|choice| choice["type"] != "null");
    let mut plain = match choice {
        Some(choice) => match plain_schema(choice, depth + 1) {
            Value::Object(plain) => plain,
            _ => Map::new(),
        },
        None => Map::new(),
    };
    let types = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().find(|one| *one != "null"),
        one => one,
    };
    if let Some(one) = types {
        plain.insert("type".to_owned(), one.clone());
    }
    if let Some(description) = schema.get("description").filter(|words| words.is_string()) {
        plain.insert("description".to_owned(), description.clone());
    }
    if let Some(Value::Array(values)) = schema.get("enum")
        && values.iter().all(Value::is_string)
    {
        plain.insert("enum".to_owned(), values.clone().into());
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        let properties = properties
            .iter()
            .map(|(name, inner)| (name.clone(), plain_schema(inner, depth + 1)));
        plain.insert("properties".to_owned(), properties.collect());
    }
    if let Some(Value::Array(required)) = schema.get("required")
        && !required.is_empty()
    {
        plain.insert("required".to_owned(), required.clone().into());
    }
    if let Some(items) = schema.get("items") {
        plain.insert("items".to_owned(), plain_schema(items, depth + 1));
    }
    if depth == 0 && !plain.contains_key("type") {
        plain.insert("type".to_owned(), "object".into());
    }
    Value::Object(plain)
}
