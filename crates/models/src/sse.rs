//! Server-sent events: bytes in, events out, in whatever pieces the network delivers them.
//!
//! A pure decoder of the stream format in the HTML standard (section 9.2, "server-sent events"):
//! lines end with LF, CR or CRLF, a byte order mark may come first, comments and unknown fields are
//! skipped, and an event without a final blank line is dropped. Bytes are gathered into whole lines
//! before they become text, so a character may be split between two chunks.
//!
//! Not here: `id` and `retry`. A reply that breaks off is requested again, never resumed.

/// Maximum bytes of an event. Above the largest reply, since a provider may send it as one.
pub(crate) const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Name of the event; empty if the server gave none.
    pub(crate) name: String,
    /// Data lines, joined by line feeds.
    pub(crate) data: String,
}

/// Error: an event grew beyond [`MAX_EVENT_BYTES`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("one event is longer than {MAX_EVENT_BYTES} bytes")]
pub(crate) struct EventTooLong;

/// Turns bytes into events. Start from `Decoder::default()`.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    after_carriage_return: bool,
    past_first_line: bool,
}

impl Decoder {
    /// Takes the next bytes and passes each completed event to `on_event`.
    pub(crate) fn push<E: From<EventTooLong>>(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(Event) -> Result<(), E>,
    ) -> Result<(), E> {
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
                return Err(EventTooLong.into());
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
        let line = match std::mem::replace(&mut self.past_first_line, true) {
            true => &line,
            false => line.strip_prefix('\u{feff}').unwrap_or(&line),
        };
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

    fn decode(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut events = Vec::new();
        let mut decoder = Decoder::default();
        for chunk in chunks {
            decoder
                .push(chunk, |event| -> Result<(), EventTooLong> {
                    events.push((event.name, event.data));
                    Ok(())
                })
                .unwrap();
        }
        events
    }

    #[test]
    fn every_way_to_cut_a_stream_gives_the_same_events() {
        let check = |stream: &str, expected: &[(&str, &str)]| {
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
        };
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
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(
            decode(&[b"data: \xff\xfe\n\n"]),
            [(String::new(), "\u{fffd}\u{fffd}".into())]
        );
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut decoder = Decoder::default();
        let chunk = vec![b'x'; MAX_EVENT_BYTES];
        let mut push = |bytes: &[u8]| decoder.push(bytes, |_| Ok::<(), EventTooLong>(()));
        assert_eq!(push(b"data: "), Ok(()));
        assert_eq!(push(&chunk), Err(EventTooLong));
    }
}
