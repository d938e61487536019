//! The stream of a reply: bytes in, in whatever pieces the network delivers them; one [`Reply`] or
//! [`ModelError`] out.
//!
//! Pure. The decoder cuts bytes into events by one of two formats, and the protocol's
//! [`ReplyReader`] reads those. Bytes are gathered into whole lines before they become text, so a
//! character may be split between two chunks.
//!
//! Server-sent events are those of the HTML standard (section 9.2): lines end with LF, CR or CRLF,
//! a byte order mark may come first, comments and unknown fields are skipped, and an event without
//! a final blank line is dropped.
//!
//! Not here: `id` and `retry`. A reply that breaks off is requested again, never resumed.

use gyrus_contract::{Delta, ModelError, Reply, Shown};

use crate::errors::bad;

/// Maximum bytes of an event. Above the largest reply, since a provider may send it as one.
const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;

/// Format of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Server-sent events.
    Events,
    /// JSON in lines; empty ones are skipped, and one without an end is dropped.
    Lines,
}

impl Format {
    /// Returns the prefix of the content type of such streams.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Events => "text/event-stream",
            Self::Lines => "application/x-ndjson",
        }
    }
}

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Name of the event; empty if the server gave none.
    pub(crate) name: String,
    /// Data lines, joined by line feeds.
    pub(crate) data: String,
}

/// Reads the events of one reply.
pub(crate) trait ReplyReader: Default + Send {
    /// Format of the stream.
    const FORMAT: Format = Format::Events;

    /// Creates the reader of a reply that may act on `shown` by the provider's own tools. `model`
    /// is the model of the reply unless the stream names one.
    fn new(model: &str, shown: Option<Shown>) -> Self;

    /// Takes the next event, and returns the reply once that is whole. It is not called again after
    /// that.
    ///
    /// # Errors
    /// When the stream violates the protocol, or carries an error.
    fn event(
        &mut self,
        event: &Event,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Option<Reply>, ModelError>;

    /// Returns the reply at the proper end of the body, if the protocol does not require a closing
    /// event.
    ///
    /// # Errors
    /// When the reply is not valid.
    fn end(&mut self) -> Result<Option<Reply>, ModelError> {
        Ok(None)
    }

    /// Describes the position in the reply: "before it began".
    fn position(&self) -> &'static str;
}

/// A stream that is being received.
pub(crate) struct Stream<R> {
    decoder: Decoder,
    reader: R,
}

impl<R: ReplyReader> Stream<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            decoder: Decoder::new(R::FORMAT),
            reader,
        }
    }

    /// Takes the next bytes, and returns the reply once they complete it. It is not called again
    /// after that.
    ///
    /// # Errors
    /// Those of the reader; [`ModelError::BadOutput`] for an event beyond [`MAX_EVENT_BYTES`].
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Option<Reply>, ModelError> {
        let mut finished = None;
        self.decoder.push(bytes, |event| {
            if finished.is_none() {
                finished = self.reader.event(&event, deltas)?;
            }
            Ok(())
        })?;
        Ok(finished)
    }

    /// Handles the proper end of the body.
    ///
    /// # Errors
    /// [`ModelError::BadOutput`] if the reply is not whole.
    pub(crate) fn end(&mut self) -> Result<Reply, ModelError> {
        let reply = self.reader.end()?;
        reply.ok_or_else(|| self.broken_off("the provider sent no more"))
    }

    /// Returns the error for a body that breaks off: [`ModelError::BadOutput`] with the position.
    pub(crate) fn broken_off(&self, reason: &str) -> ModelError {
        let position = self.reader.position();
        bad(format!("the stream broke off {position}: {reason}"))
    }
}

/// Turns bytes into events.
#[derive(Debug)]
struct Decoder {
    format: Format,
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    after_carriage_return: bool,
    past_first_line: bool,
}

impl Decoder {
    fn new(format: Format) -> Self {
        Self {
            format,
            line: Vec::new(),
            event: Event::default(),
            has_data: false,
            after_carriage_return: false,
            past_first_line: false,
        }
    }

