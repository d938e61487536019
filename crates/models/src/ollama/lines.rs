//! Lines of JSON: bytes in, lines out, in whatever pieces the network delivers them.
//!
//! A line ends with LF, CR or CRLF, none of which can stand in JSON unescaped within a string.
//! Empty lines are skipped, and a line without an end is dropped.

use gyrus_contract::ModelError;

use crate::errors::bad;

/// Maximum bytes of a line. Above the largest reply, since a server may send it as one.
const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;

/// Turns bytes into lines. Start from `Lines::default()`.
#[derive(Debug, Default)]
pub(super) struct Lines {
    line: Vec<u8>,
}

impl Lines {
    /// Takes the next bytes and hands each line that they complete to `on_line`.
    ///
    /// # Errors
    /// Those of `on_line`, and [`ModelError::BadOutput`] for a line beyond [`MAX_LINE_BYTES`].
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        mut on_line: impl FnMut(&str) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        for piece in bytes.split_inclusive(is_end) {
            let (text, ends) = match piece.split_last() {
                Some((last, text)) if is_end(last) => (text, true),
                _ => (piece, false),
            };
            if self.line.len() + text.len() > MAX_LINE_BYTES {
                return Err(bad(format!(
                    "one line is longer than {MAX_LINE_BYTES} bytes"
                )));
            }
            self.line.extend_from_slice(text);
            if ends {
                let line = std::mem::take(&mut self.line);
                let line = String::from_utf8_lossy(&line);
                if !line.trim().is_empty() {
                    on_line(line.trim())?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_cut_a_stream_gives_the_same_lines() {
        let stream =
            "{\"a\": \"grün 🦀\"}\r\n\n  \n[1]\r{\"b\": \"\\n\"}\n\nnever ended".as_bytes();
        for at in 0..stream.len() {
            let (mut lines, mut read) = (Lines::default(), Vec::new());
            for bytes in [&stream[..at], &stream[at..]] {
                let keep = |line: &str| {
                    read.push(line.to_owned());
                    Ok(())
                };
                lines.push(bytes, keep).unwrap();
            }
            assert_eq!(
                read,
                ["{\"a\": \"grün 🦀\"}", "[1]", "{\"b\": \"\\n\"}"],
                "cut at {at}"
            );
        }
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut lines = Lines::default();
        let most = vec![b'x'; MAX_LINE_BYTES];
        assert_eq!(lines.push(&most, |_| Ok(())), Ok(()));
        let error = lines.push(b"x", |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("one line is longer"), "{error}");
    }
}
