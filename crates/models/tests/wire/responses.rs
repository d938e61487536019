//! The Responses protocol, with its provider's checks.

use std::{collections::BTreeSet, sync::Arc};

use gyrus_contract::Model;
use gyrus_models::{ModelConnection, ResponsesModel};
use serde_json::{Value, json};

use crate::{
    chat::{picture, refusal},
    check::{expect, fields, is_name, list, text},
    dialect::{Dialect, ERROR_WORDS, Refusal, Script},
    prompts::{client, plain_prompt, streamed},
    server::{Answer, Server},
};

/// The protocol.
pub(crate) struct Responses;

impl Dialect for Responses {
    fn name(&self) -> &'static str {
        "responses"
    }

    fn model(&self, connection: ModelConnection) -> Arc<dyn Model> {
        Arc::new(ResponsesModel::new(connection).unwrap())
    }

    fn base_path(&self) -> &'static str {
        "/v1"
    }

    fn path(&self) -> &'static str {
        "/v1/responses"
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    fn check(&self, request: &Value) -> Result<(), String> {
        check(request)
    }

    fn canonical(&self) -> &'static str {
        include_str!("../../src/openai/responses/canonical.sse")
    }

    fn returns_thinking(&self) -> bool {
        true
    }

    fn stream(&self, script: &Script<'_>) -> String {
        let added = |index: usize, item: &Value| json!({"type": "response.output_item.added", "output_index": index, "item": item});
        let mut events = vec![json!({"type": "response.created", "response": {"output": []}})];
        let mut items = Vec::new();
        if !script.text.is_empty() {
            events.push(added(0, &json!({"type": "message", "content": []})));
            events.extend(script.text.iter().map(|piece| {
                json!({"type": "response.output_text.delta", "output_index": 0, "delta": piece})
            }));
            let content = json!({"type": "output_text", "text": script.text.concat()});
            items.push(json!({"type": "message", "role": "assistant", "content": [content]}));
        }
        for call in script.calls {
            items.push(json!({
                "type": "function_call", "id": "fc", "call_id": call.id, "name": call.tool,
                "arguments": call.arguments, "status": "completed",
            }));
        }
        for (index, item) in items.iter().enumerate() {
            if item["type"] == "function_call" {
                events.push(added(index, item));
            }
            events.push(json!({
                "type": "response.output_item.done", "output_index": index, "item": item,
            }));
        }
        let usage = json!({
            "input_tokens": script.input_tokens, "output_tokens": script.output_tokens,
        });
        let response = json!({"model": "m-1-2026", "output": items, "usage": usage});
        events.push(json!({"type": "response.completed", "response": response}));
        events.iter().map(event).collect()
    }

    fn error_event(&self) -> String {
        event(&json!({"type": "response.failed", "response": {
            "status": "failed", "error": {"code": "server_error", "message": ERROR_WORDS},
        }}))
    }

    fn no_money_status(&self) -> u16 {
        429
    }

    fn refusal(&self, refused: Refusal, words: &str) -> String {
        refusal(refused, words)
    }
}

fn event(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", text(event, "type"))
}

fn check(request: &Value) -> Result<(), String> {
    let required = [
        "model",
        "input",
        "stream",
        "store",
        "include",
        "max_output_tokens",
    ];
    fields(request, &required, &["instructions", "tools", "text"])?;
    expect(
        request["stream"] == true && request["store"] == false,
        "stream, store",
    )?;
    expect(
        request["include"] == json!(["reasoning.encrypted_content"]),
        "include",
    )?;
    expect(
        request["max_output_tokens"].as_u64() >= Some(16),
        "max_output_tokens",
    )?;
    for tool in list(&request["tools"]) {
        fields(
            tool,
            &["type", "name", "parameters", "strict"],
            &["description"],
        )?;
        expect(
            tool["type"] == "function" && tool["strict"] == false,
            "tools.type, strict",
        )?;
        expect(is_name(text(tool, "name"), 64), "a tool's name")?;
    }
    if let Some(config) = request.get("text") {
        fields(config, &["format"], &[])?;
        fields(&config["format"], &["type", "name", "schema"], &["strict"])?;
        expect(config["format"]["type"] == "json_schema", "format.type")?;
    }
    items(list(&request["input"]))
}

fn items(items: &[Value]) -> Result<(), String> {
    expect(!items.is_empty(), "input")?;
    let (mut ids, mut open) = (BTreeSet::new(), BTreeSet::new());
    let mut after_reasoning = false;
    for item in items {
        let kind = text(item, "type");
        let is_the_models = kind == "function_call" || item["role"] == "assistant";
        expect(
            !after_reasoning || is_the_models,
            "reasoning leads to something",
        )?;
        after_reasoning = kind == "reasoning";
        match kind {
            "message" => message(item)?,
            "function_call" => {
                fields(
                    item,
                    &["type", "call_id", "name", "arguments"],
                    &["id", "status"],
                )?;
                expect(is_name(text(item, "name"), 64), "the name of a call")?;
                expect(item["arguments"].is_string(), "arguments are a text")?;
                let id = text(item, "call_id").to_owned();
                expect(!id.is_empty() && id.len() <= 64, "the id of a call")?;
                expect(ids.insert(id.clone()), "ids of calls are unique")?;
                open.insert(id);
            }
            "function_call_output" => {
                fields(item, &["type", "call_id", "output"], &[])?;
                expect(open.remove(text(item, "call_id")), "an output names a call")?;
                if !item["output"].is_string() {
                    contents(&item["output"], "input_text")?
                }
            }
            "reasoning" => {
                fields(item, &["type", "id", "summary", "encrypted_content"], &[])?;
                let is_its_own = text(item, "encrypted_content") == "gAAAAABn-c2lnbmVk";
                expect(is_its_own, "reasoning comes back as it was")?;
            }
            other => return Err(format!("an item `{other}`")),
        }
    }
    expect(!after_reasoning, "reasoning leads to something")?;
    expect(open.is_empty(), "each call has an output")
}

fn message(item: &Value) -> Result<(), String> {
    fields(item, &["type", "role", "content"], &["id", "status"])?;
    match text(item, "role") {
        "user" => contents(&item["content"], "input_text"),
        "assistant" => contents(&item["content"], "output_text"),
        other => Err(format!("the role `{other}`")),
    }
}

fn contents(content: &Value, word: &str) -> Result<(), String> {
    expect(!list(content).is_empty(), "content")?;
    for part in list(content) {
        match text(part, "type") {
            "input_image" if word == "input_text" => {
                fields(part, &["type", "image_url"], &["detail"])?;
                picture(text(part, "image_url"))?;
            }
            kind if kind == word => {
                fields(part, &["type", "text"], &[])?;
                expect(part["text"].is_string(), "text")?;
            }
            other => return Err(format!("a part `{other}`")),
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_model_that_does_not_reason_is_asked_without_it() {
    let dialect = &Responses;
    let words = "Encrypted content is not supported with this model.";
    let refused = refusal(Refusal::NoSuchModel, words);
    let server = Server::start(vec![
        Answer::new(400, "application/json", refused),
        streamed(dialect, dialect.canonical()),
        streamed(dialect, dialect.canonical()),
    ])
    .await;
    let model = client(dialect, &server.url);
    for _ in 0..2 {
        model.reply(&plain_prompt(), &mut |_| {}).await.unwrap();
    }
    let asked = server.asked();
    let includes: Vec<_> = asked
        .iter()
        .map(|asked| asked.body.get("include"))
        .collect();
    assert_eq!(
        includes,
        [Some(&json!(["reasoning.encrypted_content"])), None, None]
    );
}
