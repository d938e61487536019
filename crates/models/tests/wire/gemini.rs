//! The Gemini API, with its provider's checks.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use gyrus_contract::Model;
use gyrus_models::{GeminiModel, ModelConnection};
use serde_json::{Value, json};

use crate::{
    check::{expect, fields, is_name, list, text},
    dialect::{Dialect, ERROR_WORDS, Refusal, Script},
};

/// The protocol.
pub(crate) struct Gemini;

impl Dialect for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn model(&self, connection: ModelConnection) -> Arc<dyn Model> {
        Arc::new(GeminiModel::new(connection).expect("a good connection"))
    }

    fn path(&self) -> &'static str {
        "/v1beta/models/m:streamGenerateContent?alt=sse"
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-goog-api-key", "")
    }

    fn check(&self, request: &Value) -> Result<(), String> {
        check(request)
    }

    fn canonical(&self) -> &'static str {
        include_str!("../../src/gemini/canonical.sse")
    }

    fn returns_thinking(&self) -> bool {
        true
    }

    fn arguments_are_text(&self) -> bool {
        false
    }

    fn stream(&self, script: &Script<'_>) -> String {
        let chunk = |part: Value| {
            let content = json!({"parts": [part], "role": "model"});
            json!({"candidates": [{"content": content, "index": 0}], "modelVersion": "m-1-2026"})
        };
        let mut chunks: Vec<_> = script
            .text
            .iter()
            .map(|piece| chunk(json!({"text": piece})))
            .collect();
        for call in script.calls {
            let args: Value = serde_json::from_str(call.arguments).expect("scripted JSON");
            let call = json!({"id": call.id, "name": call.tool, "args": args});
            chunks.push(chunk(json!({"functionCall": call})));
        }
        let mut usage = json!({
            "promptTokenCount": script.input_tokens, "candidatesTokenCount": script.output_tokens,
        });
        usage
            .as_object_mut()
            .expect("an object")
            .retain(|_, count| !count.is_null());
        chunks.push(json!({
            "candidates": [{"finishReason": "STOP", "index": 0}],
            "usageMetadata": usage, "modelVersion": "m-1-2026",
        }));
        chunks
            .iter()
            .map(|chunk| format!("data: {chunk}\n\n"))
            .collect()
    }

    fn error_event(&self) -> String {
        let error = json!({"code": 503, "message": ERROR_WORDS, "status": "UNAVAILABLE"});
        format!("data: {}\n\n", json!({"error": error}))
    }

    fn no_money_status(&self) -> u16 {
        429
    }

    fn refusal(&self, refusal: Refusal, words: &str) -> String {
        let no_money = format!("{words}, limit: 0");
        let too_long = "The input token count (205000) exceeds the maximum number of tokens \
                        allowed (200000).";
        let (code, status, words) = match refusal {
            Refusal::RateLimited => (429, "RESOURCE_EXHAUSTED", words),
            Refusal::Overloaded => (503, "UNAVAILABLE", words),
            Refusal::ContextTooLong => (400, "INVALID_ARGUMENT", too_long),
            Refusal::BadKey => (401, "UNAUTHENTICATED", words),
            Refusal::NoMoney => (429, "RESOURCE_EXHAUSTED", &*no_money),
            Refusal::NoSuchModel => (404, "NOT_FOUND", words),
        };
        let error = json!({"code": code, "message": words, "status": status});
        json!({"error": error}).to_string()
    }
}

