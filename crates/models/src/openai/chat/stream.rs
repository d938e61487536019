//! The stream of a reply: bytes in, one [`Reply`] or [`ModelError`] out.
//!
//! Pure. The protocol is a list of chunks, each with a piece of the message; the last piece has a
//! `finish_reason`, a further chunk may have the usage, and `[DONE]` ends the stream. Some
//! compatible servers leave one or both out: the reply is then read as it stands, and was cut off
//! if the arguments of a call are not whole.
//!
//! Other deviations of such servers that are handled: a whole message instead of pieces; arguments
//! as an object or in one piece; calls without an index, or all with index 0 (a new id with a name
//! begins a new call); no id; names in pieces, or in each piece; `finish_reason` "stop" with calls,
//! or "" for none; content as a list; numbers and texts in each other's place; the usage in any
//! chunk (the last one counts); reasoning in fields of its own (shown, never sent back).

use gyrus_contract::{Delta, ModelError, Origin, Part, Reply, ScreenSize, StopReason, Text};
use serde::Deserialize;
use serde_json::Value;

use super::super::{errors, usage};
use crate::{
    arguments,
    errors::{ErrorKind, bad, bounded_line},
    reading::{self, ContentAmount, MAX_PARTS, grow_arguments, lenient, parse_event},
    stream::{ReplyReader, StreamEvent},
};

/// A chunk of the stream, parsed leniently for compatible servers.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default, deserialize_with = "lenient")]
    model: Option<String>,
    choices: Option<Vec<ChatChoice>>,
    usage: Option<Value>,
    x_groq: Option<Value>,
}

#[derive(Deserialize)]
struct ChatChoice {
    delta: Option<ChatDelta>,
    /// The complete message, from servers that do not stream, and from some that do.
    message: Option<ChatDelta>,
    /// The text, in the older completions protocol.
    #[serde(default, deserialize_with = "lenient")]
    text: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    finish_reason: Option<String>,
    #[serde(default)]
    error: Value,
}

/// An increment of the message.
#[derive(Default, Deserialize)]
struct ChatDelta {
    #[serde(default)]
    content: Value,
    #[serde(default, deserialize_with = "lenient")]
    refusal: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    reasoning_content: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    reasoning: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    thinking: Option<String>,
    tool_calls: Option<Vec<CallPiece>>,
    /// The single call of an older version of the protocol.
    function_call: Option<FunctionPiece>,
}

#[derive(Default, Deserialize)]
struct CallPiece {
    #[serde(default, deserialize_with = "lenient")]
    index: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    id: Option<String>,
    function: Option<FunctionPiece>,
}

#[derive(Default, Deserialize)]
struct FunctionPiece {
    #[serde(default, deserialize_with = "lenient")]
    name: Option<String>,
    #[serde(default)]
    arguments: Value,
}

struct ChatCall {
    index: Option<u64>,
    id: String,
    tool: String,
    raw: String,
}

/// Reads the stream of one reply.
#[derive(Default)]
pub(crate) struct ChatReader {
    has_begun: bool,
    model: String,
    text: String,
    refusal: String,
    calls: Vec<ChatCall>,
    content: ContentAmount,
    stop: Option<StopReason>,
    usage: Value,
}

impl ReplyReader for ChatReader {
    fn new(_model: &str, _shown: Option<ScreenSize>) -> Self {
        Self::default()
    }

    fn event(
        &mut self,
        event: &StreamEvent,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Option<Reply>, ModelError> {
        let chunk: Chunk = parse_event(&event.name, &event.data)?;
        self.has_begun = true;
        if let Some(model) = chunk.model.filter(|_| self.model.is_empty()) {
            self.content.grow(model.len())?;
            self.model = model;
        }
        let others = chunk
            .x_groq
            .and_then(|mut own| Some(own.get_mut("usage")?.take()));
        if let Some(usage) = chunk.usage.or(others).filter(Value::is_object) {
            self.usage = usage;
        }
        // One reply was requested; where servers number the choices by token, it is the first.
        let Some(choice) = chunk.choices.into_iter().flatten().next() else {
            return Ok(None);
        };
        if !choice.error.is_null() {
            return Err(errors::from_event(&choice.error));
        }
        // Some repeat the whole message at the end.
        let whole = choice.message.filter(|_| !self.has_content());
        let text = choice.text.map(|text| ChatDelta {
            content: text.into(),
            ..ChatDelta::default()
        });
        for piece in [choice.delta, whole, text].into_iter().flatten() {
            self.grow(piece, deltas)?;
        }
        if let Some(word) = choice.finish_reason.filter(|word| !word.is_empty()) {
            self.stop = Some(stop_reason(&word)?);
        }
        Ok(None)
    }

    fn error(error: &Value) -> ModelError {
        errors::from_event(error)
    }

    fn growing(&self) -> &str {
        self.calls.last().map_or(&self.text, |call| &call.raw)
    }

    fn end(&mut self) -> Result<Option<Reply>, ModelError> {
        let is_cut = |call: &ChatCall| !reading::is_whole(&call.raw);
        self.finish(self.calls.iter().any(is_cut))
    }

    /// A call may have no arguments if the server marked the end.
    fn done(&mut self) -> Result<Option<Reply>, ModelError> {
        let is_cut = |call: &ChatCall| !call.raw.is_empty() && !reading::is_whole(&call.raw);
        self.finish(self.calls.iter().any(is_cut))
    }

    fn has_ended(&self) -> bool {
        self.stop.is_some()
    }

    fn position(&self) -> &'static str {
        match (self.has_begun, self.calls.is_empty()) {
            (false, _) => "before it began",
            (true, true) => "before its end",
            (true, false) => "inside the arguments of a tool call",
        }
    }
}

