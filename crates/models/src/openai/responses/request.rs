//! A [`Prompt`] as the JSON body of a request.
//!
//! The conversation is a flat list of items: messages, calls, their outputs, and reasoning, which
//! goes back as it came. Every call is answered right after the model's turn: by its result, or by
//! a note that there is none.

use gyrus_contract::{Image, ModelError, Part, Prompt, Role, ToolSpec};
use serde_json::{Value, json};

use super::super::{ORPHAN, answer_text, argument_text, data_url, effort_word, schema, system};
use crate::{
    ModelConnection, PictureSource,
    calls::{CallConversion, CallWithResult},
    conversation::turns,
};

/// Smallest limit of a reply that the provider accepts, in tokens.
const MIN_OUTPUT_TOKENS: u64 = 16;

/// Returns the body, or the reason why the prompt cannot be sent.
pub(super) fn body(prompt: &Prompt, connection: &ModelConnection) -> Result<Value, ModelError> {
    let most = connection.facts.max_output_tokens.unwrap_or(u64::MAX);
    let mut body = json!({
        "model": connection.model,
        "stream": true,
        "store": false,
        "max_output_tokens": prompt.max_output_tokens.min(most).max(MIN_OUTPUT_TOKENS),
        "input": input(prompt, &*connection.blobs)?,
    });
    let system = system(prompt);
    if !system.is_empty() {
        body["instructions"] = system.into();
    }
    if let Some(effort) = prompt.sent_effort() {
        body["reasoning"] = json!({"effort": effort_word(effort)});
    }
    if !prompt.tools.is_empty() {
        body["tools"] = prompt.tools.iter().map(|spec| tool(spec)).collect();
        if prompt.must_call {
            body["tool_choice"] = "required".into();
        }
    }
    if let Some(schema) = &prompt.output_schema {
        body["text"] = json!({"format": {
            "type": "json_schema",
            "name": "reply",
            "schema": schema,
            "strict": schema::is_strict(schema),
        }});
    }
    Ok(body)
}

/// Requests the model's reasoning in a form that can be sent back to it.
pub(super) fn include_reasoning(body: &mut Value) {
    body["include"] = json!(["reasoning.encrypted_content"]);
}

/// Reverts [`include_reasoning`].
pub(super) fn exclude_reasoning(body: &mut Value) {
    if let Some(fields) = body.as_object_mut() {
        fields.remove("include");
    }
}

/// Returns the definition of a tool. This protocol is strict by default and refuses a schema
/// outside its subset, so strictness is turned off.
fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.told_parameters(),
        "strict": false,
    })
}

fn input(prompt: &Prompt, blobs: &dyn PictureSource) -> Result<Vec<Value>, ModelError> {
    let mut items = Vec::with_capacity(prompt.messages.len());
    let mut calls = CallConversion::new();
    for turn in turns(prompt, is_own)? {
        match turn.role {
            Role::User => user_items(&turn.parts, &mut calls, blobs, &mut items)?,
            Role::Assistant => assistant_items(&turn.parts, &mut calls, &mut items),
        }
    }
    // Calls at the very end want their results, too.
    user_items(&[], &mut calls, blobs, &mut items)?;
    Ok(items)
}

/// Whether the provider, which stores nothing, can use this reasoning: it is encrypted, or plain
/// from a compatible server.
fn is_own(block: &Value) -> bool {
    let content = block["content"].as_array();
    block["type"] == "reasoning"
        && (block["encrypted_content"].is_string() || content.is_some_and(|list| !list.is_empty()))
}

fn user_items(
    parts: &[&Part],
    calls: &mut CallConversion,
    blobs: &dyn PictureSource,
    items: &mut Vec<Value>,
) -> Result<(), ModelError> {
    let (answered, rest) = calls.answer(parts);
    for call in &answered {
        let output = output(call, blobs)?;
        items.push(json!({"type": "function_call_output", "call_id": call.id, "output": output}));
    }
    let mut content = Vec::new();
    for part in rest {
        match part {
            Part::Text(text) => content.push(said(&text.text)),
            Part::Image(image) => content.push(picture(image, blobs)?),
            Part::ToolResult(result) => {
                content.push(said(&format!("{ORPHAN} {}", result.text.text)));
                add_pictures(&result.images, blobs, &mut content)?;
            }
            // These parts cannot be in a user's turn.
            Part::Thinking(_) | Part::ToolCall(_) => {}
        }
    }
    if !content.is_empty() {
        items.push(json!({"type": "message", "role": "user", "content": content}));
    }
    Ok(())
}

/// Returns a text, or a list where there are pictures.
fn output(call: &CallWithResult<'_>, blobs: &dyn PictureSource) -> Result<Value, ModelError> {
    let text = answer_text(call);
    let images = call.result.map_or(&[][..], |result| &result.images);
    if images.is_empty() {
        return Ok(text.into());
    }
    let mut content = Vec::with_capacity(images.len() + 1);
    if !text.trim().is_empty() {
        content.push(said(&text));
    }
    add_pictures(images, blobs, &mut content)?;
    Ok(content.into())
}

fn assistant_items(parts: &[&Part], calls: &mut CallConversion, items: &mut Vec<Value>) {
    for part in parts {
        items.push(match part {
            Part::Text(text) => json!({
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": text.text}],
            }),
            Part::Thinking(item) => item.clone(),
            Part::ToolCall(call) => {
                let (id, name) = calls.call(call);
                json!({
                    "type": "function_call",
                    "call_id": id,
                    "name": name,
                    "arguments": argument_text(call),
                })
            }
            // These parts cannot be in the model's turn.
            Part::Image(_) | Part::ToolResult(_) => continue,
        });
    }
}

fn said(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

fn add_pictures(
    images: &[Image],
    blobs: &dyn PictureSource,
    content: &mut Vec<Value>,
) -> Result<(), ModelError> {
    for image in images {
        content.push(picture(image, blobs)?);
    }
    Ok(())
}

fn picture(image: &Image, blobs: &dyn PictureSource) -> Result<Value, ModelError> {
    let url = data_url(image, blobs)?;
    Ok(json!({"type": "input_image", "image_url": url, "detail": "auto"}))
}

#[cfg(test)]
mod tests;
