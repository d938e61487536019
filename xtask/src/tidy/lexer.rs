//! Finds the comments and literals of a Rust source: no more than is needed to tell code from text.
//! Understands nested comments, raw strings, byte and C strings, and lifetimes.

use std::ops::Range;

/// A part of a source that is not code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Comment,
    Literal,
}

/// The comments and literals of `text`, in order, as ranges of bytes.
pub(super) fn parts(text: &str) -> Vec<(Part, Range<usize>)> {
    let bytes = text.as_bytes();
    let mut parts = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let found = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                Some((Part::Comment, position(bytes, at, b"\n")))
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                Some((Part::Comment, end_of_block_comment(bytes, at)))
            }
            b'"' => Some((Part::Literal, end_of_string(bytes, at))),
            b'\'' => end_of_character(text, at).map(|end| (Part::Literal, end)),
            byte if is_word(byte) => {
                let end = end_of_word(bytes, at);
                let raw = matches!(&bytes[at..end], b"r" | b"br" | b"cr");
                let literal = raw.then(|| end_of_raw_string(bytes, end)).flatten();
                if literal.is_none() {
                    at = end;
                    continue;
                }
                literal.map(|end| (Part::Literal, end))
            }
            _ => None,
        };
        match found {
            Some((part, end)) => {
                parts.push((part, at..end));
                at = end;
            }
            None => at += 1,
        }
    }
    parts
}

/// Whether a byte can be part of a name. Bytes beyond ASCII count, so that no name is cut.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

pub(super) fn end_of_word(bytes: &[u8], start: usize) -> usize {
    bytes[start..]
        .iter()
        .position(|byte| !is_word(*byte))
        .map_or(bytes.len(), |len| start + len)
}

/// Returns the next position of `needle` at or after `start`; the end without it.
fn position(bytes: &[u8], start: usize, needle: &[u8]) -> usize {
    let found = bytes[start..]
        .windows(needle.len())
        .position(|window| window == needle);
    found.map_or(bytes.len(), |offset| start + offset)
}

fn end_of_block_comment(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < bytes.len() {
        match &bytes[at..bytes.len().min(at + 2)] {
            b"/*" => {
                depth += 1;
                at += 2;
            }
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

/// `start` is the opening quotation mark.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// `start` follows the `r`. `None` for a raw identifier such as `r#type`.
fn end_of_raw_string(bytes: &[u8], start: usize) -> Option<usize> {
    let hashes = bytes[start..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    let open = start + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let closing = [&b"\""[..], &vec![b'#'; hashes]].concat();
    Some(
        bytes
            .len()
            .min(position(bytes, open + 1, &closing) + closing.len()),
    )
}

/// `start` is an apostrophe. `None` for a lifetime.
fn end_of_character(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let first = text[start + 1..].chars().next()?;
    let after = start + 1 + first.len_utf8();
    if first == '\\' {
        // The escaped character may itself be an apostrophe.
        return Some(
            bytes
                .len()
                .min(position(bytes, bytes.len().min(after + 1), b"'") + 1),
        );
    }
    (bytes.get(after) == Some(&b'\'')).then_some(after + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `expected` are the parts as they stand in `text`.
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<&str> = parts(text)
            .into_iter()
            .map(|(_, range)| &text[range])
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn parts_are_found() {
        check("a / b", &[]);
        check("a // b\nc", &["// b"]);
        check("a /* b /* c */ d */ e", &["/* b /* c */ d */"]);
        check(r#"f("a \" // b", c)"#, &[r#""a \" // b""#]);
        check(
            r####"r##"a "# b"## + br"c\" + r#type"####,
            &[r###"r##"a "# b"##"###, r#"br"c\""#],
        );
        check("let c = '\"'; let d: &'a str = '\\'';", &["'\"'", "'\\''"]);
        check(
            "<'a, 'b>('{', b'}', '\\u{7f}')",
            &["'{'", "'}'", "'\\u{7f}'"],
        );
        check("'é' 'ü", &["'é'"]);
        check("b\"x\" c\"y\" var\"z\"", &["\"x\"", "\"y\"", "\"z\""]);
    }

    #[test]
    fn an_unfinished_source_ends() {
        for text in [
            "\"a", "\"a\\", "/* a", "r#\"a\"", "'\\", "'", "'\\'", "// a", "r", "b'",
        ] {
            for (_, range) in parts(text) {
                assert!(text.get(range).is_some(), "{text}");
            }
        }
    }
}
