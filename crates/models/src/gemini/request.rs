//! A [`Prompt`] as the JSON body of a request.
//!
//! The conversation is made to fit the protocol's rules without changing what it says: turns
//! alternate, the results of a turn's calls stand first in the turn behind it, as many as there
//! were calls and in their order, and every signature stands on its own part again. The same
//! prompt gives the same bytes, which is what makes the provider's cache work.

use gyrus_contract::{Image, ModelError, Part, Prompt, Role, ThinkingEffort, ToolSpec};
use serde_json::{Value, json};

use super::signature::{FOREIGN_CALL, Signature, SignaturePart, text_parts};
use crate::{
    ModelConnection, PictureSource,
    calls::{CallConversion, CallWithResult, object},
    conversation::{RoleTurn, base64, turns},
};

/// Maximum number of tokens that fits the protocol's field.
const MOST_TOKENS: u64 = i32::MAX as u64;

/// Returns the body, or the reason why the prompt cannot be sent.
pub(super) fn body(prompt: &Prompt, connection: &ModelConnection) -> Result<Value, ModelError> {
    let most = connection.facts.max_output_tokens.unwrap_or(MOST_TOKENS);
    let most = most.min(MOST_TOKENS);
    let mut body = json!({
        "contents": contents(prompt, &*connection.blobs)?,
        "generationConfig": {"maxOutputTokens": prompt.max_output_tokens.min(most)},
    });
    if let Some(effort) = prompt.sent_effort() {
        body["generationConfig"]["thinkingConfig"] = json!({"thinkingBudget": budget(effort)});
    }
    let system = prompt
        .system
        .iter()
        .filter(|part| !part.text.trim().is_empty());
    let system: Vec<_> = system.map(|part| json!({"text": part.text})).collect();
    if !system.is_empty() {
        body["systemInstruction"] = json!({"parts": system});
    }
    if !prompt.tools.is_empty() {
        let tools: Vec<_> = prompt.tools.iter().map(|spec| tool(spec)).collect();
        body["tools"] = json!([{"functionDeclarations": tools}]);
        if prompt.must_call {
            body["toolConfig"] = json!({"functionCallingConfig": {"mode": "ANY"}});
        }
    }
    if let Some(schema) = &prompt.output_schema {
        body["generationConfig"]["responseMimeType"] = "application/json".into();
        body["generationConfig"]["responseJsonSchema"] = plain(schema);
    }
    Ok(body)
}

/// Returns the maximum number of tokens of thinking; -1 leaves it to the model.
fn budget(effort: ThinkingEffort) -> i64 {
    match effort {
        ThinkingEffort::None => 0,
        ThinkingEffort::Low => 1_024,
        ThinkingEffort::Medium => 8_192,
        ThinkingEffort::High => 24_576,
        ThinkingEffort::Max => -1,
    }
}

/// Returns the declaration of a tool. `parametersJsonSchema` takes JSON Schema; `parameters` takes
/// a dialect that knows few of its keywords, and refuses the request for the others.
fn tool(spec: &ToolSpec) -> Value {
    json!({
        "name": spec.name,
        "description": spec.description,
        "parametersJsonSchema": plain(&spec.told_parameters()),
    })
}

/// Returns a schema without the keyword `$schema`, which the API does not accept.
fn plain(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("$schema");
    }
    schema
}

fn contents(prompt: &Prompt, blobs: &dyn PictureSource) -> Result<Vec<Value>, ModelError> {
    let mut calls = CallConversion::new();
    let mut contents = Vec::with_capacity(prompt.messages.len() + 1);
    for turn in turns(prompt, |block| Signature::read(block).is_some())? {
        let (role, parts) = match turn.role {
            Role::User => ("user", user(&turn.parts, &mut calls, blobs)?),
            Role::Assistant => ("model", model(&turn, &mut calls)),
        };
        if !parts.is_empty() {
            contents.push(json!({"role": role, "parts": parts}));
        }
    }
    // Calls at the very end want their results, too.
    let missing = user(&[], &mut calls, blobs)?;
    if !missing.is_empty() {
        contents.push(json!({"role": "user", "parts": missing}));
    }
    Ok(contents)
}

/// Returns the content of a user's turn: the results of the calls before, then everything else.
fn user(
    parts: &[&Part],
    calls: &mut CallConversion,
    blobs: &dyn PictureSource,
) -> Result<Vec<Value>, ModelError> {
    let (answered, rest) = calls.answer(parts);
    let mut parts = Vec::with_capacity(answered.len() + rest.len());
    for call in &answered {
        parts.push(response(call, blobs)?);
    }
    for part in rest {
        match part {
            Part::Text(text) => parts.push(json!({"text": text.text})),
            Part::Image(image) => parts.push(picture(image, blobs)?),
            Part::ToolResult(result) => {
                let text = format!("The result of an earlier call:\n{}", result.text.text);
                parts.push(json!({"text": text}));
                for image in &result.images {
                    parts.push(picture(image, blobs)?);
                }
            }
            // These parts cannot be in a user's turn.
            Part::Thinking(_) | Part::ToolCall(_) => {}
        }
    }
    Ok(parts)
}

/// Returns the response of a call. The provider knows the field names `output` and `error`.
/// Pictures are inside.
fn response(call: &CallWithResult<'_>, blobs: &dyn PictureSource) -> Result<Value, ModelError> {
    let kind = if call.is_error() { "error" } else { "output" };
    let mut response = json!({
        "id": call.id,
        "name": call.tool,
        "response": {kind: call.text()},
    });
    let images = call.result.map_or(&[][..], |result| &result.images);
    if !images.is_empty() {
        let pictures = images.iter().map(|image| picture(image, blobs));
        response["parts"] = pictures.collect::<Result<Vec<_>, _>>()?.into();
    }
    Ok(json!({"functionResponse": response}))
}

fn picture(image: &Image, blobs: &dyn PictureSource) -> Result<Value, ModelError> {
    let data = base64(image, blobs)?;
    Ok(json!({"inlineData": {"mimeType": image.media_type, "data": data}}))
}

/// Returns the content of the model's turn, each part with its own signature.
fn model(turn: &RoleTurn<'_>, calls: &mut CallConversion) -> Vec<Value> {
    let mut parts = Vec::with_capacity(turn.parts.len());
    let mut on_text = Vec::new();
    let mut on_call = None;
    let mut is_first_call = true;
    for part in &turn.parts {
        match part {
            Part::Thinking(block) => {
                let Some(Signature { signature, on, .. }) = Signature::read(block) else {
                    continue;
                };
                match on {
                    SignaturePart::Call => on_call = Some(signature),
                    SignaturePart::Text { start, end } => on_text.push((start, end, signature)),
                    SignaturePart::Thought(text) => parts.push(json!({
                        "text": text, "thought": true, "thoughtSignature": signature,
                    })),
                }
            }
            Part::Text(text) => {
                parts.extend(text_parts(&text.text, std::mem::take(&mut on_text)));
            }
            Part::ToolCall(own) => {
                parts.extend(text_parts("", std::mem::take(&mut on_text)));
                let (id, name) = calls.call(own);
                let mut part = json!({
                    "functionCall": {"id": id, "name": name, "args": object(own)},
                });
                let foreign = is_first_call.then(|| FOREIGN_CALL.to_owned());
                if let Some(signature) = on_call.take().or(foreign) {
                    part["thoughtSignature"] = signature.into();
                }
                is_first_call = false;
                parts.push(part);
            }
            // These parts cannot be in a model's turn.
            Part::Image(_) | Part::ToolResult(_) => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests;
