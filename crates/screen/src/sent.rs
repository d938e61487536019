//! Forms that are sent: whether one is still as it was judged, and whether a request carries it.
//!
//! Between the judgement and the request, scripts of the page can change every value. What was
//! measured has a state, which is compared when the input is carried out; and where nothing but the
//! judged form may be sent, the request itself is compared with it.

use std::sync::LazyLock;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gyrus_contract::SentForm;

/// The key of the digests of this process: without it, nobody can tell values from digests in a
/// journal.
static KEY: LazyLock<[u8; 32]> = LazyLock::new(|| {
    let mut key = [0; 32];
    getrandom::fill(&mut key).expect("the system has random bytes");
    key
});

/// Returns the form with its state.
pub(crate) fn with_state(form: &SentForm) -> SentForm {
    let mut hasher = blake3::Hasher::new_keyed(&KEY);
    let mut add = |text: &str| {
        hasher.update(&u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    for control in &form.controls {
        add(&control.name);
        add(&control.label);
        add(&control.kind);
        add(control.value.as_deref().map_or("absent", |_| "sent"));
        add(control.value.as_deref().unwrap_or_default());
        add(&control.shown);
    }
    SentForm {
        state: hasher.finalize().to_hex()[..32].to_owned(),
        ..form.clone()
    }
}

/// A form that is expected in a request, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpectedForm {
    action: String,
    /// Names and values in the order of the page, with line breaks in one form.
    entries: Vec<(String, String)>,
}

impl ExpectedForm {
    pub(crate) fn new(action: &str, form: &SentForm) -> Self {
        let entries = form.controls.iter().filter_map(|control| {
            let value = control.value.as_deref()?;
            Some((with_plain_breaks(&control.name), with_plain_breaks(value)))
        });
        Self {
            action: without_fragment(action).to_owned(),
            entries: entries.collect(),
        }
    }

    /// Whether a request with this address and body is the form. `body` is `None` if the browser
    /// does not report all of it.
    pub(crate) fn is(&self, address: &str, content_type: &str, body: Option<&[u8]>) -> bool {
        let sent = match content_type.split(';').next().map(str::trim) {
            // A form without a value has no body.
            _ if self.entries.is_empty() && body.is_none_or(<[u8]>::is_empty) => Some(Vec::new()),
            Some("application/x-www-form-urlencoded") => body.map(url_encoded),
            Some("multipart/form-data") => {
                let boundary = content_type.split_once("boundary=").map(|(_, rest)| rest);
                body.zip(boundary)
                    .and_then(|(body, boundary)| multipart(body, boundary))
            }
            _ => None,
        };
        without_fragment(address) == self.action && sent.is_some_and(|sent| sent == self.entries)
    }
}

/// Returns the bytes of a body, given in pieces as base64; `None` if one is missing.
pub(crate) fn body_of<'a>(pieces: impl Iterator<Item = Option<&'a str>>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    for piece in pieces {
        body.extend(STANDARD.decode(piece?).ok()?);
    }
    Some(body)
}

fn without_fragment(address: &str) -> &str {
    address.split('#').next().unwrap_or_default()
}

fn with_plain_breaks(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn url_encoded(body: &[u8]) -> Vec<(String, String)> {
    let decoded = |text: &[u8]| {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.iter().copied();
        while let Some(byte) = rest.next() {
            bytes.push(match byte {
                b'+' => b' ',
                b'%' => {
                    let mut digit = || char::from(rest.next()?).to_digit(16);
                    let value = digit().zip(digit()).map(|(high, low)| high * 16 + low);
                    value
                        .and_then(|value| u8::try_from(value).ok())
                        .unwrap_or(0)
                }
                byte => byte,
            });
        }
        with_plain_breaks(&String::from_utf8_lossy(&bytes))
    };
    let pairs = body
        .split(|byte| *byte == b'&')
        .filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let at = pair
            .iter()
            .position(|byte| *byte == b'=')
            .unwrap_or(pair.len());
        let value = pair.get(at + 1..).unwrap_or_default();
        (decoded(&pair[..at]), decoded(value))
    });
    pairs.collect()
}

