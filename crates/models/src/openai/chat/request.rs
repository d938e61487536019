//! A [`Prompt`] as the JSON body of a request.
//!
//! Every call of the model is answered right after it: by its result, or by a note that there is
//! none. Results are texts in this protocol, so their pictures follow in a message of the user that
//! says which call they belong to.

use gyrus_contract::{Image, ModelError, Part, Prompt, Role, ToolSpec};
use serde_json::{Value, json};

use super::super::{ORPHAN, answer_text, argument_text, data_url, effort_word, schema, system};
use crate::{ModelConnection, PictureSource, calls::CallConversion, conversation::turns};

/// Returns the body, or the reason why the prompt cannot be sent. `limit_field` is the server's
/// name for the limit of the reply.
pub(super) fn body(
    prompt: &Prompt,
    connection: &ModelConnection,
    limit_field: &str,
) -> Result<Value, ModelError> {
    let most = connection.facts.max_output_tokens.unwrap_or(u64::MAX);
    let mut body = json!({
        "model": connection.model,
        "stream": true,
        "stream_options": {"include_usage": true},
        "messages": messages(prompt, &*connection.blobs)?,
    });
    body[limit_field] = prompt.max_output_tokens.min(most).into();
    if let Some(effort) = prompt.sent_effort() {
        body["reasoning_effort"] = effort_word(effort).into();
    }
    if !prompt.tools.is_empty() {
        let tool = |spec: &ToolSpec| {
            json!({"type": "function", "function": {
                "name": spec.name,
                "description": spec.description,
                "parameters": spec.told_parameters(),
            }})
        };
        body["tools"] = prompt.tools.iter().map(|spec| tool(spec)).collect();
        if prompt.must_call {
            body["tool_choice"] = "required".into();
        }
    }
    if let Some(schema) = &prompt.output_schema {
        body["response_format"] = json!({"type": "json_schema", "json_schema": {
            "name": "reply",
            "schema": schema,
            "strict": schema::is_strict(schema),
        }});
    }
    Ok(body)
}

fn messages(prompt: &Prompt, blobs: &dyn PictureSource) -> Result<Vec<Value>, ModelError> {
    let mut messages = Vec::with_capacity(prompt.messages.len() + 1);
    let system = system(prompt);
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system}));
    }
    let mut calls = CallConversion::new();
    for turn in turns(prompt, |_| false)? {
        match turn.role {
            Role::User => user_messages(&turn.parts, &mut calls, blobs, &mut messages)?,
            Role::Assistant => messages.push(assistant_message(&turn.parts, &mut calls)),
        }
    }
    // Calls at the very end want their results, too.
    user_messages(&[], &mut calls, blobs, &mut messages)?;
    Ok(messages)
}

/// Returns the messages of a user's turn: first the results, which must follow their calls; then
/// everything else.
fn user_messages(
    parts: &[&Part],
    calls: &mut CallConversion,
    blobs: &dyn PictureSource,
    messages: &mut Vec<Value>,
) -> Result<(), ModelError> {
    let (answered, rest) = calls.answer(parts);
    let mut content = Vec::new();
    for call in &answered {
        let text = answer_text(call);
        messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": text}));
        let images = call.result.map_or(&[][..], |result| &result.images);
        if !images.is_empty() {
            let heading = format!("The pictures that the call {} returned:", call.id);
            content.push(said(&heading));
            add_pictures(images, blobs, &mut content)?;
        }
    }
    for part in rest {
        match part {
            Part::Text(text) => content.push(said(&text.text)),
            Part::Image(image) => add_pictures(std::slice::from_ref(image), blobs, &mut content)?,
            Part::ToolResult(result) => {
                content.push(said(&format!("{ORPHAN} {}", result.text.text)));
                add_pictures(&result.images, blobs, &mut content)?;
            }
            // These parts cannot be in a user's turn.
            Part::Thinking(_) | Part::ToolCall(_) => {}
        }
    }
    if !content.is_empty() {
        messages.push(json!({"role": "user", "content": plain(content)}));
    }
    Ok(())
}

fn assistant_message(parts: &[&Part], calls: &mut CallConversion) -> Value {
    let (mut texts, mut called) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text(text) => texts.push(text.text.as_str()),
            Part::ToolCall(call) => {
                let (id, name) = calls.call(call);
                let function = json!({"name": name, "arguments": argument_text(call)});
                called.push(json!({"id": id, "type": "function", "function": function}));
            }
            // These parts cannot be in the model's turn, or are not supported by this protocol.
            Part::Image(_) | Part::Thinking(_) | Part::ToolResult(_) => {}
        }
    }
    let content = if texts.is_empty() {
        Value::Null
    } else {
        texts.join("\n").into()
    };
    let mut message = json!({"role": "assistant", "content": content});
    if !called.is_empty() {
        message["tool_calls"] = called.into();
    }
    message
}

fn said(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn add_pictures(
    images: &[Image],
    blobs: &dyn PictureSource,
    content: &mut Vec<Value>,
) -> Result<(), ModelError> {
    for image in images {
        let url = data_url(image, blobs)?;
        content.push(json!({"type": "image_url", "image_url": {"url": url}}));
    }
    Ok(())
}

/// Returns content without pictures as one text: many compatible servers support nothing else.
fn plain(content: Vec<Value>) -> Value {
    let texts: Option<Vec<_>> = content.iter().map(|part| part["text"].as_str()).collect();
    match texts {
        Some(texts) => texts.join("\n").into(),
        None => content.into(),
    }
}

#[cfg(test)]
mod tests;
