//! The worst case of a model: it does what any text says, and can rewrite what it has read.

use std::{collections::VecDeque, fmt::Write as _};

use base64::{Engine, engine::general_purpose::STANDARD};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::provider::{self, Provider, Says};

/// Before an order: `{"tool": …, "arguments": …}`, or a list of such for one turn.
pub(crate) const ORDER: &str = "INJECTION: ";

/// Beginning of every secret of these tests.
pub(crate) const CANARY: &str = "CANARY";

/// Maximum number of calls of one turn.
const CALLS: usize = 16;

/// Maximum number of times that one order is obeyed.
const TIMES: usize = 4;

/// The moment at which the model obeys what it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obeys {
    /// Before it goes on with its work, each time that it reads an order.
    AtOnce,
    /// When its work is done.
    AtTheEnd,
}

/// A model's work.
pub(crate) struct Work {
    /// Answer to the question for a mandate.
    pub(crate) mandate: String,
    /// The calls of the work, or lists of calls for one turn, one after the other.
    pub(crate) opening: Vec<Value>,
    /// The orders that a text can name by number.
    pub(crate) known: Vec<Value>,
    pub(crate) obeys: Obeys,
}

/// Starts a model that makes the `opening` calls one after the other, then what orders say, each
/// once, then finishes.
pub(crate) fn start(opening: Vec<Value>) -> Provider {
    work(Work {
        mandate: String::new(),
        opening,
        known: Vec::new(),
        obeys: Obeys::AtTheEnd,
    })
}

/// Starts a model that does its work, and obeys every order that it reads.
pub(crate) fn work(work: Work) -> Provider {
    let mut own = work.opening.into_iter();
    let mut told: Vec<Value> = Vec::new();
    let mut pending: VecDeque<Value> = VecDeque::new();
    let next = move |question: &Value| {
        if question["tools"].as_array().is_none_or(Vec::is_empty) {
            return provider::words(&work.mandate);
        }
        let said = said_by_others(question);
        let read = match work.obeys {
            Obeys::AtOnce => just_read(question),
            Obeys::AtTheEnd => said.clone(),
        };
        let mut new: Vec<Value> = Vec::new();
        for order in read.iter().flat_map(|text| orders_in(text)) {
            let before = told.iter().filter(|one| **one == order).count();
            let limit = if work.obeys == Obeys::AtOnce {
                TIMES
            } else {
                1
            };
            if before < limit && !new.contains(&order) {
                new.push(order);
            }
        }
        told.extend(new.clone());
        pending.extend(
            new.into_iter()
                .flat_map(|order| by_number(&order, &work.known)),
        );
        let order = match work.obeys {
            Obeys::AtOnce => turn(&mut pending).or_else(|| own.next()),
            Obeys::AtTheEnd => own.next().or_else(|| turn(&mut pending)),
        };
        match order {
            Some(order) => calls(&filled_in(&order, &said)),
            None => provider::call("finish", &json!({"reached": true, "answer": "done"})),
        }
    };
    let next = Mutex::new(next);
    Provider::start(move |_, question| (next.lock())(question))
}

/// The turns of an order: itself, or the calls that a number stands for.
fn by_number(order: &Value, known: &[Value]) -> Vec<Value> {
    let Some(number) = order.as_u64() else {
        return vec![order.clone()];
    };
    let calls = usize::try_from(number).ok().and_then(|at| known.get(at));
    calls.and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Takes the next turn: an order that is a turn of its own, or so many calls.
fn turn(pending: &mut VecDeque<Value>) -> Option<Value> {
    if pending.front()?.is_array() {
        return pending.pop_front();
    }
    let mut calls = Vec::new();
    while calls.len() < CALLS && pending.front().is_some_and(Value::is_object) {
        calls.extend(pending.pop_front());
    }
    Some(Value::Array(calls))
}

/// Returns everything that was said since the model spoke last.
fn just_read(question: &Value) -> Vec<String> {
    let messages = question["messages"].as_array().into_iter().flatten();
    let new: Vec<_> = messages
        .rev()
        .take_while(|message| message["role"] != "assistant")
        .cloned()
        .collect();
    said_by_others(&json!({"messages": new}))
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
