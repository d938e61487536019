//! A [`Prompt`] as the JSON body of a request.
//!
//! The conversation is made to fit the protocol's rules without changing what it says: adjacent
//! messages of one role become one, results stand before everything else in their message, and
//! what the provider would refuse (empty texts, messages without content, thinking of another
//! provider) is left out. The same prompt gives the same bytes, which is what makes the
//! provider's cache work.

use base64::{Engine, engine::general_purpose::STANDARD};
use gyrus_contract::{Image, ModelError, Part, Prompt, Role, ToolCall, ToolResult, ToolSpec};
use serde_json::{Value, json};

use crate::Blobs;

/// The body, or why the prompt cannot be sent.
pub(super) fn body(prompt: &Prompt, model: &str, blobs: &dyn Blobs) -> Result<Value, ModelError> {
    let mut body = json!({
        "model": model,
        "max_tokens": prompt.max_output_tokens,
        "stream": true,
        "messages": messages(prompt, blobs)?,
    });
    let system = system(prompt);
    if !system.is_empty() {
        body["system"] = system.into();
    }
    if !prompt.tools.is_empty() {
        body["tools"] = prompt.tools.iter().map(|spec| tool(spec)).collect();
    }
    if let Some(schema) = &prompt.output_schema {
        body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
    }
    Ok(body)
}

/// The last cacheable part carries the marker: the provider caches everything up to there, the
/// tools included, which it puts before the system prompt.
fn system(prompt: &Prompt) -> Vec<Value> {
    let parts = || {
        prompt
            .system
            .iter()
            .filter(|part| !part.text.trim().is_empty())
    };
    let mut blocks: Vec<_> = parts()
        .map(|part| json!({"type": "text", "text": part.text}))
        .collect();
    let cacheable: Vec<_> = parts().map(|part| part.cacheable).collect();
    if let Some(last) = cacheable.iter().rposition(|&cacheable| cacheable) {
        blocks[last]["cache_control"] = json!({"type": "ephemeral"});
    }
    blocks
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "name": spec.name,
        "description": spec.description,
        "input_schema": spec.parameters,
    })
}

fn messages(prompt: &Prompt, blobs: &dyn Blobs) -> Result<Vec<Value>, ModelError> {
    let mut turns: Vec<(Role, Vec<Value>)> = Vec::new();
    for message in &prompt.messages {
        let blocks = blocks(message.role, &message.parts, blobs)?;
        match turns.last_mut() {
            _ if blocks.is_empty() => {}
            Some((role, merged)) if *role == message.role => merged.extend(blocks),
            _ => turns.push((message.role, blocks)),
        }
    }
    let as_message = |(role, mut blocks): (Role, Vec<Value>)| match role {
        Role::User => {
            // Stable: only results move, and they keep their order.
            blocks.sort_by_key(|block| block["type"] != "tool_result");
            json!({"role": "user", "content": blocks})
        }
        Role::Assistant => json!({"role": "assistant", "content": blocks}),
    };
    Ok(turns.into_iter().map(as_message).collect())
}

fn blocks(role: Role, parts: &[Part], blobs: &dyn Blobs) -> Result<Vec<Value>, ModelError> {
    let mut blocks = Vec::with_capacity(parts.len());
    for part in parts {
        blocks.push(match (role, part) {
            (_, Part::Text(text)) if text.text.trim().is_empty() => continue,
            (_, Part::Text(text)) => json!({"type": "text", "text": text.text}),
            (Role::User, Part::Image(image)) => picture(image, blobs)?,
            (Role::User, Part::ToolResult(result)) => json!({
                "type": "tool_result",
                "tool_use_id": result.call_id,
                "content": content(result, blobs)?,
                "is_error": result.is_error,
            }),
            (Role::Assistant, Part::Thinking(block)) => match block["type"].as_str() {
                Some("thinking" | "redacted_thinking") => block.clone(),
                _ => continue,
            },
            (Role::Assistant, Part::ToolCall(call)) => json!({
                "type": "tool_use",
                "id": call.id,
                "name": call.tool,
                "input": input(call),
            }),
            (Role::User, Part::Thinking(_) | Part::ToolCall(_)) => {
                return Err(misplaced("thinking or a tool call", "a user message"));
            }
            (Role::Assistant, Part::Image(_) | Part::ToolResult(_)) => {
                return Err(misplaced(
                    "a picture or a tool result",
                    "a message of the model",
                ));
            }
        });
    }
    Ok(blocks)
}

/// A result's text, with its pictures behind it.
fn content(result: &ToolResult, blobs: &dyn Blobs) -> Result<Value, ModelError> {
    if result.images.is_empty() {
        return Ok(result.text.text.clone().into());
    }
    let mut blocks = Vec::new();
    if !result.text.text.trim().is_empty() {
        blocks.push(json!({"type": "text", "text": result.text.text}));
    }
    for image in &result.images {
        blocks.push(picture(image, blobs)?);
    }
    Ok(blocks.into())
}

/// The provider takes back objects only; arguments that were none are shown to the model as what
/// they were.
fn input(call: &ToolCall) -> Value {
    match &call.arguments {
        Value::Object(_) => call.arguments.clone(),
        other => json!({"invalid_arguments": other}),
    }
}

fn picture(image: &Image, blobs: &dyn Blobs) -> Result<Value, ModelError> {
    let bytes = blobs
        .load(&image.blob)
        .map_err(|reason| ModelError::Refused {
            message: format!("the picture {} cannot be sent: {reason}", image.blob),
        })?;
    Ok(json!({
        "type": "image",
        "source": {
            "type": "base64",
            "media_type": image.media_type,
            "data": STANDARD.encode(bytes),
        },
    }))
}

