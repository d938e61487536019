//! Cuts the bytes of a body into events.
//!
//! Their form is seen by the first byte: an object or a list is JSON, one value after the other
//! (in lines, over several, in a list); everything else is server-sent events. Those are the ones
//! of the HTML standard (section 9.2): lines end with LF, CR or CRLF, a byte order mark may come
//! first, comments and unknown fields are skipped. Beyond the standard, an object without a field's
//! name is data, a field `error` is an event of that name, and a last event needs no blank line.
//!
//! Bytes are gathered into whole lines or values before they become text, so a character may be
//! split between two chunks.
//!
//! Not here: `id` and `retry`. A reply that breaks off is requested again, never resumed.

use std::mem;

use gyrus_contract::ModelError;

use super::halves::Halves;
use crate::errors::bad;

/// Maximum bytes of an event. Above the largest reply, since a provider may send it as one.
const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;

/// Name of the events of a body in JSON.
const VALUE: &str = "line";

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct StreamEvent {
    /// Name of the event; empty if the server gave none.
    pub(crate) name: String,
    /// Data lines, joined by line feeds.
    pub(crate) data: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum StreamForm {
    #[default]
    Unknown,
    Events,
    Values,
}

/// Turns bytes into events.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    form: StreamForm,
    /// The line or the value being received.
    line: Vec<u8>,
    event: StreamEvent,
    has_data: bool,
    has_fields: bool,
    after_carriage_return: bool,
    nesting: JsonPosition,
    halves: Halves,
}

impl Decoder {
    /// Decodes the next bytes and passes each completed event to `on_event`.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(StreamEvent) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        let mut rest = bytes;
        while let Some(&byte) = rest.first() {
            let (length, event) = match self.form {
                StreamForm::Unknown => (self.begin(byte), None),
                StreamForm::Events => self.line(rest)?,
                StreamForm::Values => self.value(rest)?,
            };
            rest = &rest[length..];
            event.map_or(Ok(()), &mut on_event)?;
        }
        Ok(())
    }

    /// Whether the body has fields of server-sent events.
    pub(super) fn is_stream(&self) -> bool {
        self.has_fields
    }

    /// Returns the last event of a body without its closing blank line; its data is empty if the
    /// body was cut off before them.
    pub(super) fn end(&mut self) -> Option<StreamEvent> {
        if self.form == StreamForm::Values {
            let event = self.end_value();
            return (!event.data.is_empty()).then_some(event);
        }
        let is_comment = self.line.is_empty() || self.line[0] == b':';
        let is_cut = self.has_fields && (!is_comment || !self.event.name.is_empty());
        self.end_line();
        self.end_event().or(is_cut.then(StreamEvent::default))
    }

    /// Reads a byte before the form is known, and returns the number of leading bytes to skip:
    /// white space, and the bytes of a byte order mark.
    fn begin(&mut self, byte: u8) -> usize {
        self.form = match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0xef | 0xbb | 0xbf => return 1,
            b'{' | b'[' => StreamForm::Values,
            _ => StreamForm::Events,
        };
        0
    }

    /// Decodes the rest of a line, and returns its length and the event that it completes.
    fn line(&mut self, rest: &[u8]) -> Result<(usize, Option<StreamEvent>), ModelError> {
        if mem::take(&mut self.after_carriage_return) && rest[0] == b'\n' {
            return Ok((1, None));
        }
        let is_end = |&byte: &u8| byte == b'\n' || byte == b'\r';
        let end = rest.iter().position(is_end);
        self.grow(&rest[..end.unwrap_or(rest.len())])?;
        let Some(end) = end else {
            return Ok((rest.len(), None));
        };
        self.after_carriage_return = rest[end] == b'\r';
        let is_blank = self.line.is_empty();
        self.end_line();
        Ok((end + 1, is_blank.then(|| self.end_event()).flatten()))
    }

    fn end_line(&mut self) {
        let bytes = mem::take(&mut self.line);
        let line = self.halves.join(bytes);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        let data = match field {
            "event" => {
                value.clone_into(&mut self.event.name);
                self.has_fields = true;
                return;
            }
            "data" => value,
            "error" => {
                field.clone_into(&mut self.event.name);
                value
            }
            _ if line.starts_with('{') => &line,
            _ => return,
        };
        self.has_fields = true;
        if mem::replace(&mut self.has_data, true) {
            self.event.data.push('\n');
        }
        self.event.data.push_str(data);
    }

    fn end_event(&mut self) -> Option<StreamEvent> {
        let event = mem::take(&mut self.event);
        mem::take(&mut self.has_data).then_some(event)
    }

    /// Decodes the rest of a value, and returns its length and the value if it is complete. Text
    /// that is not an object ends with its line.
    fn value(&mut self, rest: &[u8]) -> Result<(usize, Option<StreamEvent>), ModelError> {
        if self.line.is_empty() {
            let is_between = |byte: &&u8| b" \t\r\n,[]".contains(byte);
            let length = rest.iter().take_while(is_between).count();
            if length > 0 {
                return Ok((length, None));
            }
        }
        let end = rest.iter().position(|&byte| self.nesting.ends_with(byte));
        let length = end.map_or(rest.len(), |end| end + 1);
        self.grow(&rest[..length])?;
        Ok((length, end.map(|_| self.end_value())))
    }

    fn end_value(&mut self) -> StreamEvent {
        self.nesting = JsonPosition::default();
        let bytes = mem::take(&mut self.line);
        StreamEvent {
            name: VALUE.to_owned(),
            data: self.halves.join(bytes),
        }
    }

    fn grow(&mut self, more: &[u8]) -> Result<(), ModelError> {
        if self.line.len() + self.event.data.len() + more.len() > MAX_EVENT_BYTES {
            return Err(bad(format!(
                "one event is longer than {MAX_EVENT_BYTES} bytes"
            )));
        }
        self.line.extend_from_slice(more);
        Ok(())
    }
}

