//! The Chat Completions protocol, with its provider's checks.

use std::{collections::BTreeSet, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use gyrus_contract::Model;
use gyrus_models::{ChatModel, ModelConnection};
use serde_json::{Value, json};

use crate::{
    check::{expect, fields, is_name, list, text},
    dialect::{Dialect, ERROR_WORDS, Refusal, Script},
};

/// The protocol.
pub(crate) struct Chat;

impl Dialect for Chat {
    fn name(&self) -> &'static str {
        "chat"
    }

    fn model(&self, connection: ModelConnection) -> Arc<dyn Model> {
        Arc::new(ChatModel::new(connection).unwrap())
    }

    fn base_path(&self) -> &'static str {
        "/v1"
    }

    fn path(&self) -> &'static str {
        "/v1/chat/completions"
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    fn check(&self, request: &Value) -> Result<(), String> {
        check(request)
    }

    fn canonical(&self) -> &'static str {
        include_str!("../../src/openai/chat/canonical.sse")
    }

    fn returns_thinking(&self) -> bool {
        false
    }

    /// Compatible servers may close without `[DONE]`.
    fn may_end(&self, beginning: &str) -> bool {
        let whole = beginning.rfind("\n\n").map_or("", |end| &beginning[..end]);
        whole.contains("\"finish_reason\":\"tool_calls\"")
    }

    fn stream(&self, script: &Script<'_>) -> String {
        let delta = |delta: Value| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
            json!({"model": "m-1-2026", "choices": [choice], "usage": null})
        };
        let mut chunks = vec![delta(json!({"role": "assistant", "content": ""}))];
        chunks.extend(
            script
                .text
                .iter()
                .map(|piece| delta(json!({"content": piece}))),
        );
        for (index, call) in script.calls.iter().enumerate() {
            let function = json!({"name": call.tool, "arguments": ""});
            let begin = json!({
                "index": index, "id": call.id, "type": "function", "function": function,
            });
            let more = json!({"index": index, "function": {"arguments": call.arguments}});
            chunks.push(delta(json!({"tool_calls": [begin]})));
            chunks.push(delta(json!({"tool_calls": [more]})));
        }
        let reason = if script.calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        };
        let end = json!({"index": 0, "delta": {}, "finish_reason": reason});
        chunks.push(json!({"model": "m-1-2026", "choices": [end]}));
        let usage = json!({
            "prompt_tokens": script.input_tokens, "completion_tokens": script.output_tokens,
        });
        chunks.push(json!({"model": "m-1-2026", "choices": [], "usage": usage}));
        let lines = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
        lines.collect::<String>() + "data: [DONE]\n\n"
    }

    fn error_event(&self) -> String {
        let error = json!({"error": {
            "message": ERROR_WORDS, "type": "server_error", "param": null, "code": null,
        }});
        format!("data: {error}\n\n")
    }

    fn no_money_status(&self) -> u16 {
        429
    }

    fn refusal(&self, refusal: Refusal, words: &str) -> String {
        self::refusal(refusal, words)
    }
}

/// Returns the body of a refusal, which both protocols of the provider share.
pub(crate) fn refusal(refusal: Refusal, words: &str) -> String {
    let (kind, code) = match refusal {
        Refusal::RateLimited => ("requests", "rate_limit_exceeded"),
        Refusal::Overloaded => ("server_error", "server_error"),
        Refusal::ContextTooLong => ("invalid_request_error", "context_length_exceeded"),
        Refusal::BadKey => ("invalid_request_error", "invalid_api_key"),
        Refusal::NoMoney => ("insufficient_quota", "insufficient_quota"),
        Refusal::NoSuchModel => ("invalid_request_error", "model_not_found"),
    };
    json!({"error": {"message": words, "type": kind, "param": null, "code": code}}).to_string()
}

