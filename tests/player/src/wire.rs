//! The wire of a real provider: chat completions, streamed.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

/// A parsed request.
#[derive(Debug, Default)]
pub(crate) struct Request {
    /// The system's messages.
    pub(crate) instructions: String,
    /// All others.
    pub(crate) said: String,
    /// The bytes of its last picture.
    pub(crate) picture: Option<Vec<u8>>,
}

impl Request {
    pub(crate) fn read(body: &Value) -> Self {
        let mut request = Self::default();
        for message in body["messages"].as_array().into_iter().flatten() {
            let is_system = ["system", "developer"]
                .iter()
                .any(|role| message["role"] == *role);
            let into = if is_system {
                &mut request.instructions
            } else {
                &mut request.said
            };
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
}

/// A reply as a stream of events.
pub(crate) fn stream(text: &str, usage: Usage) -> String {
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
    [
        choice(json!({"role": "assistant", "content": text}), Value::Null),
        choice(json!({}), json!("stop")),
        chunk(json!({"usage": counts})),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat()
}

/// The models that there are.
pub(crate) fn models() -> String {
    json!({"object": "list", "data": [{"id": "player", "object": "model"}]}).to_string()
}
