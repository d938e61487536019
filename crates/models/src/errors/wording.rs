//! Tells errors by their messages, where codes and statuses say nothing or something else. Pure.
//!
//! A message may quote the prompt, and the prompt may say anything. So what is looked for must stand
//! at the beginning, after the names of programs that passed the message on, or in its first words
//! outside of quotation marks.

use std::borrow::Cow;

use serde_json::Value;

/// Maximum number of characters of a message that are searched for a reason.
const FIRST_WORDS: usize = 160;

/// Beginnings of messages about a prompt that is too long, a line each.
const TOO_LONG: &str = include_str!("too_long.txt");

/// Words of refusals that come as failures of the server, a line each.
const REFUSED: &str = include_str!("refused.txt");

/// Beginnings of messages about a key or an account, in lower case.
const NO_ACCESS: [&str; 4] = [
    "your credit balance is too low",
    "insufficient credits",
    "api key not valid",
    "incorrect api key",
];

pub(super) fn is_too_long(words: &str) -> bool {
    let words = original(words).to_ascii_lowercase();
    lines(TOO_LONG).any(|line| {
        let (begins, holds) = line.split_once(" … ").unwrap_or((line, ""));
        words.starts_with(begins) && words.contains(holds)
    })
}

/// Whether a message says that the key or the account is not sufficient.
pub(super) fn is_about_access(words: &str) -> bool {
    let words = original(words).to_ascii_lowercase();
    NO_ACCESS.iter().any(|begins| words.starts_with(begins))
}

/// Whether a failure's message rejects the request itself.
pub(super) fn refuses(words: &str) -> bool {
    says(words, &lines(REFUSED).collect::<Vec<_>>())
}

fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|line| !line.starts_with('#'))
}

/// Whether the first words of a message, outside of quotation marks, contain one of `parts`, in
/// lower case.
pub(crate) fn says(words: &str, parts: &[&str]) -> bool {
    let words = original(words);
    let first = gyrus_text::first_chars(&words, FIRST_WORDS).to_ascii_lowercase();
    let own: String = first.split(['"', '“', '”']).step_by(2).collect();
    parts.iter().any(|part| own.contains(part))
}

/// Returns the message of an error, of the one behind a gateway if there is one: errors are texts,
/// or objects with a message, in other objects, in lists and in texts of JSON.
pub(crate) fn words_of(error: &Value) -> Option<String> {
    words_within(error, 4)
}

fn words_within(error: &Value, levels: u8) -> Option<String> {
    let inner = |value: &Value| words_within(value, levels.checked_sub(1)?);
    match error {
        Value::String(text) => {
            let text = text.trim();
            let parsed = text
                .starts_with(['{', '['])
                .then(|| serde_json::from_str(text).ok());
            let words = parsed.flatten().as_ref().and_then(inner);
            words.or_else(|| (!text.is_empty()).then(|| text.to_owned()))
        }
        Value::Array(list) => list.first().and_then(inner),
        Value::Object(fields) => {
            let raw = fields.get("metadata").and_then(|passed| passed.get("raw"));
            let places = ["error", "message", "detail", "msg"];
            let places = raw
                .into_iter()
                .chain(places.iter().filter_map(|name| fields.get(*name)));
            places.into_iter().find_map(inner)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Returns the message without the names of the programs that passed it on: `Error code: 400 - …`,
/// `litellm.BadRequestError: …`, and without the JSON in which they did.
fn original(words: &str) -> Cow<'_, str> {
    let mut words = words.trim();
    while let Some(rest) = after_name(words) {
        words = rest.trim_start();
    }
    let inner = words
        .starts_with('{')
        .then(|| serde_json::from_str::<Value>(words).ok());
    match inner.flatten().as_ref().and_then(words_of) {
        Some(inner) => Cow::Owned(inner),
        None => Cow::Borrowed(words),
    }
}

/// Returns the message after the name of a program or of a kind of error, if it begins with one.
fn after_name(words: &str) -> Option<&str> {
    let end = [": ", " - "]
        .iter()
        .filter_map(|end| Some((words.find(end)?, end.len())));
    let (at, length) = end.min()?;
    let name = words[..at].to_ascii_lowercase();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " ._<>".contains(c);
    let is_short = name.chars().all(is_plain) && name.split(' ').count() <= 3;
    let is_name = ["error", "exception", "invalid request", "bad request"]
        .iter()
        .any(|word| name.contains(word));
    let is_status = name.len() == 3 && name.parse::<u16>().is_ok();
    let is_name = is_short && (is_name || is_status);
    is_name.then(|| &words[at + length..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_is_not_a_message() {
        for words in [
            "Error code: 400 - Prompt is too long: 2 > 1",
            "litellm.BadRequestError: XException - prompt is too long",
            r#"APIError: {"error": {"message": "prompt is too long"}}"#,
            "request (9 tokens) exceeds the available context size",
        ] {
            assert!(is_too_long(words), "{words}");
        }
        for words in [
            "request (x) is odd",
            "saw: prompt is too long",
            "an error in what you said: prompt is too long",
            r#"invalid request "a": prompt is too long"#,
        ] {
            assert!(!is_too_long(words), "{words}");
        }
        assert!(refuses("llava does not support tools"));
        assert!(!refuses("died at \"does not support tools\""));
        assert!(!refuses(&format!(
            "{} invalid image",
            "x".repeat(FIRST_WORDS)
        )));
    }
}
