//! The wire of a real provider: chat completions, streamed.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::calls::Said;

/// A parsed request.
#[derive(Debug, Default)]
pub(crate) struct Request {
    /// The system's messages.
    pub(crate) instructions: String,
    /// All others.
    pub(crate) said: String,
    /// The bytes of its last picture.
    pub(crate) picture: Option<Vec<u8>>,
    /// The tools that may be called, as JSON; empty without any.
    pub(crate) tools: String,
    /// Number of calls that stand in it.
    pub(crate) calls: usize,
}

impl Request {
    pub(crate) fn read(body: &Value) -> Self {
        let mut request = Self::default();
        if let Some(tools) = body["tools"].as_array() {
            request.tools = json!(tools).to_string();
        }
        for message in body["messages"].as_array().into_iter().flatten() {
            let is_system = ["system", "developer"]
                .iter()
                .any(|role| message["role"] == *role);
            let into = if is_system {
                &mut request.instructions
            } else {
                &mut request.said
            };
            request.calls += message["tool_calls"].as_array().map_or(0, Vec::len);
            if let Some(text) = message["content"].as_str() {
                into.push_str(text);
                into.push('\n');
            }
            for part in message["content"].as_array().into_iter().flatten() {
                if let Some(text) = part["text"].as_str() {
                    into.push_str(text);
                    into.push('\n');
                }
                let url = part["image_url"]["url"].as_str().unwrap_or_default();
                if let Some((_, data)) = url.split_once(";base64,") {
                    request.picture = STANDARD.decode(data).ok();
                }
            }
        }
        request
    }
}

/// Tokens of a request and its reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) cached: u64,
    pub(crate) fresh: u64,
    pub(crate) output: u64,
    /// Number of calls that stand in the request, which makes the id of the next.
    pub(crate) number: usize,
}

/// A reply as a stream of events.
pub(crate) fn stream(said: &Said, usage: Usage) -> String {
    let chunk = |more: Value| {
        let mut chunk = json!({"id": "played", "object": "chat.completion.chunk", "model": "player", "choices": []});
        for (key, value) in more.as_object().into_iter().flatten() {
            chunk[key] = value.clone();
        }
        format!("data: {chunk}\n\n")
    };
    let choice = |delta: Value, finish: Value| {
        chunk(json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
    };
    let prompt = usage.cached + usage.fresh;
    let counts = json!({
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    });
    let (delta, finish) = match said {
        Said::Words(words) => (json!({"role": "assistant", "content": words}), "stop"),
        Said::Call(tool, arguments) => {
            let function = json!({"name": tool, "arguments": arguments.to_string()});
            let call = json!({"index": 0, "id": format!("call_{}", usage.number), "type": "function", "function": function});
            (
                json!({"role": "assistant", "tool_calls": [call]}),
                "tool_calls",
            )
        }
    };
    [
        choice(delta, Value::Null),
        choice(json!({}), json!(finish)),
        chunk(json!({"usage": counts})),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat()
}

/// The models that there are.
pub(crate) fn models() -> String {
    json!({"object": "list", "data": [{"id": "player", "object": "model"}]}).to_string()
}
