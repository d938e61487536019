//! A scripted reply as the bytes of a stream.
//!
//! Text, thinking and arguments are cut into small pieces, as a real stream is. The thinking
//! block is signed with a digest of its text, so that `check` notices one that does not come back
//! as it was.

use gyrus_contract::{Digest, StopReason};
use serde_json::{Value, json};

use super::file::{Fault, FilledReply, ReportedUsage};

/// Maximum characters of text in one event.
const PIECE: usize = 24;

/// Prefix of this server's signatures; others are not checked.
pub(super) const SIGNATURE_PREFIX: &str = "script-";

pub(super) fn signature(thinking: &str) -> String {
    format!("{SIGNATURE_PREFIX}{}", Digest::of(thinking.as_bytes()))
}

/// Values that differ between two servings of the same scripted reply.
pub(super) struct ServingValues<'a> {
    /// The model named in the request.
    pub(super) model: &'a str,
    /// Unique in a run; ids of messages and calls are made from it.
    pub(super) key: String,
    /// The estimated tokens of the request.
    pub(super) request_tokens: u64,
}

/// Returns the whole stream of `reply`.
pub(super) fn stream(reply: &FilledReply, serving: &ServingValues) -> String {
    let (input, output) = match reply.usage {
        Some(ReportedUsage::Tokens { input, output }) => (Some(input), Some(output)),
        Some(ReportedUsage::Nothing(_)) => (None, None),
        None => (
            Some(serving.request_tokens),
            Some(estimate(content_bytes(reply))),
        ),
    };
    let mut stream = begin(serving, input);
    push(&mut stream, json!({"type": "ping"}));
    let mut blocks = 0..;
    let mut block = |start: Value, deltas: Vec<Value>| {
        let index: u64 = blocks.next().unwrap_or_default();
        push(
            &mut stream,
            json!({"type": "content_block_start", "index": index, "content_block": start}),
        );
        for delta in deltas {
            let event = json!({"type": "content_block_delta", "index": index, "delta": delta});
            push(&mut stream, event);
        }
        push(
            &mut stream,
            json!({"type": "content_block_stop", "index": index}),
        );
    };
    if let Some(thinking) = &reply.thinking {
        let mut deltas: Vec<_> = pieces(thinking)
            .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
            .collect();
        deltas.push(json!({"type": "signature_delta", "signature": signature(thinking)}));
        block(
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            deltas,
        );
    }
    if let Some(text) = &reply.text {
        let deltas = pieces(text).map(|piece| json!({"type": "text_delta", "text": piece}));
        block(json!({"type": "text", "text": ""}), deltas.collect());
    }
    for (number, call) in reply.calls.iter().enumerate() {
        let id = format!("call_{}_{number}", serving.key);
        let deltas = pieces(&call.arguments)
            .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
        block(
            json!({"type": "tool_use", "id": id, "name": call.tool, "input": {}}),
            deltas.collect(),
        );
    }
    let stop = reply.stop.unwrap_or(if reply.calls.is_empty() {
        StopReason::EndOfTurn
    } else {
        StopReason::ToolCalls
    });
    let mut end = json!({"type": "message_delta", "delta": {"stop_reason": stop_word(stop)}});
    if let Some(output) = output {
        end["usage"] = json!({"output_tokens": output});
    }
    push(&mut stream, end);
    push(&mut stream, json!({"type": "message_stop"}));
    stream
}

/// Returns the stream instead of `reply` for a `fault` that happens in the stream.
pub(super) fn faulty_stream(fault: Fault, reply: &FilledReply, serving: &ServingValues) -> Vec<u8> {
    match fault {
        Fault::Cut => {
            let mut stream = stream(reply, serving).into_bytes();
            stream.truncate(stream.len() / 2);
            // Inside of an event, for one that is whole could be the last.
            stream.truncate(stream.trim_ascii_end().len().saturating_sub(1));
            stream
        }
        Fault::ErrorEvent => {
            let mut stream = begin(serving, Some(1));
            push(&mut stream, error("overloaded_error", "the script says so"));
            stream.into_bytes()
        }
        Fault::Garbage => {
            let stream = begin(serving, Some(1));
            (stream + "event: content_block_start\ndata: {\"type\": nonsense\n\n").into_bytes()
        }
        Fault::SlowBytes | Fault::Overloaded | Fault::RateLimited => {
            stream(reply, serving).into_bytes()
        }
    }
}

/// Returns the body of an error, in a response or an event.
pub(super) fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

fn begin(serving: &ServingValues, input_tokens: Option<u64>) -> String {
    let mut message = json!({
        "id": format!("msg_{}", serving.key),
        "type": "message",
        "role": "assistant",
        "model": serving.model,
        "content": [],
        "stop_reason": null,
    });
    if let Some(input_tokens) = input_tokens {
        message["usage"] = json!({"input_tokens": input_tokens, "output_tokens": 1});
    }
    let mut stream = String::new();
    push(
        &mut stream,
        json!({"type": "message_start", "message": message}),
    );
    stream
}

fn push(stream: &mut String, event: Value) {
    let name = event["type"].as_str().unwrap_or_default();
    *stream += &format!("event: {name}\ndata: {event}\n\n");
}

fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let piece = gyrus_text::first_chars(text, PIECE);
        text = &text[piece.len()..];
        (!piece.is_empty()).then_some(piece)
    })
}

fn stop_word(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndOfTurn => "end_turn",
        StopReason::ToolCalls => "tool_use",
        StopReason::MaxTokens => "max_tokens",
    }
}

fn content_bytes(reply: &FilledReply) -> usize {
    let texts = reply.thinking.iter().chain(&reply.text).map(String::len);
    let calls = reply
        .calls
        .iter()
        .map(|call| call.tool.len() + call.arguments.len());
    texts.chain(calls).sum()
}

/// Estimates the tokens of a text by the usual four bytes a token.
pub(super) fn estimate(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4).max(1)
}
