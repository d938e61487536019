//! Forms that are sent: whether one is still as it was judged, and whether a request carries it.
//!
//! Between the judgement and the request, scripts of the page can change every value. What was
//! measured has a state, which is compared when the input is carried out; and where nothing but the
//! judged form may be sent, the request itself is compared with it.

use std::sync::LazyLock;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gyrus_contract::{Aim, Form, SentControl, SentForm};
use serde_json::Value;

/// The key of the digests of this process: without it, nobody can tell values from digests in a
/// journal.
static KEY: LazyLock<[u8; 32]> = LazyLock::new(|| {
    let mut key = [0; 32];
    getrandom::fill(&mut key).expect("the system has random bytes");
    key
});

/// Returns the form with the digest of its values.
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

/// Whether a form would send the same as when it was judged. A form that was filled in since
/// contains the intended values as its page formats them.
pub(crate) fn sends_the_same(judged: &Aim, now: &Aim) -> bool {
    let form = |aim: &Aim| Some((aim.form.clone()?, aim.form.as_ref()?.sends.clone()?));
    match (form(judged), form(now)) {
        (None, None) => true,
        (Some((_, was)), Some((_, is))) if judged.fills.is_empty() => was.state == is.state,
        (Some((form, was)), Some((_, is))) => {
            let is_known = |one: &SentControl| {
                let key = |one: &SentControl| (one.name.clone(), one.kind.clone());
                one.kind == "hidden" || was.controls.iter().any(|known| key(known) == key(one))
            };
            let entries = ExpectedForm::new(&form, &is).entries;
            let expected = ExpectedForm::new(&form, &was);
            let mut controls = was.controls.iter();
            is.controls.iter().all(is_known)
                && !controls.any(|one| expected.differs(one, &entries, MissingControl::Counts))
        }
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// A form that a request is expected to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpectedForm {
    action: String,
    method: String,
    /// Names and values in the order of the page, with line breaks in one form.
    entries: Vec<(String, String)>,
    controls: Vec<SentControl>,
}

/// Parts of names of fields that pages fill in at the last moment.
const FILLED_LATE: [&str; 5] = ["captcha", "turnstile", "token", "csrf", "nonce"];

impl ExpectedForm {
    pub(crate) fn new(form: &Form, sends: &SentForm) -> Self {
        let entries = sends.controls.iter().filter_map(|control| {
            let value = control.value.as_deref()?;
            Some((with_plain_breaks(&control.name), with_plain_breaks(value)))
        });
        Self {
            action: without_fragment(&form.action).to_owned(),
            method: form.method.clone(),
            entries: entries.collect(),
            controls: sends.controls.clone(),
        }
    }

    /// Whether the page itself sends something else than the judged form: to another address, or
    /// with another value of a control. It may add what a person did not see.
    pub(crate) fn is_contradicted(&self, sent: &SentRequest<'_>) -> bool {
        if !sent.is_document {
            let entries = sent.entries();
            return entries.is_some_and(|entries| self.is_contradicted_by_script(sent, &entries));
        }
        let (address, entries) = if sent.only_fetches && self.method == "get" {
            let (address, query) = without_fragment(sent.address)
                .split_once('?')
                .unwrap_or((without_fragment(sent.address), ""));
            if address != self.action.split('?').next().unwrap_or_default() {
                return false;
            }
            (self.action.as_str(), Some(url_encoded(query.as_bytes())))
        } else if sent.only_fetches {
            return false;
        } else {
            (without_fragment(sent.address), sent.entries())
        };
        let differs = |entries: &Vec<_>| {
            let mut controls = self.controls.iter();
            controls.any(|control| self.differs(control, entries, MissingControl::Counts))
        };
        address != self.action || entries.as_ref().is_some_and(differs)
    }

    /// Whether the values in a script's request contradict the form. Only the values of choices and
    /// of sent forms are comparable.
    fn is_contradicted_by_script(
        &self,
        sent: &SentRequest<'_>,
        entries: &[(String, String)],
    ) -> bool {
        let known = |control: &&SentControl| entries.iter().any(|(name, _)| *name == control.name);
        let shared: Vec<_> = self.controls.iter().filter(known).collect();
        let is_form = !sent.is_json() && shared.len() * 2 >= self.controls.len();
        let mut comparable = shared
            .into_iter()
            .filter(|control| is_form || is_choice(control));
        comparable.any(|control| self.differs(control, entries, MissingControl::IsFine))
    }

    /// Whether the value sent under the name of a control differs from the one in the form.
    fn differs(
        &self,
        control: &SentControl,
        sent: &[(String, String)],
        missing: MissingControl,
    ) -> bool {
        let named = |all: &[(String, String)]| -> Vec<String> {
            let own = all.iter().filter(|(name, _)| *name == control.name);
            own.map(|(_, value)| value.clone()).collect()
        };
        let (expected, sent) = (named(&self.entries), named(sent));
        let is_hidden = control.kind == "hidden";
        let name = control.name.to_lowercase();
        if control.secret || FILLED_LATE.iter().any(|part| name.contains(part)) {
            return false;
        }
        if sent.is_empty() {
            let is_plain = !is_hidden && control.kind != "submit";
            let had_value = expected.iter().any(|value| !value.is_empty());
            return missing == MissingControl::Counts && is_plain && had_value;
        }
        if expected.is_empty() {
            return !is_hidden;
        }
        let is_same = |(expected, sent): (&String, &String)| {
            let (expected, sent) = (expected.trim(), sent.trim());
            let is_filled = is_hidden && expected.is_empty();
            expected == sent || is_filled || (!is_choice(control) && is_like(expected, sent))
        };
        sent.len() != expected.len() || !expected.iter().zip(&sent).all(is_same)
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

/// Whether a control that is not sent counts as a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MissingControl {
    Counts,
    IsFine,
}

/// The parts of a page's request that are compared.
pub(crate) struct SentRequest<'a> {
    pub(crate) is_document: bool,
    pub(crate) only_fetches: bool,
    pub(crate) address: &'a str,
    pub(crate) content_type: &'a str,
    /// The body; `None` if the browser does not report all of it.
    pub(crate) body: Option<&'a [u8]>,
}

impl SentRequest<'_> {
    fn kind(&self) -> &str {
        let kind = self.content_type.split(';').next();
        kind.unwrap_or_default().trim()
    }

    fn is_json(&self) -> bool {
        self.kind().ends_with("json")
    }

    /// Returns the names and values; `None` if it has none that can be read.
    fn entries(&self) -> Option<Vec<(String, String)>> {
        let body = self.body?;
        match self.kind() {
            "application/x-www-form-urlencoded" => Some(url_encoded(body)),
            "multipart/form-data" => {
                let (_, boundary) = self.content_type.split_once("boundary=")?;
                multipart(body, boundary)
            }
            _ if self.is_json() => {
                let read: serde_json::Map<String, Value> = serde_json::from_slice(body).ok()?;
                let texts = read.into_iter().filter_map(|(name, value)| match value {
                    Value::String(text) => Some((name, text)),
                    Value::Number(number) => Some((name, number.to_string())),
                    Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
                });
                Some(texts.collect())
            }
            _ => None,
        }
    }
}

