//! A [`Prompt`] as the JSON body of a request.
//!
//! The conversation is made to fit the protocol's rules without changing what it says: adjacent
//! messages of one role become one, results stand before everything else in their message, and
//! what the provider would refuse (empty texts, messages without content, thinking of another
//! provider) is left out. The same prompt gives the same bytes, which is what makes the
//! provider's cache work.

use gyrus_contract::{
    Image, ModelError, Part, Prompt, Purpose, Role, Simplification, ThinkingEffort, ToolResult,
    ToolSpec,
};
use serde_json::{Value, json};

use crate::{
    ModelConnection, PictureSource,
    calls::object,
    conversation::{CallIds, RoleTurn, base64, called_name, turns},
};

/// Returns the body, or the reason why the prompt cannot be sent.
pub(super) fn body(prompt: &Prompt, connection: &ModelConnection) -> Result<Value, ModelError> {
    let most = connection.facts.max_output_tokens.unwrap_or(u64::MAX);
    let mut body = json!({
        "model": connection.model,
        "max_tokens": prompt.max_output_tokens.min(most),
        "stream": true,
        "messages": messages(prompt, &*connection.blobs)?,
    });
    let system = system(prompt);
    if !system.is_empty() {
        body["system"] = system.into();
    }
    if !prompt.tools.is_empty() {
        body["tools"] = prompt.tools.iter().map(|spec| tool(spec)).collect();
        if prompt.must_call {
            body["tool_choice"] = json!({"type": "any"});
        }
    }
    if let Some(schema) = &prompt.output_schema {
        body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
    }
    match prompt.sent_effort() {
        None => {}
        Some(ThinkingEffort::None) => body["thinking"] = json!({"type": "disabled"}),
        Some(effort) => {
            body["thinking"] = json!({"type": "adaptive"});
            body["output_config"]["effort"] = effort.word().into();
        }
    }
    Ok(body)
}

/// Returns the system prompt. The last cacheable part carries the marker: the provider caches
/// everything up to there, the tools included, which it puts before the system prompt.
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
    if let Some(last) = cacheable.iter().rposition(|&cacheable| cacheable)
        && has_markers(prompt)
    {
        mark(&mut blocks[last]);
    }
    blocks
}

/// Whether the server accepts marks for its cache.
fn has_markers(prompt: &Prompt) -> bool {
    !prompt.plainer.contains(&Simplification::FewParameters)
}

/// Marks a block up to and including which the provider caches the prompt.
fn mark(block: &mut Value) {
    block["cache_control"] = json!({"type": "ephemeral"});
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "name": spec.name,
        "description": spec.description,
        "input_schema": spec.told_parameters(),
    })
}

fn messages(prompt: &Prompt, blobs: &dyn PictureSource) -> Result<Vec<Value>, ModelError> {
    let is_own = |block: &Value| {
        matches!(
            block["type"].as_str(),
            Some("thinking" | "redacted_thinking")
        )
    };
    let mut ids = CallIds::new(fits);
    let mut messages = Vec::with_capacity(prompt.messages.len());
    for turn in turns(prompt, is_own)? {
        let mut blocks = blocks(&turn, &mut ids, blobs)?;
        messages.push(match turn.role {
            Role::User => {
                // Stable: only results move, and they keep their order.
                blocks.sort_by_key(|block| block["type"] != "tool_result");
                json!({"role": "user", "content": blocks})
            }
            Role::Assistant => json!({"role": "assistant", "content": blocks}),
        });
    }
    // Only the agent's own conversation grows. Caching others, or a prompt that is new each time,
    // would cost money without benefit.
    let is_conversation = !prompt.tools.is_empty()
        || messages
            .iter()
            .any(|message| message["role"] == "assistant");
    if prompt.purpose == Purpose::Agent && is_conversation && has_markers(prompt) {
        mark_end(&mut messages);
    }
    Ok(messages)
}

/// Marks the last block of the user's last message, so that the next step finds all before it in
/// the cache. The provider refuses a marker on an empty text, and a result may be one.
fn mark_end(messages: &mut [Value]) {
    let last = messages
        .iter_mut()
        .rfind(|message| message["role"] == "user");
    let blocks = last.and_then(|message| message["content"].as_array_mut());
    let is_full = |block: &&mut Value| block["content"].as_str() != Some("");
    if let Some(block) = blocks.and_then(|blocks| blocks.iter_mut().rfind(is_full)) {
        mark(block);
    }
}

