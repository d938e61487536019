//! Ollama's own protocol, with stricter checks than its server's, which accepts invalid requests
//! and does something else than was meant.

use std::{collections::BTreeSet, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use gyrus_contract::Model;
use gyrus_models::{ModelConnection, OllamaModel};
use serde_json::{Value, json};

use crate::{
    check::{expect, fields, is_name, list, text},
    dialect::{Dialect, ERROR_WORDS, Refusal, Script},
};

/// The protocol.
pub(crate) struct Ollama;

impl Dialect for Ollama {
    fn name(&self) -> &'static str {
        "ollama"
    }

    fn model(&self, connection: ModelConnection) -> Arc<dyn Model> {
        Arc::new(OllamaModel::new(connection).expect("a good connection"))
    }

    fn path(&self) -> &'static str {
        "/api/chat"
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    fn check(&self, request: &Value) -> Result<(), String> {
        check(request)
    }

    fn content_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn canonical(&self) -> &'static str {
        include_str!("../../src/ollama/canonical.ndjson")
    }

    fn returns_thinking(&self) -> bool {
        false
    }

    fn may_end(&self, beginning: &str) -> bool {
        beginning.contains("\"done\":true") && beginning.ends_with('}')
    }

    fn event_end(&self) -> &'static str {
        "\n"
    }

    fn keep_alive(&self) -> Option<&'static str> {
        Some("\n")
    }

    fn arguments_are_text(&self) -> bool {
        false
    }

    fn cached_tokens(&self) -> u64 {
        0
    }

    fn stream(&self, script: &Script<'_>) -> String {
        let line = |message: Value| json!({"model": "m-1-2026", "message": message, "done": false});
        let says = |piece: &&str| line(json!({"role": "assistant", "content": piece}));
        let mut lines: Vec<_> = script.text.iter().map(says).collect();
        for call in script.calls {
            let arguments: Value = serde_json::from_str(call.arguments).expect("scripted JSON");
            let function = json!({"name": call.tool, "arguments": arguments});
            let calls = json!([{"id": call.id, "function": function}]);
            lines.push(line(
                json!({"role": "assistant", "content": "", "tool_calls": calls}),
            ));
        }
        let mut last = line(json!({"role": "assistant", "content": ""}));
        last["done"] = true.into();
        last["done_reason"] = "stop".into();
        for (name, count) in [
            ("prompt_eval_count", &script.input_tokens),
            ("eval_count", &script.output_tokens),
        ] {
            if !count.is_null() {
                last[name] = count.clone();
            }
        }
        lines.push(last);
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn error_event(&self) -> String {
        format!("{}\n", json!({"error": ERROR_WORDS}))
    }

    fn refusal(&self, refusal: Refusal, words: &str) -> String {
        let words = match refusal {
            Refusal::ContextTooLong => {
                "the prompt is longer than the context length currently available to the model"
            }
            Refusal::RateLimited
            | Refusal::Overloaded
            | Refusal::BadKey
            | Refusal::NoMoney
            | Refusal::NoSuchModel => words,
        };
        json!({"error": words}).to_string()
    }
}

fn check(request: &Value) -> Result<(), String> {
    let required = [
        "model",
        "messages",
        "stream",
        "options",
        "truncate",
        "shift",
        "keep_alive",
    ];
    fields(request, &required, &["tools", "format"])?;
    expect(request["stream"] == true, "stream")?;
    expect(
        request["truncate"] == false && request["shift"] == false,
        "nothing is cut",
    )?;
    let options = &request["options"];
    fields(options, &["num_ctx", "num_predict"], &[])?;
    expect(
        options["num_ctx"] == 100_000,
        "the window that is configured",
    )?;
    expect(options["num_predict"].as_u64() > Some(0), "num_predict")?;
    for tool in list(&request["tools"]) {
        fields(tool, &["type", "function"], &[])?;
        expect(tool["type"] == "function", "tools.type")?;
        fields(
            &tool["function"],
            &["name", "description", "parameters"],
            &[],
        )?;
        expect(
            is_name(text(&tool["function"], "name"), 64),
            "a tool's name",
        )?;
        expect(
            tool["function"]["parameters"]["type"] == "object",
            "parameters",
        )?;
    }
    if let Some(format) = request.get("format") {
        expect(format["type"] == "object", "format")?;
    }
    messages(list(&request["messages"]))
}

fn messages(messages: &[Value]) -> Result<(), String> {
    let mut before = "";
    let (mut ids, mut open) = (BTreeSet::new(), BTreeSet::new());
    for (number, message) in messages.iter().enumerate() {
        let role = text(message, "role");
        expect(message["content"].is_string(), "content is a text")?;
        expect(
            role == "tool" || open.is_empty(),
            "results follow their calls",
        )?;
        expect(role == "tool" || role != before, "roles alternate")?;
        let words = text(message, "content");
        match role {
            "system" => {
                fields(message, &["role", "content"], &[])?;
                expect(number == 0 && !words.is_empty(), "system")?;
            }
            "user" => {
                fields(message, &["role", "content"], &["images"])?;
                expect(!words.is_empty(), "the user says something")?;
                for image in list(&message["images"]) {
                    let data = STANDARD.decode(image.as_str().unwrap_or_default());
                    expect(data.is_ok_and(|data| !data.is_empty()), "images are base64")?;
                }
            }
            "assistant" => {
                fields(message, &["role", "content"], &["tool_calls"])?;
                let calls = list(&message["tool_calls"]);
                expect(
                    !words.is_empty() || !calls.is_empty(),
                    "the model says something",
                )?;
                for call in calls {
                    fields(call, &["id", "function"], &[])?;
                    fields(&call["function"], &["name", "arguments"], &[])?;
                    expect(call["function"]["arguments"].is_object(), "arguments")?;
                    let (id, name) = (text(call, "id"), text(&call["function"], "name"));
                    expect(is_name(name, 64), "the name of a call")?;
                    expect(ids.insert(id), "ids of calls are unique")?;
                    open.insert((id, name));
                }
            }
            "tool" => {
                fields(
                    message,
                    &["role", "content", "tool_name", "tool_call_id"],
                    &[],
                )?;
                let call = (text(message, "tool_call_id"), text(message, "tool_name"));
                expect(open.remove(&call), "a result names its call")?;
            }
            other => return Err(format!("the role `{other}`")),
        }
        before = role;
    }
    let has_the_last_word = matches!(before, "user" | "tool");
    expect(
        open.is_empty() && has_the_last_word,
        "each call has a result",
    )
}
