//! File names as text. A name is bytes, and JSON is text; so bytes that are not UTF-8 are escaped.
//!
//! `\` becomes `\\` and a byte outside UTF-8 becomes `\x` and two digits. Every name has exactly
//! one such form, and [`decode`] takes no other: two entries can never mean one file.

use std::{ffi::OsStr, fmt::Write as _, os::unix::ffi::OsStrExt as _, path::Path};

pub(crate) fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Returns the text of a name or path.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '\\' {
                text.push('\\');
            }
            text.push(character);
        }
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("writing to a String cannot fail");
        }
    }
    text
}

/// Decodes the bytes from a text made by [`encode`]; `None` if it was not.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        match rest {
            [b'\\', after @ ..] => {
                bytes.push(b'\\');
                rest = after;
            }
            [b'x', high, low, after @ ..] => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = after;
            }
            _ => return None,
        }
    }
    (encode(&bytes) == text).then_some(bytes)
}

/// Returns the path's parts, if it is relative and plain: no empty part, no `.`, no `..`, no NUL.
pub(super) fn parts(path: &[u8]) -> Option<Vec<&[u8]>> {
    let parts: Vec<_> = path.split(|byte| *byte == b'/').collect();
    let plain = |part: &&[u8]| !matches!(*part, b"" | b"." | b"..") && !part.contains(&0);
    parts.iter().all(plain).then_some(parts)
}