/// Whether the provider accepts the id.
fn fits(id: &str) -> bool {
    id.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn blocks(
    turn: &RoleTurn<'_>,
    ids: &mut CallIds,
    blobs: &dyn PictureSource,
) -> Result<Vec<Value>, ModelError> {
    let mut blocks = Vec::with_capacity(turn.parts.len());
    for &part in &turn.parts {
        blocks.push(match part {
            Part::Text(text) => json!({"type": "text", "text": text.text}),
            Part::Image(image) => picture(image, blobs)?,
            Part::ToolResult(result) => json!({
                "type": "tool_result",
                // Without its call the provider refuses the result, whatever the id.
                "tool_use_id": ids.result(&result.call_id).unwrap_or(result.call_id.clone()),
                "content": content(result, blobs)?,
                "is_error": result.is_error,
            }),
            Part::Thinking(block) => block.clone(),
            Part::ToolCall(call) => json!({
                "type": "tool_use",
                "id": ids.call(&call.id),
                "name": called_name(&call.tool),
                "input": object(call),
            }),
        });
    }
    Ok(blocks)
}

/// Returns the text of a result, followed by its pictures.
fn content(result: &ToolResult, blobs: &dyn PictureSource) -> Result<Value, ModelError> {
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

fn picture(image: &Image, blobs: &dyn PictureSource) -> Result<Value, ModelError> {
    Ok(json!({
        "type": "image",
        "source": {
            "type": "base64",
            "media_type": image.media_type,
            "data": base64(image, blobs)?,
        },
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gyrus_contract::{
        BlobId, Message, Origin, Purpose, Repeat, SystemPart, Text, ToolCall, ToolResult,
    };

    use super::*;
    use crate::{ModelFacts, NoBlobs};

    struct Pixel;

    impl PictureSource for Pixel {
        fn load(&self, _id: &BlobId) -> Result<Vec<u8>, String> {
            Ok(b"pixel".to_vec())
        }
    }

    fn connection(blobs: Arc<dyn PictureSource>) -> ModelConnection {
        ModelConnection {
            base_url: "http://host".into(),
            key: None,
            pins: Vec::new(),
            provider: "p".into(),
            model: "m".into(),
            facts: ModelFacts::default(),
            blobs,
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
            must_call: false,
            output_schema: None,
            screen: None,
            effort: None,
            plainer: Default::default(),
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
            repairs: Vec::new(),
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
        let body = body(&prompt, &connection(Arc::new(Pixel))).unwrap();
        let messages: Vec<_> = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(Value::to_string)
            .collect();
        insta::assert_snapshot!(messages.join("\n"), @r#"
{"content":[{"text":"look","type":"text"},{"source":{"data":"cGl4ZWw=","media_type":"image/png","type":"base64"},"type":"image"},{"text":"please","type":"text"}],"role":"user"}
{"content":[{"signature":"s","thinking":"hm","type":"thinking","x":1},{"id":"1","input":{"path":"a"},"name":"read","type":"tool_use"},{"id":"2","input":{"invalid_arguments":"{\"path\": "},"name":"read","type":"tool_use"}],"role":"assistant"}
{"content":[{"content":"A","is_error":false,"tool_use_id":"1","type":"tool_result"},{"content":"no JSON","is_error":true,"tool_use_id":"2","type":"tool_result"},{"cache_control":{"type":"ephemeral"},"text":"by the way","type":"text"}],"role":"user"}
"#);
    }

    #[test]
    fn everything_but_the_conversation_is_sent_too() {
        let part = |text: &str, cacheable| SystemPart {
            text: text.into(),
            cacheable,
            brief: None,
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
            format!("{:#}", body(&prompt, &connection(Arc::new(NoBlobs))).unwrap()), @r#"
{
  "max_tokens": 100,
  "messages": [
    {
      "content": [
        {
          "cache_control": {
            "type": "ephemeral"
          },
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
            let error = body(
                &prompt(vec![(role, vec![part])]),
                &connection(Arc::new(NoBlobs)),
            )
            .unwrap_err();
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