fn misplaced(what: &str, place: &str) -> ModelError {
    ModelError::Refused {
        message: format!("{what} cannot stand in {place}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gyrus_contract::{BlobId, Message, Origin, Purpose, Repeat, SystemPart, Text, ToolResult};

    use super::*;
    use crate::NoBlobs;

    struct Pixel;

    impl Blobs for Pixel {
        fn load(&self, _id: &BlobId) -> Result<Vec<u8>, String> {
            Ok(b"pixel".to_vec())
        }
    }

    fn prompt(messages: Vec<(Role, Vec<Part>)>) -> Prompt {
        let message = |(role, parts)| Arc::new(Message { role, parts });
        Prompt {
            purpose: Purpose::Agent,
            ordinal: 0,
            system: Vec::new(),
            messages: messages.into_iter().map(message).collect(),
            tools: Vec::new(),
            output_schema: None,
            max_output_tokens: 100,
        }
    }

    fn text(text: &str) -> Part {
        Part::Text(Text::new(text, Origin::Person))
    }

    fn call(id: &str, arguments: Value) -> Part {
        Part::ToolCall(ToolCall {
            id: id.into(),
            tool: "read".into(),
            arguments,
        })
    }

    fn result(id: &str, text: &str) -> Part {
        Part::ToolResult(ToolResult {
            call_id: id.into(),
            text: Text::new(
                text,
                Origin::Tool {
                    name: "read".into(),
                },
            ),
            images: Vec::new(),
            is_error: id == "2",
        })
    }

    fn picture() -> Part {
        Part::Image(Image {
            blob: BlobId::of(b"pixel"),
            media_type: "image/png".into(),
            width: 1,
            height: 1,
        })
    }

    #[test]
    fn a_conversation_fits_the_protocol() {
        let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s", "x": 1});
        let prompt = prompt(vec![
            (Role::User, vec![text("look"), picture()]),
            (Role::User, vec![text(" ")]),
            (Role::Assistant, vec![]),
            (Role::User, vec![text("please")]),
            (
                Role::Assistant,
                vec![
                    Part::Thinking(thinking),
                    Part::Thinking(json!({"type": "of another provider"})),
                    call("1", json!({"path": "a"})),
                    call("2", json!("{\"path\": ")),
                ],
            ),
            (Role::User, vec![text("by the way"), result("1", "A")]),
            (Role::User, vec![result("2", "no JSON")]),
        ]);
        let body = body(&prompt, "m", &Pixel).unwrap();
        let messages: Vec<_> = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(Value::to_string)
            .collect();
        insta::assert_snapshot!(messages.join("\n"), @r#"
{"content":[{"text":"look","type":"text"},{"source":{"data":"cGl4ZWw=","media_type":"image/png","type":"base64"},"type":"image"},{"text":"please","type":"text"}],"role":"user"}
{"content":[{"signature":"s","thinking":"hm","type":"thinking","x":1},{"id":"1","input":{"path":"a"},"name":"read","type":"tool_use"},{"id":"2","input":{"invalid_arguments":"{\"path\": "},"name":"read","type":"tool_use"}],"role":"assistant"}
{"content":[{"content":"A","is_error":false,"tool_use_id":"1","type":"tool_result"},{"content":"no JSON","is_error":true,"tool_use_id":"2","type":"tool_result"},{"text":"by the way","type":"text"}],"role":"user"}
"#);
    }

    #[test]
    fn everything_but_the_conversation_is_sent_too() {
        let part = |text: &str, cacheable| SystemPart {
            text: text.into(),
            cacheable,
        };
        let mut prompt = prompt(vec![(Role::User, vec![text("go")])]);
        prompt.system = vec![
            part("a", true),
            part("b", true),
            part("", true),
            part("c", false),
        ];
        prompt.tools = vec![Arc::new(ToolSpec {
            name: "read".into(),
            description: "reads".into(),
            parameters: json!({"type": "object"}),
            touches: Vec::new(),
            repeat: Repeat::Freely,
        })];
        prompt.output_schema = Some(json!({"type": "object"}));
        insta::assert_snapshot!(
            format!("{:#}", body(&prompt, "m", &NoBlobs).unwrap()), @r#"
{
  "max_tokens": 100,
  "messages": [
    {
      "content": [
        {
          "text": "go",
          "type": "text"
        }
      ],
      "role": "user"
    }
  ],
  "model": "m",
  "output_config": {
    "format": {
      "schema": {
        "type": "object"
      },
      "type": "json_schema"
    }
  },
  "stream": true,
  "system": [
    {
      "text": "a",
      "type": "text"
    },
    {
      "cache_control": {
        "type": "ephemeral"
      },
      "text": "b",
      "type": "text"
    },
    {
      "text": "c",
      "type": "text"
    }
  ],
  "tools": [
    {
      "description": "reads",
      "input_schema": {
        "type": "object"
      },
      "name": "read"
    }
  ]
}
"#
        );
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        let check = |role, part, expected: &str| {
            let error = body(&prompt(vec![(role, vec![part])]), "m", &NoBlobs).unwrap_err();
            assert!(matches!(error, ModelError::Refused { .. }));
            assert!(error.to_string().contains(expected), "{error}");
        };
        check(Role::User, picture(), "this run has no blob store");
        check(
            Role::User,
            call("1", json!({})),
            "a tool call cannot stand in a user message",
        );
        check(
            Role::Assistant,
            result("1", ""),
            "cannot stand in a message of the model",
        );
    }
}
