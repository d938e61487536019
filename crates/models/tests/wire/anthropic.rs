//! The Messages protocol, with its provider's checks.

use std::{collections::BTreeSet, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use gyrus_contract::Model;
use gyrus_models::{AnthropicModel, ModelConnection};
use serde_json::{Value, json};

use crate::{
    check::{expect, fields, is_name, list, text},
    dialect::{Dialect, ERROR_WORDS, Refusal, Script},
};

/// The protocol.
pub(crate) struct Messages;

impl Dialect for Messages {
    fn name(&self) -> &'static str {
        "messages"
    }

    fn model(&self, connection: ModelConnection) -> Arc<dyn Model> {
        Arc::new(AnthropicModel::new(connection).unwrap())
    }

    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-api-key", "")
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn check(&self, request: &Value) -> Result<(), String> {
        check(request)
    }

    fn canonical(&self) -> &'static str {
        include_str!("../../src/anthropic/canonical.sse")
    }

    fn returns_thinking(&self) -> bool {
        true
    }

    fn may_end(&self, beginning: &str) -> bool {
        let whole = beginning.rfind("\n\n").map_or("", |end| &beginning[..end]);
        whole.contains("\"stop_reason\":\"tool_use\"")
    }

    fn stream(&self, script: &Script<'_>) -> String {
        let mut usage = json!({"output_tokens": 1, "input_tokens": script.input_tokens});
        drop_nulls(&mut usage);
        let mut events = vec![json!({
            "type": "message_start", "message": {"model": "m-1-2026", "usage": usage},
        })];
        let mut blocks = Vec::new();
        if !script.text.is_empty() {
            let piece = |piece: &&str| json!({"type": "text_delta", "text": piece});
            let pieces: Vec<_> = script.text.iter().map(piece).collect();
            blocks.push((json!({"type": "text", "text": ""}), pieces));
        }
        for call in script.calls {
            let start = json!({"type": "tool_use", "id": call.id, "name": call.tool, "input": {}});
            let delta = json!({"type": "input_json_delta", "partial_json": call.arguments});
            blocks.push((start, vec![delta]));
        }
        for (index, (start, deltas)) in blocks.into_iter().enumerate() {
            events.push(json!({
                "type": "content_block_start", "index": index, "content_block": start,
            }));
            events.extend(deltas.into_iter().map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ));
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        let mut usage = json!({"output_tokens": script.output_tokens});
        drop_nulls(&mut usage);
        let reason = if script.calls.is_empty() {
            "end_turn"
        } else {
            "tool_use"
        };
        let delta = json!({"stop_reason": reason, "stop_sequence": null});
        events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
        events.push(json!({"type": "message_stop"}));
        events.iter().map(event).collect()
    }

    fn error_event(&self) -> String {
        event(&json!({
            "type": "error", "error": {"type": "overloaded_error", "message": ERROR_WORDS},
        }))
    }

    fn refusal(&self, refusal: Refusal, words: &str) -> String {
        let (kind, words) = match refusal {
            Refusal::RateLimited => ("rate_limit_error", words),
            Refusal::Overloaded => ("overloaded_error", words),
            Refusal::ContextTooLong => (
                "invalid_request_error",
                "prompt is too long: 205000 tokens > 200000 maximum",
            ),
            Refusal::BadKey => ("authentication_error", words),
            Refusal::NoMoney => ("billing_error", words),
            Refusal::NoSuchModel => ("not_found_error", words),
        };
        json!({"type": "error", "error": {"type": kind, "message": words}}).to_string()
    }
}

fn drop_nulls(object: &mut Value) {
    let fields = object.as_object_mut().unwrap();
    fields.retain(|_, value| !value.is_null());
}

fn event(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", text(event, "type"))
}