#[derive(Debug, Default)]
struct JsonPosition {
    depth: usize,
    in_string: bool,
    after_backslash: bool,
}

impl JsonPosition {
    /// Advances by a byte, and returns whether the value ends with it.
    fn ends_with(&mut self, byte: u8) -> bool {
        match byte {
            _ if mem::take(&mut self.after_backslash) => false,
            b'\n' | b'\r' if self.depth == 0 => true,
            b'\\' if self.in_string => {
                self.after_backslash = true;
                false
            }
            b'"' => {
                self.in_string = !self.in_string;
                false
            }
            b'{' | b'[' if !self.in_string => {
                self.depth += 1;
                false
            }
            b'}' | b']' if !self.in_string => {
                self.depth = self.depth.saturating_sub(1);
                self.depth == 0
            }
            _ => false,
        }
    }
}

/// Returns the length of the object at the beginning of `data`, if it is whole.
pub(super) fn first_object(data: &str) -> Option<usize> {
    let mut nesting = JsonPosition::default();
    let end = data.bytes().position(|byte| nesting.ends_with(byte));
    end.filter(|_| data.starts_with('{')).map(|end| end + 1)
}

/// Whether the data of an unfinished event is complete.
pub(super) fn is_whole(data: &str) -> bool {
    let data = data.trim();
    data == "[DONE]" || first_object(data).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut events = Vec::new();
        let mut decoder = Decoder::default();
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
    fn check(stream: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(n, d)| ((*n).to_owned(), (*d).to_owned()))
            .collect();
        let bytes = stream.as_bytes();
        assert_eq!(decode(&[bytes]), expected, "{stream:?}");
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(decode(&single), expected, "{stream:?} byte by byte");
        for at in 0..bytes.len() {
            assert_eq!(
                decode(&[&bytes[..at], &bytes[at..]]),
                expected,
                "{stream:?} at {at}"
            );
        }
    }

    #[test]
    fn every_way_to_cut_a_stream_gives_the_same_events() {
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
        check(
            ": alive\n\nerror: {\"a\": 1}\n\n{\"b\": 2}\n\n",
            &[("error", "{\"a\": 1}"), ("", "{\"b\": 2}")],
        );
    }

    #[test]
    fn every_way_to_cut_values_gives_the_same_values() {
        check(
            "\n{\"a\": \"grün 🦀\"}\r\n\n  \n[{\"b\": \"}\\\"{\"},\n{\"c\":\n[1]}]\r{}{\nodd\n{never ended",
            &[
                (VALUE, "{\"a\": \"grün 🦀\"}"),
                (VALUE, "{\"b\": \"}\\\"{\"}"),
                (VALUE, "{\"c\":\n[1]}"),
                (VALUE, "{}"),
            ],
        );
        check(
            "{}\nodd\n{}",
            &[(VALUE, "{}"), (VALUE, "odd\n"), (VALUE, "{}")],
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(
            decode(&[b"data: \xff\xfe\n\n"]),
            [(String::new(), "\u{fffd}\u{fffd}".into())]
        );
    }

    #[test]
    fn an_endless_event_is_refused() {
        for start in [&b"data: "[..], b"{"] {
            let mut decoder = Decoder::default();
            let chunk = vec![b'x'; MAX_EVENT_BYTES];
            let mut push = |bytes: &[u8]| decoder.push(bytes, |_| Ok(()));
            assert_eq!(push(start), Ok(()));
            let error = push(&chunk).unwrap_err();
            assert!(error.to_string().contains("one event is longer"), "{error}");
        }
    }
}
