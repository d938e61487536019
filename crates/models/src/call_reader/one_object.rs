//! Replies that are one JSON object each: a call, or the answer.
//!
//! A small model writes calls well where nothing else can be written, and where it has seen one. So its
//! reply is bound to a schema with an alternative for each tool, and the tools are told by what such a
//! call looks like. That a small model says of itself that a goal is reached means little: it answers,
//! and `finish` is left to it for what cannot be done.

use std::sync::Arc;

use gyrus_contract::{FINISH, Part, Prompt, ToolSpec};
use serde_json::{Map, Value, json};

use crate::arguments;

const INSTRUCTIONS: &str = include_str!("one_object.md");

/// Examples of work with one tool.
const EXAMPLES: &str = include_str!("examples.md");
const EXAMPLE_TOOL: &str = "shell";

/// Key of the answer.
const ANSWER: &str = "answer";

/// Returns the instructions about the form of replies.
pub(super) fn instructions(tools: &[Arc<ToolSpec>]) -> String {
    let lines: Vec<_> = tools.iter().map(|tool| line(tool)).collect();
    let told = INSTRUCTIONS
        .trim_end()
        .replacen("{tools}", &lines.join("\n"), 1);
    if tools.iter().any(|tool| tool.name == EXAMPLE_TOOL) {
        format!("{told}\n\n{}", EXAMPLES.trim_end())
    } else {
        told
    }
}

/// Returns the line about a tool: a call of it, and what it does.
fn line(tool: &ToolSpec) -> String {
    let ToolSpec {
        name, description, ..
    } = tool;
    if name == FINISH {
        let call = r#"{"tool": "finish", "arguments": {"reached": false, "answer": "…"}}"#;
        return format!("{call}: ends the work where the goal cannot be reached, and says why.");
    }
    let parameters = tool.told_parameters();
    let required = required(&parameters);
    let property = |name: &str| &parameters["properties"][name];
    let shown: Vec<_> = (required.iter())
        .map(|name| format!("{}: {}", json!(name), placeholder(property(name))))
        .collect();
    let mut told = description.clone();
    if may_have_more(tool, &required) {
        let all = parameters["properties"].as_object().into_iter().flatten();
        let optional = all.map(|(name, _)| name.as_str());
        let optional: Vec<_> = optional.filter(|it| !required.contains(it)).collect();
        if !optional.is_empty() {
            told = format!("{told} Also takes: {}.", optional.join(", "));
        }
    }
    let call = format!(
        "{{\"tool\": \"{name}\", \"arguments\": {{{}}}}}",
        shown.join(", ")
    );
    format!("{call}: {told}")
}

/// Whether optional arguments can be written, too. A small model fills in each that it may, so
/// those of gyrus's own tools are left to their defaults.
fn may_have_more(tool: &ToolSpec, required: &[&str]) -> bool {
    tool.is_served() || required.is_empty()
}

fn required(parameters: &Value) -> Vec<&str> {
    let names = parameters["required"].as_array().into_iter().flatten();
    names.filter_map(Value::as_str).collect()
}

fn placeholder(schema: &Value) -> String {
    match schema["type"].as_str() {
        Some("string") | None => match schema["enum"].as_array().and_then(|all| all.first()) {
            Some(choice) => choice.to_string(),
            None => "\"…\"".to_owned(),
        },
        Some("integer" | "number") => "1".to_owned(),
        Some("boolean") => "true".to_owned(),
        Some(_) => schema.to_string(),
    }
}

/// Returns the schema of the reply to a prompt: a call of a tool or, where every reply is an object
/// (`has_answers`) and need not be a call, the answer. The first reply must be a call, since a small
/// model says otherwise at once that all is done; after the same call twice it is one of another tool.
pub(super) fn schema(prompt: &Prompt, has_answers: bool) -> Value {
    if !has_answers {
        let calls = prompt.tools.iter().map(|tool| call_schema(tool));
        return json!({ "anyOf": calls.collect::<Vec<_>>() });
    }
    let must_call = prompt.must_call || is_first(prompt);
    let worn_out = repeated(prompt);
    let calls = (prompt.tools.iter())
        .filter(|tool| worn_out != Some(tool.name.as_str()))
        .filter(|tool| tool.name != FINISH || !must_call)
        .map(|tool| match &*tool.name {
            FINISH => of_call(FINISH, in_vain()),
            _ => call_schema(tool),
        });
    let answer = json!({
        "type": "object",
        "properties": {ANSWER: {"type": "string"}},
        "required": [ANSWER],
        "additionalProperties": false,
    });
    let mut forms: Vec<_> = calls.collect();
    if !must_call || forms.is_empty() {
        forms.push(answer);
    }
    json!({ "anyOf": forms })
}

fn call_schema(tool: &ToolSpec) -> Value {
    let mut arguments = tool.told_parameters();
    let required: Vec<String> = required(&arguments)
        .into_iter()
        .map(str::to_owned)
        .collect();
    let names: Vec<&str> = required.iter().map(String::as_str).collect();
    if !may_have_more(tool, &names)
        && let Some(properties) = arguments["properties"].as_object_mut()
    {
        properties.retain(|name, _| required.contains(name));
    }
    if let Some(fields) = arguments.as_object_mut() {
        fields.insert("additionalProperties".to_owned(), Value::Bool(false));
        let kind = fields.entry("type");
        kind.or_insert_with(|| json!("object"));
        let properties = fields.entry("properties");
        properties.or_insert_with(|| Value::Object(Map::new()));
    }
    of_call(&tool.name, arguments)
}

fn of_call(tool: &str, arguments: Value) -> Value {
    json!({
        "type": "object",
        "properties": {"tool": {"const": tool}, "arguments": arguments},
        "required": ["tool", "arguments"],
        "additionalProperties": false,
    })
}

/// Returns the schema of the arguments with which `finish` reports that a goal cannot be reached.
fn in_vain() -> Value {
    json!({
        "type": "object",
        "properties": {"reached": {"const": false}, "answer": {"type": "string"}},
        "required": ["reached", "answer"],
        "additionalProperties": false,
    })
}

/// Whether no call has been executed so far.
fn is_first(prompt: &Prompt) -> bool {
    let mut parts = prompt.messages.iter().flat_map(|message| &message.parts);
    !parts.any(|part| matches!(part, Part::ToolResult(_)))
}

/// Returns the tool of the last two calls, if both are the same with equal arguments.
fn repeated(prompt: &Prompt) -> Option<&str> {
    let parts = prompt
        .messages
        .iter()
        .rev()
        .flat_map(|it| it.parts.iter().rev());
    let mut calls = parts.filter_map(|part| match part {
        Part::ToolCall(call) => Some(call),
        Part::Text(_) | Part::Image(_) | Part::Thinking(_) | Part::ToolResult(_) => None,
    });
    let (last, before) = (calls.next()?, calls.next()?);
    let is_same = last.tool == before.tool && last.arguments == before.arguments;
    is_same.then_some(last.tool.as_str())
}

/// Returns an answer in the form in which replies are written.
pub(super) fn written_answer(words: &str) -> String {
    json!({ ANSWER: words }).to_string()
}

/// Returns the text of a reply that is an answer.
pub(super) fn answer(text: &str) -> Option<String> {
    let value = arguments::read_leniently(text.trim())?;
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    fields.get(ANSWER)?.as_str().map(str::to_owned)
}
