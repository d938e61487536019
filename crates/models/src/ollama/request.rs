//! A [`Prompt`] as the JSON body of a request.
//!
//! Turns alternate; results are messages of the role `tool` right behind their calls, and the
//! pictures in them stand in the user's message behind those, for most models' templates look for
//! pictures there and nowhere else. Thinking is left out: the models are made to do without.

use gyrus_contract::{Image, ModelError, Part, Prompt, Role, ThinkingEffort, ToolSpec};
use serde_json::{Value, json};

use crate::{
    ModelConnection, ModelFacts, PictureSource,
    calls::{CallConversion, object},
    conversation::{RoleTurn, base64, turns},
};

/// Time for which the server holds the model in memory after a reply, long enough for slow tools
/// and for people between two steps of a run. The server's default is five minutes.
const KEEP_ALIVE: &str = "30m";

/// Minimum window in tokens to request where none is configured.
const SMALLEST_WINDOW: u64 = 8_192;

/// Maximum number of tokens that the server parses correctly.
const MOST_TOKENS: u64 = i32::MAX as u64;

/// Bytes of text per token, as in the run's estimate for reservations.
const BYTES_A_TOKEN: u64 = 3;

/// Bytes that a template adds to a message.
const BYTES_AROUND_A_MESSAGE: u64 = 32;

/// Returns the body, or the reason why the prompt cannot be sent.
pub(super) fn body(prompt: &Prompt, connection: &ModelConnection) -> Result<Value, ModelError> {
    let facts = &connection.facts;
    let messages = messages(prompt, &*connection.blobs)?;
    let tools: Vec<_> = prompt.tools.iter().map(|spec| tool(spec)).collect();
    let most = facts.max_output_tokens.unwrap_or(MOST_TOKENS);
    let output = prompt.max_output_tokens.min(most).min(MOST_TOKENS);
    let size = OllamaPromptSize::of(prompt, &messages, &tools, facts);
    let mut body = json!({
        "model": connection.model,
        "messages": messages,
        "stream": true,
        // Else the server drops the oldest messages, and then the first half of the rest.
        "truncate": false,
        "shift": false,
        "keep_alive": KEEP_ALIVE,
        "options": {"num_ctx": size.window(output, facts)?, "num_predict": output},
    });
    match prompt.sent_effort() {
        None => {}
        Some(ThinkingEffort::None) => body["think"] = false.into(),
        Some(ThinkingEffort::Max) => body["think"] = ThinkingEffort::High.word().into(),
        Some(effort) => body["think"] = effort.word().into(),
    }
    if !tools.is_empty() {
        body["tools"] = tools.into();
    }
    if let Some(schema) = &prompt.output_schema {
        body["format"] = schema.clone();
    }
    Ok(body)
}

struct OllamaPromptSize {
    text_bytes: u64,
    image_tokens: u64,
}

impl OllamaPromptSize {
    fn of(prompt: &Prompt, messages: &[Value], tools: &[Value], facts: &ModelFacts) -> Self {
        let text = |message: &Value| {
            let words = message["content"].as_str().unwrap_or_default().len();
            let calls = match &message["tool_calls"] {
                Value::Null => 0,
                calls => calls.to_string().len(),
            };
            (words + calls) as u64 + BYTES_AROUND_A_MESSAGE
        };
        let tools = tools.iter().map(|tool| tool.to_string().len() as u64);
        let parts = prompt.messages.iter().flat_map(|message| &message.parts);
        Self {
            text_bytes: messages.iter().map(text).sum::<u64>() + tools.sum::<u64>(),
            image_tokens: parts
                .flat_map(pictures)
                .map(|image| facts.image_tokens(image))
                .fold(0, u64::saturating_add),
        }
    }

    /// Returns the window to request. A configured one is requested unchanged, because another one
    /// makes the server reload the model. Otherwise it is one of a few sizes, large enough that
    /// nothing is cut: a token for every two bytes, plus all of the output.
    fn window(&self, output: u64, facts: &ModelFacts) -> Result<u64, ModelError> {
        let Some(window) = facts.window else {
            let most = (self.text_bytes / 2).saturating_add(self.image_tokens);
            let needed = most.saturating_add(output).min(MOST_TOKENS);
            let power = needed.next_power_of_two();
            return Ok(power.clamp(SMALLEST_WINDOW, MOST_TOKENS));
        };
        let tokens = (self.text_bytes / BYTES_A_TOKEN).saturating_add(self.image_tokens);
        if tokens < window {
            Ok(window)
        } else {
            Err(ModelError::ContextTooLong {
                message: format!(
                    "it has about {tokens} tokens and the window {window}; \
                 the server would cut it without a word, so it was not sent"
                ),
            })
        }
    }
}

