//! Converts tools, calls and results to text.

use std::{collections::BTreeMap, sync::Arc};

use gyrus_contract::{
    Message, Origin, Part, Prompt, Role, SystemPart, Text, ToolCall, ToolResult, ToolSpec,
};
use serde_json::{Value, json};

/// Instructions for the model about calls.
const INSTRUCTIONS: &str = include_str!("instructions.md");

/// Whether a prompt has neither tools nor traces of them.
pub(super) fn is_plain(prompt: &Prompt) -> bool {
    let mut parts = prompt.messages.iter().flat_map(|message| &message.parts);
    prompt.tools.is_empty()
        && !parts.any(|part| matches!(part, Part::ToolCall(_) | Part::ToolResult(_)))
}

/// Returns the same prompt without tools, calls and results. A reply that must fit a schema could
/// not contain calls: with tools the schema is dropped, and one of a call binds a reply that must be
/// one.
pub(super) fn as_text(prompt: &Prompt) -> Prompt {
    let mut system = prompt.system.clone();
    if !prompt.tools.is_empty() {
        // The part that is the same in every step comes first, so that it can be cached.
        let at = system.iter().take_while(|part| part.cacheable).count();
        let text = instructions(&prompt.tools);
        let cacheable = true;
        system.insert(at, SystemPart { text, cacheable });
    }
    let mut called = BTreeMap::new();
    let messages = prompt
        .messages
        .iter()
        .map(|message| Arc::new(in_words(message, &mut called)))
        .collect();
    Prompt {
        purpose: prompt.purpose,
        ordinal: prompt.ordinal,
        system,
        messages,
        tools: Vec::new(),
        must_call: false,
        output_schema: if prompt.tools.is_empty() {
            prompt.output_schema.clone()
        } else {
            prompt.must_call.then(|| one_call(&prompt.tools))
        },
        screen: prompt.screen,
        effort: prompt.effort,
        plainer: prompt.plainer.clone(),
        max_output_tokens: prompt.max_output_tokens,
    }
}

/// Returns the schema of a call of one of the tools.
fn one_call(tools: &[Arc<ToolSpec>]) -> Value {
    let names: Vec<_> = tools.iter().map(|tool| &tool.name).collect();
    json!({
        "type": "object",
        "properties": {"tool": {"enum": names}, "arguments": {"type": "object"}},
        "required": ["tool", "arguments"],
    })
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

/// Converts a part. `called` records the tool of each call, for its result.
fn in_words<'a>(message: &'a Message, called: &mut BTreeMap<&'a str, &'a str>) -> Message {
    let mut parts = Vec::with_capacity(message.parts.len());
    for part in &message.parts {
        match part {
            Part::ToolCall(call) => {
                called.insert(&call.id, &call.tool);
                parts.push(Part::Text(written_call(call)));
            }
            Part::ToolResult(result) => {
                let tool = called.get(result.call_id.as_str()).copied();
                parts.push(Part::Text(written_result(result, tool)));
                parts.extend(result.images.iter().cloned().map(Part::Image));
            }
            Part::Text(_) | Part::Image(_) | Part::Thinking(_) => parts.push(part.clone()),
        }
    }
    let role: Role = message.role;
    Message { role, parts }
}

fn written_call(call: &ToolCall) -> Text {
    // In the order that the instructions require.
    let (tool, arguments) = (json!(call.tool), &call.arguments);
    let object = format!("{{\"tool\": {tool}, \"arguments\": {arguments}}}");
    Text::new(format!("```json\n{object}\n```"), Origin::Model)
}

/// Returns the result between fences that nothing inside it can close.
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