/// Whether a control's value is an option that a person chose, and is sent unchanged.
fn is_choice(control: &SentControl) -> bool {
    matches!(control.kind.as_str(), "radio" | "checkbox" | "submit")
        || control.kind.starts_with("select")
}

/// Maximum number of digits of a number that is compared exactly; one with more is the number of an
/// account.
const MAX_DIGITS: usize = 15;

/// Whether a page may have written one text for the other, as pages do with dates and numbers.
fn is_like(one: &str, other: &str) -> bool {
    let number = |text: &str| {
        let plain: String = text.chars().filter(|c| !"  '’,".contains(*c)).collect();
        plain
            .parse::<f64>()
            .ok()
            .filter(|_| plain.len() <= MAX_DIGITS)
    };
    if let (Some(one), Some(other)) = (number(one), number(other)) {
        return (one - other).abs() < 1e-9;
    }
    let words = |text: &str| -> Vec<String> {
        let lower = text.to_lowercase();
        let words = lower.split(|c: char| !c.is_alphanumeric());
        words
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (one, other) = (words(one), words(other));
    one.concat() == other.concat() || is_same_date(&one, &other)
}

/// Whether both texts are the same date: with the year first or last, and the month first or
/// second.
fn is_same_date(one: &[String], other: &[String]) -> bool {
    let ([a, b, c], [x, y, z]) = (one, other) else {
        return false;
    };
    let orders = [(c, b, a), (c, a, b), (b, c, a)];
    (a.len() == 4 || c.len() == 4) && orders.contains(&(x, y, z))
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
    use super::*;

    fn form(entries: &[(&str, Option<&str>)]) -> SentForm {
        let controls = entries.iter().map(|(name, value)| SentControl {
            name: (*name).to_owned(),
            label: String::new(),
            kind: "text".to_owned(),
            autocomplete: String::new(),
            value: value.map(str::to_owned),
            shown: String::new(),
            secret: false,
        });
        SentForm {
            controls: controls.collect(),
            state: String::new(),
        }
    }

    fn sent_to(action: &str) -> Form {
        Form {
            action: action.to_owned(),
            method: "post".to_owned(),
            fields: Vec::new(),
            words: Vec::new(),
            sends: None,
        }
    }

    #[test]
    fn a_page_contradicts_its_form_or_does_not() {
        let mut sent = form(&[
            ("to", Some("98")),
            ("amount", Some("1,000")),
            ("day", Some("28.11.2026")),
            ("token", Some("")),
            ("id", Some("")),
            ("gift", None),
        ]);
        sent.controls[0].kind = "select-one".to_owned();
        sent.controls[4].kind = "hidden".to_owned();
        let to = "http://a.example/pay";
        let expected = ExpectedForm::new(&sent_to(to), &sent);
        let urlencoded = "application/x-www-form-urlencoded";
        for (is_document, address, kind, body, expected_to) in [
            (
                true,
                to,
                urlencoded,
                "to=98&amount=1000&day=2026-11-28&id=7&token=x&more=1",
                false,
            ),
            (
                true,
                to,
                urlencoded,
                "to=12&amount=1000&day=2026-11-28&id=7",
                true,
            ),
            (
                true,
                to,
                urlencoded,
                "to=98&to=12&amount=1000&day=28.11.2026",
                true,
            ),
            (
                true,
                to,
                urlencoded,
                "to=98&amount=10000&day=28.11.2026",
                true,
            ),
            (
                true,
                to,
                urlencoded,
                "to=98&amount=1000&day=28.11.2026&gift=on",
                true,
            ),
            (
                true,
                to,
                urlencoded,
                "recipient=12&amount=1000&day=28.11.2026",
                true,
            ),
            (
                true,
                "http://a.example/give",
                urlencoded,
                "to=98&amount=1000&day=28.11.2026",
                true,
            ),
            (
                false,
                "http://a.example/api",
                urlencoded,
                "to=98&amount=1000&day=28.11.2026",
                false,
            ),
            (
                false,
                "http://a.example/api",
                urlencoded,
                "to=12&amount=1000&day=28.11.2026",
                true,
            ),
            (
                false,
                "http://a.example/api",
                urlencoded,
                "page=1&day=today",
                false,
            ),
            (
                false,
                "http://a.example/api",
                "application/json",
                r#"{"to": 98, "amount": 10}"#,
                false,
            ),
            (
                false,
                "http://a.example/api",
                "application/json",
                r#"{"to": "12"}"#,
                true,
            ),
            (
                false,
                "http://a.example/api",
                "application/json",
                "[1",
                false,
            ),
            (false, "http://a.example/api", "text/plain", "to=12", false),
        ] {
            let request = SentRequest {
                is_document,
                only_fetches: false,
                address,
                content_type: kind,
                body: Some(body.as_bytes()),
            };
            assert_eq!(expected.is_contradicted(&request), expected_to, "{body}");
        }
    }

    #[test]
    fn a_page_writes_a_value_in_another_way_or_another_value() {
        for (one, other, expected) in [
            ("1,000", "1000.00", true),
            ("28.11.2026", "2026-11-28", true),
            ("11/28/2026", "2026-11-28", true),
            ("12345678901234568", "1234 5678 9012 3456 8", true),
            ("AB 12-34-56", "ab123456", true),
            ("28.11.2026", "11.28.2026", false),
            ("2026-11-12", "2026-12-11", false),
            ("12345678901234568", "12345678901234567", false),
            ("12-34-56", "34-12-56", false),
            ("Ada for Bob", "Bob for Ada", false),
        ] {
            assert_eq!(is_like(one, other), expected, "{one} {other}");
            assert_eq!(is_like(other, one), expected, "{other} {one}");
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
        let expected = ExpectedForm::new(&sent_to(&format!("{to}#part")), &sent);
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
        let empty = ExpectedForm::new(&sent_to(to), &form(&[("gift", None)]));
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
