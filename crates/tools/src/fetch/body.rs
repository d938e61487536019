//! Converts the body of an answer to text: type, content encoding, character encoding.

use std::io::Read as _;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use flate2::read::MultiGzDecoder;

/// Maximum bytes after decompression: a small answer may become a huge one.
pub(super) const MAX_UNPACKED_BYTES: u64 = 10 * 1024 * 1024;

/// Number of bytes of a page that are searched for its character encoding (HTML standard, "prescan
/// a byte stream to determine its encoding").
const PRESCANNED_BYTES: usize = 1024;

/// Number of bytes at the start of a body that are checked for a NUL byte, the sign of binary data.
const SNIFFED_BYTES: usize = 8 * 1024;

/// The type of an answer's body, which determines how it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyKind {
    Html,
    /// Text that is shown unchanged.
    Text,
    /// Any other type, which is not shown.
    Other,
}

pub(super) fn kind(content_type: &str, body: &[u8]) -> BodyKind {
    let essence = content_type.split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    let has_bom = Encoding::for_bom(body).is_some();
    let is_binary = !has_bom && body[..body.len().min(SNIFFED_BYTES)].contains(&0);
    match essence.as_str() {
        _ if is_binary => BodyKind::Other,
        "text/html" | "application/xhtml+xml" => BodyKind::Html,
        "" | "application/octet-stream" => sniffed(body),
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/ecmascript"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/x-sh"
        | "application/sql"
        | "application/x-ndjson"
        | "image/svg+xml" => BodyKind::Text,
        text if text.starts_with("text/") => BodyKind::Text,
        text if text.ends_with("+json") || text.ends_with("+xml") => BodyKind::Text,
        _ => BodyKind::Other,
    }
}

fn sniffed(body: &[u8]) -> BodyKind {
    let start = &body[..body.len().min(PRESCANNED_BYTES)];
    let start = String::from_utf8_lossy(start)
        .trim_start()
        .to_ascii_lowercase();
    if start.starts_with("<!doctype html") || start.starts_with("<html") {
        BodyKind::Html
    } else if std::str::from_utf8(body).is_ok() || Encoding::for_bom(body).is_some() {
        BodyKind::Text
    } else {
        BodyKind::Other
    }
}

/// Returns the decompressed body, and whether it was cut. The error describes why it cannot be
/// decompressed.
pub(super) fn unpack(body: Vec<u8>, encoding: &str) -> Result<(Vec<u8>, bool), String> {
    match encoding {
        "" | "identity" => return Ok((body, false)),
        "gzip" | "x-gzip" => {}
        // Only gzip was requested.
        other => return Err(format!("it was sent packed as `{other}`")),
    }
    let mut unpacked = Vec::new();
    let mut decoder = MultiGzDecoder::new(body.as_slice()).take(MAX_UNPACKED_BYTES + 1);
    // Cut or damaged: what came before is still worth reading.
    let whole = decoder.read_to_end(&mut unpacked).is_ok();
    if unpacked.is_empty() && !whole {
        return Err("it was sent packed with gzip and is damaged".to_owned());
    }
    let is_long = unpacked.len() as u64 > MAX_UNPACKED_BYTES;
    unpacked.truncate(usize::try_from(MAX_UNPACKED_BYTES).unwrap_or(usize::MAX));
    Ok((unpacked, is_long || !whole))
}

/// Returns the body as text, and the name of its character encoding: the one that a byte order
/// mark, the content type or the page itself names, else UTF-8, else windows-1252, which any bytes
/// are.
pub(super) fn decode(body: &[u8], content_type: &str, kind: BodyKind) -> (String, &'static str) {
    let of_page = || (kind == BodyKind::Html).then(|| in_page(body)).flatten();
    let named = charset(content_type).or_else(of_page);
    let encoding = named.unwrap_or(match std::str::from_utf8(body) {
        Ok(_) => UTF_8,
        // A character that was cut in half at the end does not make the others invalid.
        Err(error) if error.error_len().is_none() => UTF_8,
        Err(_) => WINDOWS_1252,
    });
    let (text, used, _) = encoding.decode(body);
    (text.into_owned(), used.name())
}

fn charset(text: &str) -> Option<&'static Encoding> {
    let lower = text.to_ascii_lowercase();
    let at = lower.find("charset")? + "charset".len();
    let value = lower[at..].trim_start().strip_prefix('=')?.trim_start();
    let value = value.trim_start_matches(['"', '\'']);
    let end = value.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:.+".contains(c)));
    Encoding::for_label(&value.as_bytes()[..end.unwrap_or(value.len())])
}

/// Returns the encoding that `<meta charset>` or `<meta http-equiv>` names. A page that declares
/// UTF-16 there is not UTF-16, as it could not have been read so far.
fn in_page(body: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(&body[..body.len().min(PRESCANNED_BYTES)]);
    let start = start.to_ascii_lowercase();
    let mut tags = start.split("<meta").skip(1);
    let found = tags.find_map(|tag| charset(tag.split('>').next()?))?;
    Some(found.output_encoding())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters() {
        for (body, content_type, kind, text, name) in [
            (&b"caf\xc3\xa9"[..], "", BodyKind::Text, "café", "UTF-8"),
            (
                b"caf\xe9 ole",
                "",
                BodyKind::Text,
                "café ole",
                "windows-1252",
            ),
            (b"caf\xc3", "", BodyKind::Text, "caf\u{fffd}", "UTF-8"),
            (
                b"\xc0\xee",
                "text/plain; charset=\"Windows-1251\"",
                BodyKind::Text,
                "Ао",
                "windows-1251",
            ),
            (
                b"\x83e\x83X",
                "text/plain;charset=shift_jis",
                BodyKind::Text,
                "テス",
                "Shift_JIS",
            ),
            (
                b"\xff\xfea\0",
                "text/plain; charset=utf-8",
                BodyKind::Text,
                "a",
                "UTF-16LE",
            ),
            (
                b"<META http-equiv=a content='text/html; charset=koi8-r'>\xc1",
                "text/html",
                BodyKind::Html,
                "<META http-equiv=a content='text/html; charset=koi8-r'>а",
                "KOI8-R",
            ),
            (
                b"<meta charset=utf-16>\xc3\xa9",
                "text/html",
                BodyKind::Html,
                "<meta charset=utf-16>é",
                "UTF-8",
            ),
            (
                b"<meta charset=nonsense>",
                "text/html; charset=",
                BodyKind::Html,
                "<meta charset=nonsense>",
                "UTF-8",
            ),
        ] {
            let decoded = decode(body, content_type, kind);
            assert_eq!(decoded, (text.to_owned(), name), "{content_type}");
        }
    }

    #[test]
    fn kinds() {
        for (content_type, body, expected) in [
            ("Text/HTML; charset=utf-8", &b"x"[..], BodyKind::Html),
            ("text/plain", b"<html>", BodyKind::Text),
            ("application/ld+json", b"{}", BodyKind::Text),
            ("", b" \n<!DOCTYPE html>", BodyKind::Html),
            ("", b"plain", BodyKind::Text),
            ("", b"\xff\xff", BodyKind::Other),
            ("text/plain", b"a\0b", BodyKind::Other),
            ("text/plain", b"\xff\xfea\0", BodyKind::Text),
            ("application/pdf", b"%PDF-1.7", BodyKind::Other),
            ("text/html", b"", BodyKind::Html),
        ] {
            assert_eq!(
                kind(content_type, body),
                expected,
                "{content_type} {body:?}"
            );
        }
    }
}
