//! The stream of a reply: bytes in, one [`Reply`] or [`ModelError`] out.
//!
//! Pure. The protocol is a list of chunks, each with a piece of the message; the last piece has a
//! `finish_reason`, a further chunk may have the usage, and `[DONE]` ends the stream. A reply
//! without a `finish_reason` is invalid, however the stream ends; `[DONE]` may be missing, for some
//! compatible servers simply close.
//!
//! Other deviations of such servers that are handled: arguments as an object or in one piece;
//! calls without an index, or all with index 0 (a new id with a name begins a new call); no id;
//! `finish_reason` "stop" with calls, or "" for none; content as a list; the usage in any chunk
//! (the last one counts); reasoning in fields of its own (shown, never sent back).

use gyrus_contract::{Delta, ModelError, Origin, Part, Reply, Shown, StopReason, Text};
use serde::Deserialize;
use serde_json::Value;

use super::super::{errors, usage};
use crate::{
    arguments,
    errors::{Meaning, bad, bounded_line},
    reading::{self, Content, MAX_PARTS, grow_arguments, parse_event},
    stream::{Event, ReplyReader},
};

/// One chunk, parsed leniently for compatible servers.
#[derive(Deserialize)]
struct Chunk {
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Value>,
    error: Option<Value>,
    /// Set to "error" if the chunk itself is one.
    object: Option<String>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Piece>,
    finish_reason: Option<String>,
}

/// An increment of the message.
#[derive(Deserialize)]
struct Piece {
    #[serde(default)]
    content: Value,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<Vec<CallPiece>>,
}

#[derive(Deserialize)]
struct CallPiece {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionPiece>,
}

#[derive(Default, Deserialize)]
struct FunctionPiece {
    name: Option<String>,
    #[serde(default)]
    arguments: Value,
}

/// A call so far.
struct Call {
    index: Option<u64>,
    id: String,
    tool: String,
    raw: String,
}

/// Reads one reply.
#[derive(Default)]
pub(crate) struct Reader {
    has_begun: bool,
    model: String,
    text: String,
    refusal: String,
    calls: Vec<Call>,
    content: Content,
    stop: Option<StopReason>,
    usage: Value,
}

impl ReplyReader for Reader {
    fn new(_model: &str, _shown: Option<Shown>) -> Self {
        Self::default()
    }

    fn event(
        &mut self,
        event: &Event,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Option<Reply>, ModelError> {
        if event.data.trim() == "[DONE]" {
            return self.finish().map(Some);
        }
        let chunk: Chunk = parse_event(&event.name, &event.data)?;
        if let Some(error) = chunk.error.as_ref().filter(|error| !error.is_null()) {
            return Err(errors::from_event(error));
        }
        if chunk.object.as_deref() == Some("error") {
            return Err(errors::from_event(&parse_event("error", &event.data)?));
        }
        self.has_begun = true;
        if let Some(model) = chunk.model.filter(|_| self.model.is_empty()) {
            self.content.grow(model.len())?;
            self.model = model;
        }
        if let Some(usage) = chunk.usage.filter(Value::is_object) {
            self.usage = usage;
        }
        // One reply was requested; where servers number the choices by token, it is the first.
        let Some(choice) = chunk.choices.into_iter().flatten().next() else {
            return Ok(None);
        };
        if let Some(piece) = choice.delta {
            self.grow(piece, deltas)?;
        }
        if let Some(word) = choice.finish_reason.filter(|word| !word.is_empty()) {
            self.stop = Some(stop_reason(&word)?);
        }
        Ok(None)
    }

    fn end(&mut self) -> Result<Option<Reply>, ModelError> {
        self.stop.is_some().then(|| self.finish()).transpose()
    }

    fn position(&self) -> &'static str {
        match (self.has_begun, self.calls.is_empty()) {
            (false, _) => "before it began",
            (true, true) => "before its end",
            (true, false) => "inside the arguments of a tool call",
        }
    }
}

impl Reader {
    fn grow(
        &mut self,
        piece: Piece,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), ModelError> {
        let reasoning = piece.reasoning_content.or(piece.reasoning);
        if let Some(thinking) = reasoning.filter(|thinking| !thinking.is_empty()) {
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
        for piece in piece.tool_calls.into_iter().flatten() {
            self.grow_call(piece, self.calls.len() > before, deltas)?;
        }
        Ok(())
    }

    /// Takes a piece of a call. `has_sibling`: another call began in the same chunk.
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
            self.calls.push(Call {
                index: piece.index,
                id: String::new(),
                tool: String::new(),
                raw: String::new(),
            });
        }
        let is_it = |call: &&mut Call| piece.index.is_none() || call.index == piece.index;
        let Some(call) = self.calls.iter_mut().rfind(is_it) else {
            return Err(bad("a tool call goes on without having begun"));
        };
        if call.id.is_empty() {
            call.id = id;
        }
        if call.tool.is_empty() && !name.is_empty() {
            deltas(Delta::Tool(name.clone()));
            call.tool = name;
        }
        grow_arguments(&mut call.raw, &more)
    }

    fn finish(&mut self) -> Result<Reply, ModelError> {
        let Some(stop) = self.stop else {
            return Err(bad("the stream ended without a finish reason"));
        };
        if !self.refusal.trim().is_empty() {
            return Err(Meaning::Declined.error(&self.refusal, None));
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
        Ok(reading::finished(parts, stop, usage, model))
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
    match word {
        "stop" | "eos" | "end_turn" | "stop_sequence" => Ok(StopReason::EndOfTurn),
        "tool_calls" | "function_call" => Ok(StopReason::ToolCalls),
        "length" | "max_tokens" | "model_length" => Ok(StopReason::MaxTokens),
        "content_filter" => {
            let words = "the provider's content filter stopped the reply";
            Err(Meaning::Declined.error(words, None))
        }
        "error" | "insufficient_system_resource" => {
            let words = "the provider failed in the middle of the reply";
            Err(Meaning::Overloaded.error(words, None))
        }
        other => Err(bad(format!(
            "the reply stopped for the reason `{}`",
            bounded_line(other)
        ))),
    }
}

#[cfg(test)]
mod tests;
