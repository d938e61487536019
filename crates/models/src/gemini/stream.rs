//! The stream of a reply: bytes in, one [`Reply`] or [`ModelError`] out.
//!
//! Pure, so that any stream can be tried without a network. Every event is a
//! `GenerateContentResponse` with the next parts of the reply; texts come in pieces, calls whole.
//! No event closes the stream, so a reply is whole when its candidate has said why it finished
//! and the body has then ended. A body that ends before is read as it stands, if it has content.
//!
//! Thoughts are shown and not kept. Signatures are kept for every kind of part.

use gyrus_contract::{Delta, ModelError, Origin, Part, Reply, ScreenSize, StopReason, Text, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    errors, screen,
    signature::{Signature, SignaturePart},
};
use crate::{
    calls::RawCall,
    errors::{bad, bounded_line},
    reading::{self, ContentAmount, MAX_PARTS, lenient, parse_event, tokens},
    stream::{self, ReplyReader},
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
struct GeminiEvent {
    candidates: Option<Vec<GeminiCandidate>>,
    prompt_feedback: Option<Value>,
    usage_metadata: Option<Value>,
    #[serde(default, deserialize_with = "lenient")]
    model_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCandidate {
    #[serde(default, deserialize_with = "lenient")]
    index: Option<u64>,
    content: Option<GeminiParts>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct GeminiParts {
    parts: Option<Vec<GeminiPiece>>,
}

/// A part, or a piece of a text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPiece {
    text: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    thought: Option<bool>,
    thought_signature: Option<String>,
    function_call: Option<GeminiCall>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCall {
    #[serde(default, deserialize_with = "lenient")]
    id: Option<String>,
    name: Option<String>,
    args: Option<Value>,
    partial_args: Option<Value>,
    #[serde(default, deserialize_with = "lenient")]
    will_continue: Option<bool>,
}

/// Reads the stream of one reply.
#[derive(Default)]
pub(crate) struct GeminiReader {
    shown: Option<ScreenSize>,
    has_begun: bool,
    model: String,
    parts: Vec<Part>,
    /// The text received so far, and its signatures.
    text: String,
    signatures: Vec<Part>,
    content: ContentAmount,
    stop: Option<StopReason>,
    usage: Value,
}

impl ReplyReader for GeminiReader {
    fn new(model: &str, shown: Option<ScreenSize>) -> Self {
        Self {
            model: model.to_owned(),
            shown,
            ..Self::default()
        }
    }

    fn event(
        &mut self,
        event: &stream::StreamEvent,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Option<Reply>, ModelError> {
        let event: GeminiEvent = parse_event("reply", &event.data)?;
        if let Some(reason) = event.prompt_feedback.as_ref().and_then(blocked) {
            let message = format!("the prompt was blocked: {}", bounded_line(reason));
            return Err(ModelError::Declined { message });
        }
        self.has_begun = true;
        if let Some(model) = event.model_version.filter(|model| !model.is_empty()) {
            self.model = bounded_line(&model);
        }
        // Only one candidate was requested.
        let is_first = |candidate: &GeminiCandidate| candidate.index.unwrap_or(0) == 0;
        let had_ended = self.has_ended();
        for candidate in event.candidates.into_iter().flatten().filter(is_first) {
            let parts = candidate.content.and_then(|content| content.parts);
            for piece in parts.into_iter().flatten() {
                self.piece(piece, deltas)?;
            }
            if let Some(reason) = candidate.finish_reason {
                let why = candidate.finish_message.unwrap_or_default();
                self.stop = Some(stop_reason(&reason, &why)?);
            }
        }
        // Before the end, counts are only what had been written by then.
        match (self.stop, event.usage_metadata) {
            (_, Some(usage)) => self.usage = usage,
            (Some(_), None) if !had_ended => self.usage = Value::Null,
            (Some(_) | None, None) => {}
        }
        Ok(None)
    }

    fn error(error: &Value) -> ModelError {
        errors::from_event(error, gyrus_text::now())
    }

    fn end(&mut self) -> Result<Option<Reply>, ModelError> {
        let has_content = !self.text.is_empty() || reading::has_content(&self.parts);
        let stop = self.stop.or(has_content.then_some(StopReason::EndOfTurn));
        Ok(stop.map(|stop| self.finish(stop)))
    }

    fn has_ended(&self) -> bool {
        self.stop.is_some()
    }

    fn position(&self) -> &'static str {
        if self.has_begun {
            "before its end"
        } else {
            "before it began"
        }
    }
}

impl GeminiReader {
    fn piece(
        &mut self,
        piece: GeminiPiece,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), ModelError> {
        if self.parts.len() + self.signatures.len() >= MAX_PARTS {
            return Err(bad(format!("the reply has more than {MAX_PARTS} parts")));
        }
        let signature = piece.thought_signature.filter(|s| !s.is_empty());
        self.content
            .grow(signature.as_ref().map_or(0, String::len))?;
        if let Some(call) = piece.function_call {
            return self.call(call, signature, deltas);
        }
        if piece.text.is_none() && signature.is_none() {
            let mut others = piece.other.iter().filter(|(_, value)| !value.is_null());
            return match others.next() {
                None => Ok(()),
                Some((kind, _)) => Err(bad(format!(
                    "a part is of the kind `{}`",
                    bounded_line(kind)
                ))),
            };
        }
        let text = piece.text.unwrap_or_default();
        self.content.grow(text.len())?;
        if piece.thought == Some(true) {
            if let Some(signature) = signature {
                self.end_text();
                let thought = SignaturePart::Thought(text.clone());
                self.parts.push(Signature::part(signature, thought));
            }
            if !text.is_empty() {
                deltas(Delta::Thinking(text));
            }
            return Ok(());
        }
        let start = self.text.len();
        self.text.push_str(&text);
        if let Some(signature) = signature {
            let end = self.text.len();
            let part = Signature::part(signature, SignaturePart::Text { start, end });
            self.signatures.push(part);
        }
        if !text.is_empty() {
            deltas(Delta::Text(text));
        }
        Ok(())
    }

    fn call(
        &mut self,
        call: GeminiCall,
        signature: Option<String>,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), ModelError> {
        if call.will_continue == Some(true) || call.partial_args.is_some() {
            return Err(bad("a tool call came in pieces, which was not asked for"));
        }
        let call = RawCall {
            id: call.id,
            name: call.name,
            arguments: call.args,
        };
        let call = call.join(&self.parts, &mut self.content)?;
        self.end_text();
        if let Some(signature) = signature {
            self.parts
                .push(Signature::part(signature, SignaturePart::Call));
        }
        deltas(Delta::Tool(call.tool.clone()));
        let Some(shown) = self.shown else {
            self.parts.push(Part::ToolCall(call));
            return Ok(());
        };
        // Only the provider's own functions were offered.
        let acts = screen::acts(&call.tool, &call.arguments, shown);
        reading::act(&call.id, acts, &mut self.parts)
    }

    /// Ends the current text: it becomes a part, after its signatures.
    fn end_text(&mut self) {
        self.parts.append(&mut self.signatures);
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.parts.push(Part::Text(Text::new(text, Origin::Model)));
        }
    }

    fn finish(&mut self, stop: StopReason) -> Reply {
        self.end_text();
        let parts = std::mem::take(&mut self.parts);
        let model = std::mem::take(&mut self.model);
        reading::finished(parts, stop, self.usage(), model)
    }

    /// Returns the usage. The prompt's count includes the cached tokens; thinking is counted as
    /// output beside the candidate.
    fn usage(&self) -> Option<Usage> {
        let counts = &self.usage;
        let optional = |name| match counts.get(name) {
            None => Some(0),
            Some(_) => tokens(counts, name),
        };
        let input_tokens =
            tokens(counts, "promptTokenCount")? + optional("toolUsePromptTokenCount")?;
        let output_tokens = match counts.get("candidatesTokenCount") {
            Some(_) => tokens(counts, "candidatesTokenCount")? + optional("thoughtsTokenCount")?,
            // Omitted when only thoughts were written.
            None => tokens(counts, "totalTokenCount")?.checked_sub(input_tokens)?,
        };
        let cached = tokens(counts, "cachedContentTokenCount").unwrap_or(0);
        Some(Usage {
            input_tokens,
            output_tokens,
            cached_tokens: cached.min(input_tokens),
            cache_written_tokens: 0,
        })
    }
}

fn blocked(feedback: &Value) -> Option<&str> {
    feedback.get("blockReason")?.as_str()
}

/// Maps the reasons of `Candidate.FinishReason`.
fn stop_reason(reason: &str, why: &str) -> Result<StopReason, ModelError> {
    let told = |words: &str| match why.trim() {
        "" => format!("{words} ({})", bounded_line(reason)),
        why => format!("{words}: {} ({})", bounded_line(why), bounded_line(reason)),
    };
    match reason {
        "STOP" => Ok(StopReason::EndOfTurn),
        "MAX_TOKENS" => Ok(StopReason::MaxTokens),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Err(ModelError::Declined {
            message: told("the reply was withheld"),
        }),
        // The conversation is at fault, so asking again would not help.
        "MISSING_THOUGHT_SIGNATURE" => Err(ModelError::Refused {
            message: told("the conversation lacks a signature"),
        }),
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" => {
            Err(bad(told("the model wrote a tool call that is none")))
        }
        _ => Err(bad(told("the reply stopped for an odd reason"))),
    }
}

#[cfg(test)]
mod tests;
