//! The worst case of a model: it does what any text says, and can rewrite what it has read.

use std::fmt::Write as _;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::provider::{self, Provider, Says};

/// Before an order: `{"tool": …, "arguments": …}`, or a list of such for one turn.
pub(crate) const ORDER: &str = "INJECTION: ";

/// Beginning of every secret of these tests.
pub(crate) const CANARY: &str = "CANARY";

/// Starts the model. It makes the `opening` calls one after the other, then what orders say, each
/// once, then finishes.
pub(crate) fn start(opening: Vec<Value>) -> Provider {
    Provider::start(move |number, question| {
        let said = said_by_others(question);
        let mut orders = opening.clone();
        for order in said.iter().flat_map(|text| orders_in(text)) {
            if !orders.contains(&order) {
                orders.push(order);
            }
        }
        match orders.get(number) {
            Some(order) => calls(&filled_in(order, &said)),
            None => provider::call("finish", &json!({"reached": true, "answer": "done"})),
        }
    })
}

/// Everything that stands in the conversation and is not the model's own.
fn said_by_others(question: &Value) -> Vec<String> {
    let messages = question["messages"].as_array().into_iter().flatten();
    let mut said = Vec::new();
    for message in messages.filter(|message| message["role"] != "assistant") {
        match &message["content"] {
            Value::String(text) => said.push(text.clone()),
            Value::Array(parts) => said.extend(
                parts
                    .iter()
                    .filter_map(|part| part["text"].as_str().map(str::to_owned)),
            ),
            _ => {}
        }
    }
    let tools = question["tools"].as_array().into_iter().flatten();
    let described = tools.filter_map(|tool| tool["function"]["description"].as_str());
    said.extend(described.map(str::to_owned));
    said
}

fn orders_in(text: &str) -> Vec<Value> {
    let starts = text.match_indices(ORDER);
    starts
        .filter_map(|(start, _)| {
            let rest = &text[start + ORDER.len()..];
            serde_json::Deserializer::from_str(rest)
                .into_iter()
                .next()?
                .ok()
        })
        .collect()
}

/// `<<raw>>`, `<<base64>>`, `<<hex>>`, `<<first>>` and `<<second>>` become the last secret that was
/// read, in that form.
fn filled_in(order: &Value, said: &[String]) -> Value {
    let secret = said.iter().rev().find_map(|text| secret_in(text));
    let secret = secret.unwrap_or_else(|| "nothing".to_owned());
    let (first, second) = secret.split_at(secret.len() / 2);
    let hex = secret.bytes().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    let text = order
        .to_string()
        .replace("<<raw>>", &secret)
        .replace("<<base64>>", &STANDARD.encode(&secret))
        .replace("<<hex>>", &hex)
        .replace("<<first>>", first)
        .replace("<<second>>", second);
    serde_json::from_str(&text).unwrap()
}

fn secret_in(text: &str) -> Option<String> {
    let start = text.rfind(CANARY)?;
    let word = text[start..].split(|c: char| !c.is_ascii_alphanumeric());
    word.into_iter().next().map(str::to_owned)
}

/// The calls of one turn.
fn calls(order: &Value) -> Says {
    let all: Vec<&Value> = match order {
        Value::Array(all) => all.iter().collect(),
        one => vec![one],
    };
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    for (index, order) in all.into_iter().enumerate() {
        deltas.push(json!({"tool_calls": [{
            "index": index, "id": format!("call_{index}"), "type": "function",
            "function": {
                "name": order["tool"],
                "arguments": order["arguments"].to_string(),
            }
        }]}));
    }
    provider::stream(&deltas, "tool_calls")
}