fn check(request: &Value) -> Result<(), String> {
    let known = ["contents", "generationConfig", "systemInstruction", "tools"];
    fields(request, &known[..2], &known[2..])?;
    let config = &request["generationConfig"];
    let schema = ["responseMimeType", "responseJsonSchema"];
    fields(config, &["maxOutputTokens"], &schema)?;
    expect(
        config["maxOutputTokens"].as_u64() > Some(0),
        "maxOutputTokens",
    )?;
    if let Some(wanted) = config.get("responseJsonSchema") {
        expect(
            config["responseMimeType"] == "application/json",
            "responseMimeType",
        )?;
        expect(wanted["type"] == "object", "responseJsonSchema")?;
    }
    if let Some(system) = request.get("systemInstruction") {
        fields(system, &["parts"], &[])?;
        for part in list(&system["parts"]) {
            fields(part, &["text"], &[])?;
            expect(!text(part, "text").trim().is_empty(), "system")?;
        }
    }
    for tools in list(&request["tools"]) {
        fields(tools, &["functionDeclarations"], &[])?;
        for tool in list(&tools["functionDeclarations"]) {
            fields(tool, &["name", "description", "parametersJsonSchema"], &[])?;
            expect(is_name(text(tool, "name"), 64), "a tool's name")?;
        }
    }
    contents(list(&request["contents"]))
}

fn contents(contents: &[Value]) -> Result<(), String> {
    expect(contents.len() % 2 == 1, "the user has the last word")?;
    let mut open: Vec<(&str, &str)> = Vec::new();
    for (number, content) in contents.iter().enumerate() {
        fields(content, &["role", "parts"], &[])?;
        let role = ["user", "model"][number % 2];
        expect(content["role"] == role, "roles alternate, the user first")?;
        let parts = list(&content["parts"]);
        expect(!parts.is_empty(), "parts")?;
        if role == "model" {
            open = calls(parts)?;
            continue;
        }
        let (results, others) = parts.split_at(open.len().min(parts.len()));
        expect(results.len() == open.len(), "as many results as calls")?;
        for (result, (id, name)) in results.iter().zip(open.drain(..)) {
            fields(result, &["functionResponse"], &[])?;
            let result = &result["functionResponse"];
            fields(result, &["id", "name", "response"], &["parts"])?;
            expect(
                result["id"] == id && result["name"] == name,
                "results match their calls",
            )?;
            fields(&result["response"], &[], &["output", "error"])?;
            for part in list(&result["parts"]) {
                picture(part)?;
            }
        }
        for part in others {
            match part.get("text") {
                Some(words) => {
                    fields(part, &["text"], &[])?;
                    expect(
                        words.as_str().is_some_and(|words| !words.trim().is_empty()),
                        "text",
                    )?;
                }
                None => picture(part)?,
            }
        }
    }
    Ok(())
}

/// Checks a turn of the model, and returns the ids and names of its calls.
fn calls(parts: &[Value]) -> Result<Vec<(&str, &str)>, String> {
    let mut calls = Vec::new();
    for part in parts {
        let signature = part.get("thoughtSignature").and_then(Value::as_str);
        let Some(call) = part.get("functionCall") else {
            fields(part, &["text"], &["thought", "thoughtSignature"])?;
            let is_its_own = match text(part, "text") {
                "come first." => part["thought"] == true && signature == Some("dGhvdWdodA=="),
                "look 🦀" => part.get("thought").is_none() && signature == Some("dGV4dA=="),
                _ => part.get("thought").is_none() && signature.is_none(),
            };
            expect(is_its_own, "each signature on its own part")?;
            continue;
        };
        fields(part, &["functionCall"], &["thoughtSignature"])?;
        fields(call, &["id", "name", "args"], &[])?;
        expect(call["args"].is_object(), "args")?;
        let (id, name) = (text(call, "id"), text(call, "name"));
        expect(is_name(name, 64), "the name of a call")?;
        let is_its_own = match (name, calls.is_empty()) {
            ("read", true) => signature == Some("Y2FsbA=="),
            (_, true) => signature == Some("skip_thought_signature_validator"),
            (_, false) => signature.is_none(),
        };
        expect(
            is_its_own,
            "the first call is signed, with its own signature",
        )?;
        calls.push((id, name));
    }
    Ok(calls)
}

fn picture(part: &Value) -> Result<(), String> {
    fields(part, &["inlineData"], &[])?;
    fields(&part["inlineData"], &["mimeType", "data"], &[])?;
    expect(
        text(&part["inlineData"], "mimeType") == "image/png",
        "mimeType",
    )?;
    let data = STANDARD.decode(text(&part["inlineData"], "data"));
    expect(data.is_ok_and(|data| !data.is_empty()), "data is base64")
}