fn pictures(part: &Part) -> &[Image] {
    match part {
        Part::Image(image) => std::slice::from_ref(image),
        Part::ToolResult(result) => &result.images,
        Part::Text(_) | Part::Thinking(_) | Part::ToolCall(_) => &[],
    }
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.told_parameters(),
        },
    })
}

fn messages(prompt: &Prompt, blobs: &dyn PictureSource) -> Result<Vec<Value>, ModelError> {
    let mut messages = Vec::with_capacity(prompt.messages.len() + 2);
    let system = prompt.system.iter().map(|part| part.text.trim());
    let system: Vec<_> = system.filter(|text| !text.is_empty()).collect();
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system.join("\n\n")}));
    }
    let mut calls = CallConversion::new();
    for turn in turns(prompt, |_| false)? {
        match turn.role {
            Role::User => user(&turn.parts, &mut calls, blobs, &mut messages)?,
            Role::Assistant => messages.push(assistant(&turn, &mut calls)),
        }
    }
    // Calls at the very end want their results, too.
    user(&[], &mut calls, blobs, &mut messages)?;
    Ok(messages)
}

/// Returns the results of the calls before, then one message with everything else.
fn user(
    parts: &[&Part],
    calls: &mut CallConversion,
    blobs: &dyn PictureSource,
    messages: &mut Vec<Value>,
) -> Result<(), ModelError> {
    let (answered, rest) = calls.answer(parts);
    let mut texts = Vec::new();
    let mut images: Vec<&Image> = Vec::new();
    for call in &answered {
        let content = if call.is_error() {
            format!("The call failed: {}", call.text())
        } else {
            call.text().to_owned()
        };
        messages.push(json!({
            "role": "tool", "content": content, "tool_name": call.tool, "tool_call_id": call.id,
        }));
        let shown = call.result.map_or(&[][..], |result| &result.images);
        if !shown.is_empty() {
            let (from, to) = (images.len() + 1, images.len() + shown.len());
            let which = if from == to {
                format!("Picture {from} is")
            } else {
                format!("Pictures {from} to {to} are")
            };
            texts.push(format!(
                "{which} from the call {} of `{}`.",
                call.id, call.tool
            ));
            images.extend(shown);
        }
    }
    for part in rest {
        match part {
            Part::Text(text) => texts.push(text.text.clone()),
            Part::Image(image) => images.push(image),
            Part::ToolResult(result) => {
                texts.push(format!(
                    "The result of an earlier call:\n{}",
                    result.text.text
                ));
                images.extend(&result.images);
            }
            // These parts cannot be in a user's turn.
            Part::Thinking(_) | Part::ToolCall(_) => {}
        }
    }
    if texts.is_empty() && images.is_empty() {
        return Ok(());
    }
    let mut message = json!({"role": "user", "content": texts.join("\n\n")});
    if !images.is_empty() {
        let images = images.into_iter().map(|image| base64(image, blobs));
        message["images"] = images.collect::<Result<Vec<_>, _>>()?.into();
    }
    messages.push(message);
    Ok(())
}

fn assistant(turn: &RoleTurn<'_>, calls: &mut CallConversion) -> Value {
    let mut texts = Vec::new();
    let mut made = Vec::new();
    for part in &turn.parts {
        match part {
            Part::Text(text) => texts.push(text.text.as_str()),
            Part::ToolCall(call) => {
                let (id, name) = calls.call(call);
                made.push(json!({
                    "id": id, "function": {"name": name, "arguments": object(call)},
                }));
            }
            // These parts cannot be in a model's turn, or are foreign thinking.
            Part::Thinking(_) | Part::Image(_) | Part::ToolResult(_) => {}
        }
    }
    let mut message = json!({"role": "assistant", "content": texts.join("\n")});
    if !made.is_empty() {
        message["tool_calls"] = made.into();
    }
    message
}

#[cfg(test)]
mod tests;
