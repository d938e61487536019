//! The stream of a reply: bytes in, one [`Reply`] or [`ModelError`] out.
//!
//! Pure. The protocol is a list of events: items are added, grow and are done, and one event closes
//! the stream: `response.completed`, `response.incomplete` or `response.failed`. Items that are done
//! count (and those of the closing event that had no event of their own). One that only grew is read
//! as it stands: it was cut off, unless the reply was closed or the arguments of a call are whole.
//!
//! Items of other types than messages, calls and reasoning were not requested and are skipped.

use std::collections::BTreeMap;

use gyrus_contract::{Delta, ModelError, Origin, Part, Reply, ScreenSize, StopReason, Text};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    super::{errors, usage},
    screen,
};
use crate::{
    arguments,
    errors::{ErrorKind, bad, bounded_line},
    reading::{self, ContentAmount, MAX_ARGUMENT_BYTES, MAX_PARTS, lenient, parse_event},
    stream::{self, ReplyReader},
};

/// An event of the stream. An unknown type, or one of which only the end matters, is `Other`.
#[derive(Deserialize)]
#[serde(tag = "type")]
enum ResponsesEvent {
    #[serde(rename = "response.output_item.added")]
    Added {
        output_index: Option<usize>,
        item: Value,
    },
    #[serde(
        rename = "response.reasoning_summary_text.delta",
        alias = "response.reasoning_text.delta"
    )]
    Thinking { delta: String },
    #[serde(rename = "response.output_text.delta")]
    Text {
        output_index: Option<usize>,
        delta: String,
    },
    #[serde(rename = "response.function_call_arguments.delta")]
    Arguments {
        output_index: Option<usize>,
        delta: String,
    },
    #[serde(rename = "response.refusal.delta")]
    Unseen { delta: String },
    #[serde(rename = "response.output_item.done")]
    Done {
        output_index: Option<usize>,
        item: Value,
    },
    #[serde(rename = "response.completed", alias = "response.done")]
    Completed { response: ClosingEvent },
    #[serde(rename = "response.incomplete")]
    Incomplete { response: ClosingEvent },
    #[serde(rename = "response.failed")]
    Failed { response: ClosingEvent },
    /// A complete response, from a server that does not stream.
    #[serde(rename = "response")]
    Whole(ClosingEvent),
    #[serde(other)]
    Other,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClosingEvent {
    #[serde(default, deserialize_with = "lenient")]
    model: Option<String>,
    status: Option<String>,
    output: Option<Vec<Value>>,
    usage: Value,
    error: Value,
    incomplete_details: Value,
}

/// Reads the stream of one reply.
#[derive(Default)]
pub(crate) struct ResponsesReader {
    acts_on: Option<ScreenSize>,
    has_begun: bool,
    /// The items in progress, with their text so far.
    open: BTreeMap<usize, (Value, String)>,
    done: BTreeMap<usize, Value>,
    shown: ContentAmount,
    content: ContentAmount,
}

impl ReplyReader for ResponsesReader {
    fn new(_model: &str, shown: Option<ScreenSize>) -> Self {
        Self {
            acts_on: shown,
            ..Self::default()
        }
    }

    fn event(
        &mut self,
        event: &stream::StreamEvent,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Option<Reply>, ModelError> {
        let size = event.data.len();
        let event: ResponsesEvent = parse_event(&event.name, &event.data)?;
        self.has_begun = true;
        match event {
            ResponsesEvent::Added { output_index, item } => {
                self.add(output_index, &item, deltas)?
            }
            ResponsesEvent::Thinking { delta } => {
                self.shown.grow(delta.len())?;
                deltas(Delta::Thinking(delta));
            }
            ResponsesEvent::Text {
                output_index,
                delta,
            } => {
                self.grow(output_index, "message", &delta)?;
                deltas(Delta::Text(delta));
            }
            ResponsesEvent::Arguments {
                output_index,
                delta,
            } => self.grow(output_index, "function_call", &delta)?,
            ResponsesEvent::Unseen { delta } => self.shown.grow(delta.len())?,
            ResponsesEvent::Done { output_index, item } => {
                self.content.grow(size)?;
                self.settle(output_index, item)?;
            }
            ResponsesEvent::Completed { response } => {
                return self.finish(response, StopReason::EndOfTurn).map(Some);
            }
            ResponsesEvent::Incomplete { response } => {
                let stop = incomplete(&response.incomplete_details)?;
                return self.finish(response, stop).map(Some);
            }
            ResponsesEvent::Failed { response } => return Err(errors::from_event(&response.error)),
            ResponsesEvent::Whole(response) => {
                self.content.grow(size)?;
                let stop = match response.status.as_deref() {
                    Some("failed") => return Err(errors::from_event(&response.error)),
                    Some("incomplete") => incomplete(&response.incomplete_details)?,
                    _ => StopReason::EndOfTurn,
                };
                return self.finish(response, stop).map(Some);
            }
            ResponsesEvent::Other => {}
        }
        Ok(None)
    }

    fn error(error: &Value) -> ModelError {
        errors::from_event(error)
    }

    fn end(&mut self) -> Result<Option<Reply>, ModelError> {
        let is_cut = |(item, text): &(Value, String)| match item["type"].as_str() {
            Some("function_call") => !reading::is_whole(text),
            _ => true,
        };
        let stop = if self.open.values().any(is_cut) {
            StopReason::MaxTokens
        } else {
            StopReason::EndOfTurn
        };
        let reply = self.finish(ClosingEvent::default(), stop)?;
        Ok(Some(reply).filter(|reply| reading::has_content(&reply.parts)))
    }

    fn position(&self) -> &'static str {
        match (self.has_begun, self.open.is_empty()) {
            (false, _) => "before it began",
            (true, true) => "before its end",
            (true, false) => "inside an item",
        }
    }
}