fn check(request: &Value) -> Result<(), String> {
    let required = [
        "model",
        "messages",
        "stream",
        "stream_options",
        "max_tokens",
    ];
    fields(request, &required, &["tools", "response_format"])?;
    expect(request["stream"] == true, "stream")?;
    expect(
        request["stream_options"] == json!({"include_usage": true}),
        "stream_options",
    )?;
    expect(request["max_tokens"].as_u64() > Some(0), "max_tokens")?;
    for tool in list(&request["tools"]) {
        fields(tool, &["type", "function"], &[])?;
        expect(tool["type"] == "function", "tools.type")?;
        fields(
            &tool["function"],
            &["name"],
            &["description", "parameters", "strict"],
        )?;
        expect(
            is_name(text(&tool["function"], "name"), 64),
            "a tool's name",
        )?;
    }
    if let Some(format) = request.get("response_format") {
        fields(format, &["type", "json_schema"], &[])?;
        expect(format["type"] == "json_schema", "response_format.type")?;
        fields(
            &format["json_schema"],
            &["name", "schema"],
            &["strict", "description"],
        )?;
        expect(
            is_name(text(&format["json_schema"], "name"), 64),
            "json_schema.name",
        )?;
    }
    messages(list(&request["messages"]))
}

fn messages(messages: &[Value]) -> Result<(), String> {
    let said = messages
        .iter()
        .filter(|message| message["role"] != "system");
    expect(said.count() > 0, "messages")?;
    let (mut ids, mut open) = (BTreeSet::new(), BTreeSet::new());
    for (number, message) in messages.iter().enumerate() {
        let role = text(message, "role");
        expect(
            role == "tool" || open.is_empty(),
            "results follow their calls",
        )?;
        match role {
            "system" => {
                fields(message, &["role", "content"], &[])?;
                expect(
                    number == 0 && !text(message, "content").is_empty(),
                    "system",
                )?;
            }
            "user" => {
                fields(message, &["role", "content"], &[])?;
                content(&message["content"])?;
            }
            "assistant" => {
                fields(message, &["role", "content"], &["tool_calls"])?;
                let calls = list(&message["tool_calls"]);
                expect(
                    !text(message, "content").is_empty() || !calls.is_empty(),
                    "content",
                )?;
                for call in calls {
                    let id = self::call(call)?;
                    expect(ids.insert(id.to_owned()), "ids of calls are unique")?;
                    open.insert(id.to_owned());
                }
            }
            "tool" => {
                fields(message, &["role", "content", "tool_call_id"], &[])?;
                expect(message["content"].is_string(), "a result is a text")?;
                expect(
                    open.remove(text(message, "tool_call_id")),
                    "a result names a call",
                )?;
            }
            other => return Err(format!("the role `{other}`")),
        }
    }
    expect(open.is_empty(), "each call has a result")
}

fn call(call: &Value) -> Result<&str, String> {
    fields(call, &["id", "type", "function"], &[])?;
    fields(&call["function"], &["name", "arguments"], &[])?;
    expect(call["type"] == "function", "tool_calls.type")?;
    expect(
        is_name(text(&call["function"], "name"), 64),
        "the name of a call",
    )?;
    let arguments = serde_json::from_str::<Value>(text(&call["function"], "arguments"));
    expect(
        arguments.is_ok_and(|value| value.is_object()),
        "arguments are an object's text",
    )?;
    let id = text(call, "id");
    expect(!id.is_empty() && id.len() <= 40, "the id of a call")?;
    Ok(id)
}

fn content(content: &Value) -> Result<(), String> {
    if let Some(text) = content.as_str() {
        return expect(!text.trim().is_empty(), "content");
    }
    expect(!list(content).is_empty(), "content")?;
    for part in list(content) {
        match text(part, "type") {
            "text" => fields(part, &["type", "text"], &[])?,
            "image_url" => {
                fields(part, &["type", "image_url"], &[])?;
                fields(&part["image_url"], &["url"], &["detail"])?;
                picture(text(&part["image_url"], "url"))?;
            }
            other => return Err(format!("a part `{other}`")),
        }
    }
    Ok(())
}

/// Checks a picture in a data URL.
pub(crate) fn picture(url: &str) -> Result<(), String> {
    let data = url.strip_prefix("data:image/png;base64,");
    let data = data.and_then(|data| STANDARD.decode(data).ok());
    expect(
        data.is_some_and(|data| !data.is_empty()),
        "a picture in a data URL",
    )
}