    /// Takes the next bytes and passes each completed event to `on_event`.
    fn push(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(Event) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        let mut rest = bytes;
        while let Some((&first, after)) = rest.split_first() {
            if std::mem::take(&mut self.after_carriage_return) && first == b'\n' {
                rest = after;
                continue;
            }
            let is_end = |&byte: &u8| byte == b'\n' || byte == b'\r';
            let end = rest.iter().position(is_end);
            let (more, after) = rest.split_at(end.unwrap_or(rest.len()));
            if self.line.len() + self.event.data.len() + more.len() > MAX_EVENT_BYTES {
                return Err(bad(format!(
                    "one event is longer than {MAX_EVENT_BYTES} bytes"
                )));
            }
            self.line.extend_from_slice(more);
            let Some((&end, after)) = after.split_first() else {
                break;
            };
            rest = after;
            self.after_carriage_return = end == b'\r';
            if let Some(event) = self.end_line() {
                on_event(event)?;
            }
        }
        Ok(())
    }

    fn end_line(&mut self) -> Option<Event> {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = if std::mem::replace(&mut self.past_first_line, true) {
            &line
        } else {
            line.strip_prefix('\u{feff}').unwrap_or(&line)
        };
        if self.format == Format::Lines {
            let data = line.trim().to_owned();
            let name = "line".to_owned();
            return (!data.is_empty()).then_some(Event { name, data });
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(format: Format, chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut events = Vec::new();
        let mut decoder = Decoder::new(format);
        for chunk in chunks {
            decoder
                .push(chunk, |event| {
                    events.push((event.name, event.data));
                    Ok(())
                })
                .unwrap();
        }
        events
    }

    #[track_caller]
    fn check(format: Format, stream: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(n, d)| ((*n).to_owned(), (*d).to_owned()))
            .collect();
        let bytes = stream.as_bytes();
        assert_eq!(decode(format, &[bytes]), expected, "{stream:?}");
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(decode(format, &single), expected, "{stream:?} byte by byte");
        for at in 0..bytes.len() {
            assert_eq!(
                decode(format, &[&bytes[..at], &bytes[at..]]),
                expected,
                "{stream:?} at {at}"
            );
        }
    }

    #[test]
    fn every_way_to_cut_a_stream_gives_the_same_events() {
        let check = |stream, expected| check(Format::Events, stream, expected);
        check("event: a\ndata: 1\n\n", &[("a", "1")]);
        check(
            "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n",
            &[("a", "1"), ("", "2")],
        );
        check("event: a\rdata: 1\r\rdata: 2\r\r", &[("a", "1"), ("", "2")]);
        check("data:1\n\n", &[("", "1")]);
        check("data:  1\n\n", &[("", " 1")]);
        check("data: {\ndata\ndata: }\n\n", &[("", "{\n\n}")]);
        check("\u{feff}data: 1\n\n\u{feff}data: 2\n\n", &[("", "1")]);
        check(
            ": comment\n\n:\n\nevent: lonely\n\nid: 3\nretry: 5\ndata: x\n\n",
            &[("", "x")],
        );
        check("data: grün 🦀 and a:b\n\n", &[("", "grün 🦀 and a:b")]);
        check("data: never ended\n", &[]);
    }

    #[test]
    fn every_way_to_cut_a_stream_gives_the_same_lines() {
        check(
            Format::Lines,
            "{\"a\": \"grün 🦀\"}\r\n\n  \n[1]\r{\"b\": \"\\n\"}\n\nnever ended",
            &[
                ("line", "{\"a\": \"grün 🦀\"}"),
                ("line", "[1]"),
                ("line", "{\"b\": \"\\n\"}"),
            ],
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(
            decode(Format::Events, &[b"data: \xff\xfe\n\n"]),
            [(String::new(), "\u{fffd}\u{fffd}".into())]
        );
    }

    #[test]
    fn an_endless_event_is_refused() {
        for format in [Format::Events, Format::Lines] {
            let mut decoder = Decoder::new(format);
            let chunk = vec![b'x'; MAX_EVENT_BYTES];
            let mut push = |bytes: &[u8]| decoder.push(bytes, |_| Ok(()));
            assert_eq!(push(b"data: "), Ok(()));
            let error = push(&chunk).unwrap_err();
            assert!(error.to_string().contains("one event is longer"), "{error}");
        }
    }
}