impl ResponsesReader {
    fn add(
        &mut self,
        index: Option<usize>,
        item: &Value,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), ModelError> {
        self.bound()?;
        let index = index.unwrap_or(self.open.len() + self.done.len());
        if self.done.contains_key(&index) || self.open.contains_key(&index) {
            return Err(bad(format!("item {index} began twice")));
        }
        self.open.insert(index, (item.clone(), String::new()));
        if let (true, Some(tool)) = (item["type"] == "function_call", item["name"].as_str()) {
            self.shown.grow(tool.len())?;
            deltas(Delta::Tool(tool.to_owned()));
        }
        Ok(())
    }

    /// Appends a piece to an item, by default to the last open one. Some servers do not say that an
    /// item begins.
    fn grow(&mut self, index: Option<usize>, kind: &str, more: &str) -> Result<(), ModelError> {
        self.shown.grow(more.len())?;
        let last = self.open.last_key_value().map(|(index, _)| *index);
        let index = index.or(last).unwrap_or(self.done.len());
        if !self.open.contains_key(&index) {
            self.bound()?;
        }
        let begin = || (json!({"type": kind}), String::new());
        self.open
            .entry(index)
            .or_insert_with(begin)
            .1
            .push_str(more);
        Ok(())
    }

    fn settle(&mut self, index: Option<usize>, item: Value) -> Result<(), ModelError> {
        self.bound()?;
        let next = self.open.first_key_value().map(|(index, _)| *index);
        let index = index.or(next).unwrap_or(self.done.len());
        self.open.remove(&index);
        match self.done.insert(index, item) {
            None => Ok(()),
            Some(_) => Err(bad(format!("item {index} ended twice"))),
        }
    }

    fn bound(&self) -> Result<(), ModelError> {
        if self.open.len() + self.done.len() < MAX_PARTS {
            Ok(())
        } else {
            Err(bad(format!("the reply has more than {MAX_PARTS} items")))
        }
    }

    fn finish(&mut self, response: ClosingEvent, stop: StopReason) -> Result<Reply, ModelError> {
        let mut items = std::mem::take(&mut self.done);
        for (index, item) in response.output.into_iter().flatten().enumerate() {
            items.entry(index).or_insert(item);
        }
        for (index, (mut item, text)) in std::mem::take(&mut self.open) {
            match item["type"].as_str() {
                _ if items.contains_key(&index) => continue,
                Some("message") => item["content"] = json!([{"text": text}]),
                Some("function_call") if stop == StopReason::MaxTokens || !text.is_empty() => {
                    item["arguments"] = text.into();
                }
                // Of reasoning, only a whole item can go back.
                _ if stop == StopReason::MaxTokens => continue,
                _ => return Err(bad(format!("the reply ended inside item {index}"))),
            }
            items.insert(index, item);
        }
        let mut parts = Vec::with_capacity(items.len());
        for item in items.into_values() {
            match item["type"].as_str() {
                Some("computer_call") if let Some(shown) = self.acts_on => {
                    let id = item["call_id"].as_str().unwrap_or_default();
                    reading::act(id, screen::acts(&item, shown), &mut parts)?;
                }
                Some("message") => message(&item, &mut parts)?,
                Some("function_call") => call(&item, &mut parts)?,
                Some("reasoning") => parts.push(Part::Thinking(item)),
                _ => {}
            }
        }
        if parts.len() > MAX_PARTS {
            return Err(bad(format!("the reply has more than {MAX_PARTS} parts")));
        }
        let (input, output) = ("input_tokens", "output_tokens");
        let usage = usage(&response.usage, input, "input_tokens_details", output);
        let model = response.model.unwrap_or_default();
        Ok(reading::finished(parts, stop, usage, model))
    }
}

fn message(item: &Value, parts: &mut Vec<Part>) -> Result<(), ModelError> {
    for content in item["content"].as_array().into_iter().flatten() {
        if let Some(words) = content["refusal"].as_str() {
            return Err(ErrorKind::Declined.error(words));
        }
        if let Some(text) = content["text"].as_str().filter(|text| !text.is_empty()) {
            parts.push(Part::Text(Text::new(text, Origin::Model)));
        }
    }
    Ok(())
}

fn call(item: &Value, parts: &mut Vec<Part>) -> Result<(), ModelError> {
    let Some(tool) = item["name"].as_str().filter(|name| !name.is_empty()) else {
        return Err(bad("a tool call has no name"));
    };
    let arguments = match &item["arguments"] {
        Value::String(raw) if raw.len() > MAX_ARGUMENT_BYTES => {
            let message = format!("tool arguments exceed {MAX_ARGUMENT_BYTES} bytes");
            return Err(bad(message));
        }
        Value::String(raw) => arguments::parse(raw.clone(), Value::Null),
        Value::Null => arguments::parse(String::new(), Value::Null),
        whole => whole.clone(),
    };
    let id = item["call_id"].as_str().unwrap_or_default();
    parts.push(reading::call(id, tool.to_owned(), arguments, parts));
    Ok(())
}

fn incomplete(details: &Value) -> Result<StopReason, ModelError> {
    match details["reason"].as_str() {
        Some("max_output_tokens") => Ok(StopReason::MaxTokens),
        Some("content_filter") => {
            let words = "the provider's content filter stopped the reply";
            Err(ErrorKind::Declined.error(words))
        }
        other => Err(bad(format!(
            "the reply is incomplete for the reason `{}`",
            bounded_line(other.unwrap_or("none"))
        ))),
    }
}

#[cfg(test)]
mod tests;