/// Reads a body in parts; `None` where it is not one of texts alone.
fn multipart(body: &[u8], boundary: &str) -> Option<Vec<(String, String)>> {
    let text = std::str::from_utf8(body).ok()?;
    let line = format!("--{}", boundary.trim_matches('"'));
    let mut parts = text.split(line.as_str());
    // Nothing stands before the first boundary.
    parts.next().filter(|before| before.is_empty())?;
    let mut entries = Vec::new();
    for part in parts {
        if part.trim_end() == "--" {
            return Some(entries);
        }
        let (head, value) = part.strip_prefix("\r\n")?.split_once("\r\n\r\n")?;
        let value = value.strip_suffix("\r\n")?;
        let name = head.strip_prefix("Content-Disposition: form-data; name=\"")?;
        // Anything after the name is a file's.
        let name = name.strip_suffix('"').filter(|name| !name.contains('"'))?;
        let name = name.replace("%22", "\"").replace("%0D%0A", "\n");
        entries.push((name, with_plain_breaks(value)));
    }
    None
}

#[cfg(test)]
mod tests {
    use gyrus_contract::SentControl;

    use super::*;

    fn form(entries: &[(&str, Option<&str>)]) -> SentForm {
        let controls = entries.iter().map(|(name, value)| SentControl {
            name: (*name).to_owned(),
            label: String::new(),
            kind: "text".to_owned(),
            autocomplete: String::new(),
            value: value.map(str::to_owned),
            shown: String::new(),
        });
        SentForm {
            controls: controls.collect(),
            state: String::new(),
        }
    }

    #[test]
    fn a_request_is_the_form_or_not() {
        let to = "http://a.example/send?x=1";
        let sent = form(&[
            ("to", Some("Ada & Bo")),
            ("gift", None),
            ("text", Some("one\ntwo ü")),
        ]);
        let expected = ExpectedForm::new(&format!("{to}#part"), &sent);
        let kind = "application/x-www-form-urlencoded";
        let body = "to=Ada+%26+Bo&text=one%0D%0Atwo+%C3%BC";
        let parts = "--XX\r\nContent-Disposition: form-data; name=\"to\"\r\n\r\nAda & Bo\r\n\
                     --XX\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\none\r\ntwo ü\r\n--XX--\r\n";
        assert!(expected.is(to, kind, Some(body.as_bytes())));
        assert!(expected.is(
            to,
            "multipart/form-data; boundary=XX",
            Some(parts.as_bytes())
        ));
        for (address, kind, body) in [
            ("http://a.example/send?x=2", kind, body),
            ("http://b.example/send?x=1", kind, body),
            (to, kind, "to=Eve&text=one%0D%0Atwo+%C3%BC"),
            (to, kind, "to=Ada+%26+Bo&text=one%0D%0Atwo+%C3%BC&cc=eve"),
            (to, kind, "to=Ada+%26+Bo"),
            (to, kind, ""),
            (to, "application/json", "{}"),
            (to, "text/plain", body),
            (to, "", body),
            (to, "multipart/form-data; boundary=XX", body),
            (to, "multipart/form-data", parts),
            (
                to,
                "multipart/form-data; boundary=XX",
                &parts.replace("Bo", "Eve"),
            ),
            (to, "multipart/form-data; boundary=XX", "--XX"),
            (to, kind, "to=%zz&%&=%"),
        ] {
            assert!(
                !expected.is(address, kind, Some(body.as_bytes())),
                "{address} {body}"
            );
        }
        assert!(!expected.is(to, kind, None));
        let empty = ExpectedForm::new(to, &form(&[("gift", None)]));
        assert!(empty.is(to, kind, Some(b"")) && empty.is(to, "", None));
        assert!(!empty.is(to, kind, Some(b"gift=on")));
    }

    #[test]
    fn a_state_tells_every_change() {
        let state = |entries: &[(&str, Option<&str>)]| with_state(&form(entries)).state;
        let same = state(&[("a", Some("b")), ("c", None)]);
        assert_eq!(same, state(&[("a", Some("b")), ("c", None)]));
        assert_eq!(same.len(), 32);
        for other in [
            &[("a", Some("b"))][..],
            &[("a", Some("b")), ("c", Some(""))],
            &[("a", Some("bc")), ("", None)],
            &[("a", None), ("c", Some("b"))],
        ] {
            assert_ne!(same, state(other));
        }
    }
}
