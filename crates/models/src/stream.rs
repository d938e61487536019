//! The stream of a reply: bytes in, in whatever pieces the network delivers them; one [`Reply`] or
//! [`ModelError`] out.
//!
//! Pure. `decoder` cuts bytes into events, by their form and not by what the server calls it, and
//! the protocol's [`ReplyReader`] reads those. Errors that come as events are found here, for they
//! look alike in all protocols.
//!
//! A body that ends properly but too early is read as it stands, if there is something to read. One
//! that breaks off is an error, unless the reply had already said why it ended.

use gyrus_contract::{Delta, ModelError, Reply, ScreenSize, StopReason};
use serde_json::Value;

mod decoder;
mod halves;

use crate::errors::{bad, bounded_line};
use crate::repetition::{Endless, TextRepetition};
use decoder::Decoder;
pub(crate) use decoder::StreamEvent;

/// Maximum number of bytes kept from the beginning of a body, to describe one that is not a reply.
const MAX_BEGINNING: usize = 1000;

/// Reads the events of one reply.
pub(crate) trait ReplyReader: Default + Send {
    /// Creates the reader of a reply whose model may act on `shown` by the provider's own tools.
    /// `model` is the model of the reply unless the stream names one.
    fn new(model: &str, shown: Option<ScreenSize>) -> Self;

    /// Reads the next event, and returns the reply when it is complete. It is not called again
    /// after that.
    fn event(
        &mut self,
        event: &StreamEvent,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Option<Reply>, ModelError>;

    /// Classifies an error event inside a stream that began well.
    fn error(error: &Value) -> ModelError;

    /// Returns the reply received so far, at the proper end of the body; `None` if it has neither
    /// content nor a reason to end.
    fn end(&mut self) -> Result<Option<Reply>, ModelError>;

    /// Like [`ReplyReader::end`], where the server marked the end by `[DONE]`.
    fn done(&mut self) -> Result<Option<Reply>, ModelError> {
        self.end()
    }

    /// Whether the reply contains a reason for its end.
    fn has_ended(&self) -> bool {
        false
    }

    /// Returns the text that grows at the moment, where small models are read.
    fn growing(&self) -> &str {
        ""
    }

    /// Describes the position in the reply: "before it began".
    fn position(&self) -> &'static str;
}

/// A stream that is being received.
pub(crate) struct Stream<R> {
    decoder: Decoder,
    reader: R,
    repetition: TextRepetition,
    beginning: Vec<u8>,
}

impl<R: ReplyReader> Stream<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            decoder: Decoder::default(),
            reader,
            repetition: TextRepetition::default(),
            beginning: Vec::new(),
        }
    }

    /// Reads the next bytes, and returns the reply when they complete it. It is not called again
    /// after that.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Option<Reply>, ModelError> {
        let room = MAX_BEGINNING - self.beginning.len();
        self.beginning.extend(bytes.iter().take(room));
        let mut finished = None;
        let reader = &mut self.reader;
        self.decoder.push(bytes, |event| {
            if finished.is_none() {
                finished = read(reader, event, deltas)?;
            }
            Ok(())
        })?;
        if finished.is_some() {
            return Ok(finished);
        }
        match self.repetition.seen_in(self.reader.growing()) {
            None => Ok(None),
            Some(Endless::Blank) => self.reader.end(),
            // As if it had been cut there: what follows would be the same.
            Some(Endless::Repeats) => Ok(self.reader.end()?.map(|reply| Reply {
                stop: StopReason::MaxTokens,
                ..reply
            })),
        }
    }

    /// Handles the proper end of the body.
    pub(crate) fn end(
        &mut self,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let last = self.decoder.end();
        if last
            .as_ref()
            .is_some_and(|event| !decoder::is_whole(&event.data))
        {
            return self.break_off("the last event is not whole");
        }
        let reply = match last.map(|event| read(&mut self.reader, event, deltas)) {
            Some(Ok(None)) | None => self.reader.end()?,
            Some(read) => read?,
        };
        reply.ok_or_else(|| self.not_a_reply())
    }

    /// Handles a body that breaks off.
    ///
    /// # Errors
    /// Those of the reader; [`ModelError::BadOutput`] with the position, unless the reply had ended.
    pub(crate) fn break_off(&mut self, reason: &str) -> Result<Reply, ModelError> {
        let reply = self.ended()?;
        reply.ok_or_else(|| self.broken_off(reason))
    }

    /// Returns the reply if it contains a reason for its end, so that nothing has to follow.
    pub(crate) fn ended(&mut self) -> Result<Option<Reply>, ModelError> {
        if self.reader.has_ended() {
            self.reader.end()
        } else {
            Ok(None)
        }
    }

    fn broken_off(&self, reason: &str) -> ModelError {
        let position = self.reader.position();
        bad(format!("the stream broke off {position}: {reason}"))
    }

    /// Returns the error for a body without a reply: its beginning says what it was instead.
    fn not_a_reply(&self) -> ModelError {
        let beginning = String::from_utf8_lossy(&self.beginning);
        if self.decoder.is_stream() || beginning.trim().is_empty() {
            return self.broken_off("the provider sent no more");
        }
        bad(format!(
            "the answer is not a reply but: {}",
            bounded_line(&beginning)
        ))
    }
}

/// Passes an event to the reader, or each of the objects that a server put into one.
fn read<R: ReplyReader>(
    reader: &mut R,
    mut event: StreamEvent,
    deltas: &mut (dyn FnMut(Delta) + Send),
) -> Result<Option<Reply>, ModelError> {
    loop {
        let data = event.data.trim();
        if data.is_empty() {
            return Ok(None);
        }
        if data == "[DONE]" {
            let reply = reader.done()?;
            return reply
                .map(Some)
                .ok_or_else(|| bad("the stream ended without a reply"));
        }
        let length = decoder::first_object(data).unwrap_or(data.len());
        let rest = data[length..].trim_start().to_owned();
        if !rest.is_empty() {
            event.data = data[..length].to_owned();
        }
        if let Some(error) = error_in(&event) {
            return Err(R::error(&error));
        }
        let reply = reader.event(&event, deltas)?;
        if reply.is_some() || rest.is_empty() {
            return Ok(reply);
        }
        event.data = rest;
    }
}

/// Returns the error that an event reports: the value of its `error`, or all of an event that is
/// called one.
fn error_in(event: &StreamEvent) -> Option<Value> {
    let is_named = event.name == "error";
    if !is_named && !event.data.contains("\"error\"") {
        return None;
    }
    let Ok(data) = serde_json::from_str::<Value>(&event.data) else {
        return is_named.then(|| event.data.clone().into());
    };
    let is_one = match &data["error"] {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(words) => !words.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    };
    if is_one {
        return Some(data["error"].clone());
    }
    let is_called_one = is_named || data["type"] == "error" || data["object"] == "error";
    is_called_one.then_some(data)
}
