//! Converts tools, calls and results to text.

use std::{collections::BTreeMap, sync::Arc};

use gyrus_contract::{
    Message, Origin, Part, Prompt, Role, SystemPart, Text, ToolCall, ToolResult, ToolSpec,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::one_object;

/// Instructions for the model about calls.
const INSTRUCTIONS: &str = include_str!("instructions.md");

/// Whether a prompt contains neither tools nor calls nor results.
pub(super) fn is_plain(prompt: &Prompt) -> bool {
    let mut parts = prompt.messages.iter().flat_map(|message| &message.parts);
    prompt.tools.is_empty()
        && !parts.any(|part| matches!(part, Part::ToolCall(_) | Part::ToolResult(_)))
}

/// Returns the same prompt without tools, calls and results. A reply that must fit a schema could
/// not contain calls: with tools the schema is dropped, and one of a call binds a reply that must
/// be one, or all replies where the style says so. `may_bind` allows that. Where words are wanted,
/// the prompt's own schema binds them.
pub(super) fn as_text(prompt: &Prompt, style: CallStyle, may_bind: bool) -> Prompt {
    let is_bound = style == CallStyle::Bound;
    let has_tools = !prompt.tools.is_empty();
    let mut system = prompt.system.clone();
    if has_tools {
        // The part that is the same in every step comes first, so that it can be cached.
        let at = system.iter().take_while(|part| part.cacheable).count();
        let text = if is_bound {
            one_object::instructions(&prompt.tools)
        } else {
            instructions(&prompt.tools)
        };
        system.insert(at, SystemPart::cacheable(text));
    }
    let mut called = BTreeMap::new();
    let messages = prompt
        .messages
        .iter()
        .map(|message| Arc::new(in_words(message, is_bound && has_tools, &mut called)))
        .collect();
    let binds = may_bind && (is_bound || prompt.must_call);
    Prompt {
        purpose: prompt.purpose,
        ordinal: prompt.ordinal,
        system,
        messages,
        tools: Vec::new(),
        must_call: false,
        output_schema: if has_tools && !prompt.purpose.wants_words() {
            binds.then(|| one_object::schema(prompt, is_bound))
        } else {
            prompt.output_schema.clone()
        },
        screen: prompt.screen,
        effort: prompt.effort,
        plainer: prompt.plainer.clone(),
        max_output_tokens: prompt.max_output_tokens,
    }
}

fn instructions(tools: &[Arc<ToolSpec>]) -> String {
    let described: Vec<_> = tools
        .iter()
        .map(|tool| {
            let ToolSpec {
                name, description, ..
            } = &**tool;
            let parameters = tool.told_parameters();
            format!("## {name}\n{description}\nSchema of its arguments: {parameters}")
        })
        .collect();
    INSTRUCTIONS
        .trim_end()
        .replacen("{tools}", &described.join("\n\n"), 1)
}

/// Converts a message to text. `is_bound` says that each reply is one object, and `called` records
/// the tool of each call, for its result.
fn in_words<'a>(
    message: &'a Message,
    is_bound: bool,
    called: &mut BTreeMap<&'a str, &'a str>,
) -> Message {
    let mut parts = Vec::with_capacity(message.parts.len());
    let is_call = |part: &Part| matches!(part, Part::ToolCall(_));
    let is_answer =
        is_bound && message.role == Role::Assistant && !message.parts.iter().any(is_call);
    for part in &message.parts {
        match part {
            Part::ToolCall(call) => {
                called.insert(&call.id, &call.tool);
                parts.push(Part::Text(written_call(call, is_bound)));
            }
            Part::ToolResult(result) => {
                let tool = called.get(result.call_id.as_str()).copied();
                parts.push(Part::Text(written_result(result, tool)));
                parts.extend(result.images.iter().cloned().map(Part::Image));
            }
            Part::Text(text) if is_answer => {
                let words = one_object::written_answer(&text.text);
                parts.push(Part::Text(Text::new(words, Origin::Model)));
            }
            Part::Text(_) | Part::Image(_) | Part::Thinking(_) => parts.push(part.clone()),
        }
    }
    let role: Role = message.role;
    Message { role, parts }
}

fn written_call(call: &ToolCall, is_bound: bool) -> Text {
    // In the order that the instructions require.
    let (tool, arguments) = (json!(call.tool), &call.arguments);
    let object = format!("{{\"tool\": {tool}, \"arguments\": {arguments}}}");
    let written = if is_bound {
        object
    } else {
        format!("```json\n{object}\n```")
    };
    Text::new(written, Origin::Model)
}

/// Returns the result between fences that it cannot close.
fn written_result(result: &ToolResult, tool: Option<&str>) -> Text {
    let text = &result.text.text;
    let fence = "`".repeat(3.max(longest_run_of_backticks(text) + 1));
    let what = if result.is_error { "Error" } else { "Result" };
    let pictures = match result.images.len() {
        0 => String::new(),
        1 => "\nIts picture follows.".to_owned(),
        n => format!("\nIts {n} pictures follow."),
    };
    let tool = tool.unwrap_or("a tool");
    let words = format!("{what} of {tool}:\n{fence}\n{text}\n{fence}{pictures}");
    Text::new(words, result.text.origin.clone())
}

fn longest_run_of_backticks(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}

/// The form in which a model is offered tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStyle {
    /// Tools go over the wire.
    #[default]
    Native,
    /// Tools are described in the prompt, and calls are read from text.
    Prompted,
    /// Like `Prompted`, with every reply bound to one call, or to the answer, by a JSON schema.
    Bound,
}
