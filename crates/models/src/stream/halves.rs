//! Characters that a server cut in two, because it cuts a reply by tokens: half of the bytes of one,
//! or one of the two surrogates of an escape, at the end of one text and the rest at the beginning
//! of the next.
//!
//! The first half waits for its other one. A half that stays alone becomes U+FFFD, or nothing at
//! the end of a text.

use std::mem;

/// The halves that wait.
#[derive(Debug, Default)]
pub(super) struct Halves {
    bytes: Vec<u8>,
    escape: String,
}

impl Halves {
    /// Returns the bytes as text, with the halves of the texts before.
    pub(super) fn join(&mut self, bytes: Vec<u8>) -> String {
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => self.join_bytes(error.as_bytes()),
        };
        if text.contains("\\u") {
            self.join_escapes(&text)
        } else {
            text
        }
    }

    fn join_bytes(&mut self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        let mut rest = bytes;
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            rest = &rest[chunk.valid().len() + invalid.len()..];
            if invalid.is_empty() {
                continue;
            }
            let begins = invalid[0] >= 0xc0;
            if begins || self.bytes.is_empty() {
                self.bytes.clear();
            }
            self.bytes.extend_from_slice(invalid);
            // The end of a text, or more of the same character follows.
            let waits = matches!(rest.first(), Some(b'"' | 0x80..=0xbf));
            match std::str::from_utf8(&self.bytes) {
                Ok(whole) => text.push_str(whole),
                Err(error) if error.error_len().is_none() && waits => continue,
                Err(_) => text.push('\u{fffd}'),
            }
            self.bytes.clear();
        }
        text
    }

    fn join_escapes(&mut self, text: &str) -> String {
        let mut joined = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('\\') {
            joined.push_str(&rest[..at]);
            rest = &rest[at..];
            let (unit, next) = (escaped(rest), rest.get(6..).unwrap_or_default());
            let length = match unit {
                Some(0xd800..=0xdbff) if matches!(escaped(next), Some(0xdc00..=0xdfff)) => 12,
                Some(0xd800..=0xdbff) if next.starts_with('"') => {
                    rest[..6].clone_into(&mut self.escape);
                    rest = next;
                    continue;
                }
                Some(0xdc00..=0xdfff) if joined.ends_with('"') && !self.escape.is_empty() => {
                    joined.push_str(&mem::take(&mut self.escape));
                    6
                }
                Some(0xd800..=0xdfff) => {
                    joined.push_str("\\ufffd");
                    rest = next;
                    continue;
                }
                Some(_) => 6,
                None => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            };
            joined.push_str(&rest[..length]);
            rest = &rest[length..];
        }
        joined + rest
    }
}

/// Returns the code unit of the escape at the beginning.
fn escaped(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(texts: &[&[u8]], expected: &str) {
        let mut halves = Halves::default();
        let joined = texts.iter().map(|text| halves.join(text.to_vec()));
        assert_eq!(joined.collect::<String>(), expected);
    }

    #[test]
    fn halves_find_each_other() {
        check(&[b"\"a\xf0\x9f\"", b"\"\xa6\x80b\""], "\"a\"\"🦀b\"");
        check(&[b"\"\xf0\"", b"\"\x9f\xa6\x80\""], "\"\"\"🦀\"");
        check(
            &[b"\"\xf0\x9f\"", b"\"\xa6\"", b"\"\x80\""],
            "\"\"\"\"\"🦀\"",
        );
        check(
            &[b"\"\xf0\x9fa\"", b"\"\xa6\""],
            "\"\u{fffd}a\"\"\u{fffd}\"",
        );
        check(&[b"\xff\xfe"], "\u{fffd}\u{fffd}");
        check(&[br#""\ud83e""#, br#""\udd80b""#], r#""""\ud83e\udd80b""#);
        check(&[br#""\ud83e\udd80""#], r#""\ud83e\udd80""#);
        check(&[br#""\ud83ea\udd80""#], r#""\ufffda\ufffd""#);
        check(
            &[br#""\\ud83e""#, br#""\n\u00e4\""#],
            r#""\\ud83e""\n\u00e4\""#,
        );
        check(&["\"\\uä\\".as_bytes()], "\"\\uä\\");
    }
}
