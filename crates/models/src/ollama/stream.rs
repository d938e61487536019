//! The stream of a reply: bytes in, one [`Reply`] or [`ModelError`] out.
//!
//! Pure, so that any stream can be tried without a network. Every line is a piece of the message:
//! text and thinking bit by bit, calls whole. The line with `"done": true` ends it and says why.
//! Where it is missing, or its reason, the reply is read as it stands; one without content is
//! [`ModelError::BadOutput`], for so ends a server whose model died. Thinking is shown and not kept.

use gyrus_contract::{Delta, ModelError, Origin, Part, Reply, ScreenSize, StopReason, Text, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::errors;
use crate::{
    calls::RawCall,
    errors::{bad, bounded_line},
    reading::{self, ContentAmount, MAX_PARTS, lenient, parse_event, tokens},
    stream::{ReplyReader, StreamEvent},
};

#[derive(Deserialize)]
struct OllamaLine {
    #[serde(default, deserialize_with = "lenient")]
    model: Option<String>,
    message: Option<OllamaMessage>,
    #[serde(default, deserialize_with = "lenient")]
    done: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    done_reason: Option<String>,
    #[serde(flatten)]
    counts: Map<String, Value>,
}

#[derive(Deserialize)]
struct OllamaMessage {
    content: Option<String>,
    thinking: Option<String>,
    tool_calls: Option<Vec<OllamaCall>>,
}

#[derive(Deserialize)]
struct OllamaCall {
    #[serde(default, deserialize_with = "lenient")]
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<Value>,
}

/// Reads the stream of one reply.
#[derive(Default)]
pub(crate) struct OllamaReader {
    has_begun: bool,
    model: String,
    parts: Vec<Part>,
    /// The text received so far.
    text: String,
    content: ContentAmount,
}

impl ReplyReader for OllamaReader {
    fn new(model: &str, _shown: Option<ScreenSize>) -> Self {
        Self {
            model: model.to_owned(),
            ..Self::default()
        }
    }

    fn event(
        &mut self,
        line: &StreamEvent,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Option<Reply>, ModelError> {
        let line: OllamaLine = parse_event(&line.name, &line.data)?;
        self.has_begun = true;
        if let Some(model) = line.model.filter(|model| !model.is_empty()) {
            self.model = bounded_line(&model);
        }
        if let Some(message) = line.message {
            self.message(message, deltas)?;
        }
        if line.done != Some(true) {
            return Ok(None);
        }
        let stop = stop_reason(line.done_reason.as_deref().unwrap_or_default())?;
        let usage = usage(&Value::Object(line.counts));
        match stop {
            Some(stop) => Ok(Some(self.finish(stop, usage))),
            None if self.has_content() => Ok(Some(self.finish(StopReason::EndOfTurn, usage))),
            None => Err(bad("the reply ended without a reason and without content")),
        }
    }

    fn error(error: &Value) -> ModelError {
        errors::from_line(error)
    }

    fn growing(&self) -> &str {
        &self.text
    }

    fn end(&mut self) -> Result<Option<Reply>, ModelError> {
        let reply = self.has_content();
        Ok(reply.then(|| self.finish(StopReason::EndOfTurn, None)))
    }

    fn position(&self) -> &'static str {
        if self.has_begun {
            "before its end"
        } else {
            "before it began"
        }
    }
}

impl OllamaReader {
    fn message(
        &mut self,
        message: OllamaMessage,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), ModelError> {
        if let Some(thinking) = message.thinking.filter(|text| !text.is_empty()) {
            self.content.grow(thinking.len())?;
            deltas(Delta::Thinking(thinking));
        }
        if let Some(text) = message.content.filter(|text| !text.is_empty()) {
            self.content.grow(text.len())?;
            self.text.push_str(&text);
            deltas(Delta::Text(text));
        }
        for call in message.tool_calls.into_iter().flatten() {
            self.call(call, deltas)?;
        }
        Ok(())
    }

    fn call(
        &mut self,
        call: OllamaCall,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), ModelError> {
        self.end_text();
        if self.parts.len() >= MAX_PARTS {
            return Err(bad(format!("the reply has more than {MAX_PARTS} parts")));
        }
        let call = RawCall {
            id: call.id,
            name: call.function.name,
            arguments: call.function.arguments,
        };
        let call = call.join(&self.parts, &mut self.content)?;
        deltas(Delta::Tool(call.tool.clone()));
        self.parts.push(Part::ToolCall(call));
        Ok(())
    }

    fn has_content(&self) -> bool {
        !self.text.is_empty() || !self.parts.is_empty()
    }

    fn finish(&mut self, stop: StopReason, usage: Option<Usage>) -> Reply {
        self.end_text();
        let parts = std::mem::take(&mut self.parts);
        let model = std::mem::take(&mut self.model);
        reading::finished(parts, stop, usage, model)
    }

    fn end_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.parts.push(Part::Text(Text::new(text, Origin::Model)));
        }
    }
}

/// Returns the usage. The server omits a count of zero, so a missing one is unknown.
fn usage(counts: &Value) -> Option<Usage> {
    Some(Usage {
        input_tokens: tokens(counts, "prompt_eval_count")?,
        output_tokens: tokens(counts, "eval_count")?,
        cached_tokens: 0,
        cache_written_tokens: 0,
    })
}

/// Returns the reason to stop; `None` if the server gave none.
fn stop_reason(reason: &str) -> Result<Option<StopReason>, ModelError> {
    match reason {
        "stop" | "tool_calls" => Ok(Some(StopReason::EndOfTurn)),
        "length" => Ok(Some(StopReason::MaxTokens)),
        "" => Ok(None),
        "load" | "unload" => Err(bad(format!(
            "the server did not answer but only {reason}ed the model"
        ))),
        other => Err(bad(format!(
            "the reply stopped for the reason `{}`",
            bounded_line(other)
        ))),
    }
}

#[cfg(test)]
mod tests;