fn check(request: &Value) -> Result<(), String> {
    let known = [
        "model",
        "max_tokens",
        "stream",
        "messages",
        "system",
        "tools",
        "output_config",
    ];
    fields(request, &known[..4], &known[4..])?;
    expect(request["max_tokens"].as_u64() > Some(0), "max_tokens")?;
    expect(request["stream"] == true, "stream")?;
    for part in list(&request["system"]) {
        block(part, "system")?;
    }
    for tool in list(&request["tools"]) {
        fields(
            tool,
            &["name", "input_schema"],
            &["description", "cache_control"],
        )?;
        expect(is_name(text(tool, "name"), 128), "a tool's name")?;
        expect(tool["input_schema"]["type"] == "object", "input_schema")?;
    }
    if let Some(config) = request.get("output_config") {
        fields(config, &["format"], &[])?;
        fields(&config["format"], &["type", "schema"], &[])?;
        expect(config["format"]["type"] == "json_schema", "format.type")?;
    }
    let markers = request.to_string().matches("\"cache_control\"").count();
    expect(markers <= 4, "at most four cache markers")?;
    let goes_on = request.get("tools").is_some() || list(&request["messages"]).len() > 1;
    expect(
        markers > 0 || !goes_on,
        "this conversation should be cached",
    )?;
    messages(list(&request["messages"]))
}

fn messages(messages: &[Value]) -> Result<(), String> {
    expect(!messages.is_empty(), "messages")?;
    let (mut ids, mut open) = (BTreeSet::new(), BTreeSet::new());
    for (number, message) in messages.iter().enumerate() {
        fields(message, &["role", "content"], &[])?;
        let role = ["user", "assistant"][number % 2];
        expect(message["role"] == role, "roles alternate, the user first")?;
        let blocks = list(&message["content"]);
        expect(!blocks.is_empty(), "content")?;
        let mut results_may_follow = true;
        for content in blocks {
            block(content, role)?;
            match text(content, "type") {
                "tool_use" => {
                    let id = text(content, "id");
                    expect(ids.insert(id.to_owned()), "ids of calls are unique")?;
                    open.insert(id.to_owned());
                }
                "tool_result" => {
                    expect(results_may_follow, "results stand first")?;
                    let id = text(content, "tool_use_id");
                    expect(open.remove(id), "a result names a call of the turn before")?;
                }
                _ => results_may_follow = false,
            }
        }
        let last = text(&blocks[blocks.len() - 1], "type");
        let is_unfinished = role == "assistant" && last.ends_with("thinking");
        expect(!is_unfinished, "a turn does not end in thinking")?;
        expect(
            role == "assistant" || open.is_empty(),
            "each call has a result",
        )?;
    }
    Ok(())
}

fn block(block: &Value, place: &str) -> Result<(), String> {
    let cached = &["cache_control"][..];
    if let Some(marker) = block.get("cache_control") {
        expect(*marker == json!({"type": "ephemeral"}), "cache_control")?;
    }
    match (place, text(block, "type")) {
        (_, "text") => {
            fields(block, &["type", "text"], cached)?;
            expect(
                !text(block, "text").trim().is_empty(),
                "text without a word",
            )
        }
        ("user" | "result", "image") => {
            fields(block, &["type", "source"], cached)?;
            let source = &block["source"];
            fields(source, &["type", "media_type", "data"], &[])?;
            expect(source["type"] == "base64", "source.type")?;
            expect(text(source, "media_type") == "image/png", "media_type")?;
            let data = STANDARD.decode(text(source, "data"));
            expect(data.is_ok_and(|data| !data.is_empty()), "data is base64")
        }
        ("user", "tool_result") => {
            fields(
                block,
                &["type", "tool_use_id"],
                &["content", "is_error", "cache_control"],
            )?;
            let is_empty = block["content"] == "";
            expect(
                !is_empty || block.get("cache_control").is_none(),
                "an empty text is marked",
            )?;
            for part in list(&block["content"]) {
                self::block(part, "result")?;
            }
            Ok(())
        }
        ("assistant", "tool_use") => {
            fields(block, &["type", "id", "name", "input"], cached)?;
            expect(is_name(text(block, "id"), 256), "the id of a call")?;
            expect(is_name(text(block, "name"), 128), "the name of a call")?;
            expect(block["input"].is_object(), "input")
        }
        ("assistant", "thinking") => {
            fields(block, &["type", "thinking", "signature"], &[])?;
            let is_its_own = text(block, "thinking") == "The notes come first."
                && text(block, "signature") == "c2lnbmVk";
            expect(is_its_own, "thinking comes back as it was")
        }
        (place, kind) => Err(format!("a block `{kind}` in `{place}`")),
    }
}