impl ChatReader {
    fn grow(
        &mut self,
        piece: ChatDelta,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), ModelError> {
        let reasoning = piece
            .reasoning_content
            .or(piece.reasoning)
            .or(piece.thinking);
        let reasoning = reasoning.map(Value::String).into_iter();
        let parts = piece.content.as_array().into_iter().flatten();
        let reasoning = reasoning.chain(parts.map(|part| part["thinking"].clone()));
        for thinking in reasoning.flat_map(texts) {
            self.content.grow(thinking.len())?;
            deltas(Delta::Thinking(thinking));
        }
        for more in texts(piece.content) {
            self.content.grow(more.len())?;
            self.text.push_str(&more);
            deltas(Delta::Text(more));
        }
        if let Some(more) = piece.refusal {
            self.content.grow(more.len())?;
            self.refusal.push_str(&more);
        }
        let before = self.calls.len();
        let only = piece.function_call.map(|function| CallPiece {
            function: Some(function),
            ..CallPiece::default()
        });
        for piece in piece.tool_calls.into_iter().flatten().chain(only) {
            self.grow_call(piece, self.calls.len() > before, deltas)?;
        }
        Ok(())
    }

    /// Appends a piece of a call. `has_sibling`: another call began in the same chunk.
    fn grow_call(
        &mut self,
        piece: CallPiece,
        has_sibling: bool,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), ModelError> {
        let id = piece.id.unwrap_or_default();
        let function = piece.function.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let more = match function.arguments {
            Value::Null => String::new(),
            Value::String(more) => more,
            whole => whole.to_string(),
        };
        self.content.grow(id.len() + name.len() + more.len())?;
        let begins = match &piece.index {
            Some(index) => self
                .calls
                .iter()
                .rfind(|call| call.index == Some(*index))
                .is_none_or(|call| !name.is_empty() && !id.is_empty() && call.id != id),
            None => self.calls.last().is_none_or(|call| {
                !name.is_empty() && (has_sibling || id.is_empty() || call.id != id)
            }),
        };
        if begins {
            if self.calls.len() == MAX_PARTS {
                return Err(bad(format!("the reply has more than {MAX_PARTS} calls")));
            }
            self.calls.push(ChatCall {
                index: piece.index,
                id: String::new(),
                tool: String::new(),
                raw: String::new(),
            });
        }
        let is_it = |call: &&mut ChatCall| piece.index.is_none() || call.index == piece.index;
        let Some(call) = self.calls.iter_mut().rfind(is_it) else {
            return Err(bad("a tool call goes on without having begun"));
        };
        if call.id.is_empty() {
            call.id = id;
        }
        if call.tool.is_empty() && !name.is_empty() {
            deltas(Delta::Tool(name.clone()));
            call.tool = name;
        } else if call.raw.is_empty() && call.tool != name {
            call.tool.push_str(&name);
        }
        grow_arguments(&mut call.raw, &more)
    }

    fn has_content(&self) -> bool {
        !self.text.is_empty() || !self.refusal.is_empty() || !self.calls.is_empty()
    }

    /// Returns the reply; `is_cut` applies if the server gave no reason for its end.
    fn finish(&mut self, is_cut: bool) -> Result<Option<Reply>, ModelError> {
        let stop = match self.stop {
            Some(stop) => stop,
            None if !self.has_content() => return Ok(None),
            None if is_cut => StopReason::MaxTokens,
            None => StopReason::EndOfTurn,
        };
        if !self.refusal.trim().is_empty() {
            return Err(ErrorKind::Declined.error(&self.refusal));
        }
        let mut parts = Vec::with_capacity(self.calls.len() + 1);
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            parts.push(Part::Text(Text::new(text, Origin::Model)));
        }
        for call in std::mem::take(&mut self.calls) {
            if call.tool.is_empty() {
                return Err(bad("a tool call has no name"));
            }
            let arguments = arguments::parse(call.raw, Value::Null);
            parts.push(reading::call(&call.id, call.tool, arguments, &parts));
        }
        let (input, output) = ("prompt_tokens", "completion_tokens");
        let usage = usage(&self.usage, input, "prompt_tokens_details", output);
        let model = std::mem::take(&mut self.model);
        Ok(Some(reading::finished(parts, stop, usage, model)))
    }
}

/// Returns the texts in a `content`: one text, a list of parts, or nothing.
fn texts(content: Value) -> Vec<String> {
    let text = |content| match content {
        Value::String(text) if !text.is_empty() => Some(text),
        _ => None,
    };
    match content {
        Value::Array(parts) => parts
            .into_iter()
            .filter_map(|mut part| text(part.get_mut("text")?.take()))
            .collect(),
        content => text(content).into_iter().collect(),
    }
}

fn stop_reason(word: &str) -> Result<StopReason, ModelError> {
    match word.to_ascii_lowercase().as_str() {
        "stop" | "eos" | "end_turn" | "stop_sequence" | "complete" | "completed" => {
            Ok(StopReason::EndOfTurn)
        }
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => Ok(StopReason::ToolCalls),
        "length" | "max_tokens" | "model_length" => Ok(StopReason::MaxTokens),
        "content_filter" => {
            let words = "the provider's content filter stopped the reply";
            Err(ErrorKind::Declined.error(words))
        }
        "error" | "insufficient_system_resource" => {
            let words = "the provider failed in the middle of the reply";
            Err(ErrorKind::Overloaded.error(words))
        }
        _ => Err(bad(format!(
            "the reply stopped for the reason `{}`",
            bounded_line(word)
        ))),
    }
}

#[cfg(test)]
mod tests;
