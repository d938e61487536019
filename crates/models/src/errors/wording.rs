//! Tells errors by their messages, where codes and statuses say nothing or something else. Pure.
//!
//! A message may quote the prompt, and the prompt may say anything. So what is looked for must stand
//! at the beginning, after the names of programs that passed the message on, or in its first words
//! outside of quotation marks.

use std::borrow::Cow;

use serde_json::Value;

use super::{Meaning, words_of};

/// Maximum characters of a message in which a reason is looked for.
const FIRST_WORDS: usize = 160;

/// Beginnings of messages about a prompt that is too long, and what else they hold, in lower case.
const TOO_LONG: [(&str, &str); 34] = [
    ("prompt is too long", ""),
    ("the prompt is too long", ""),
    ("prompt too long", ""),
    ("prompt exceeds max length", ""),
    ("prompt token count", "exceeds the limit"),
    ("prompt contains", "too large for model"),
    ("prompt has", "context size"),
    ("the prompt (", "too long"),
    ("the prompt is longer than the context", ""),
    (
        "the decoder prompt (",
        "longer than the maximum model length",
    ),
    ("input is too long", ""),
    ("input is too large to process", ""),
    ("input length and `max_tokens` exceed context limit", ""),
    ("input length", "exceed"),
    ("the input length", "exceed"),
    ("input tokens exceed", ""),
    ("your input exceeds the context window", ""),
    ("your request exceeded model token limit", ""),
    ("the input token count", "exceeds the maximum"),
    ("unable to submit request because the input token count", ""),
    ("the input (", "context length"),
    ("the input (", "context window"),
    ("this model's maximum context length", ""),
    ("this model's maximum prompt length", ""),
    ("this endpoint's maximum context length", ""),
    (
        "'max_tokens' or 'max_completion_tokens' is too large",
        "maximum context length",
    ),
    ("the request exceeds the available context size", ""),
    ("request (", "exceeds the available context size"),
    ("request too large for model", ""),
    ("please reduce the length of the messages", ""),
    ("trying to keep the first", "context"),
    ("the number of tokens to keep from the initial prompt", ""),
    ("context size has been exceeded", ""),
    ("range of input length should be", ""),
];

/// The same, for messages that begin with a name in backquotes or that are only a part.
const TOO_LONG_ANYWHERE: [&str; 4] = [
    "`inputs` tokens + `max_new_tokens` must be",
    "`inputs` must have less than",
    "context window exceeds limit",
    "context_length_exceeded",
];

/// Beginnings of messages about a key or an account, in lower case.
const NO_ACCESS: [&str; 4] = [
    "your credit balance is too low",
    "insufficient credits",
    "api key not valid",
    "incorrect api key",
];

/// Words of refusals that come as failures of the server, in lower case.
const REFUSED: [&str; 24] = [
    "does not support image",
    "does not support tool",
    "does not support function",
    "does not support thinking",
    "does not support vision",
    "do not support image",
    "do not support tool",
    "doesn't support image",
    "doesn't support tool",
    "image input is not supported",
    "images are not supported",
    "function calling is not supported",
    "tools are not supported",
    "is not supported with this model",
    "unsupported parameter",
    "unsupported value",
    "unsupported content type",
    "unrecognized request argument",
    "unknown field",
    "unknown name",
    "invalid image",
    "failed to decode image",
    "roles must alternate",
    "model not found",
];

/// Returns the kind that a message states, whatever its status.
pub(super) fn meaning(words: &str) -> Option<Meaning> {
    let words = original(words);
    let words = words.to_ascii_lowercase();
    let is_too_long =
        |(begins, holds): &(&str, &str)| words.starts_with(begins) && words.contains(holds);
    let begins = gyrus_text::first_chars(&words, 60);
    if TOO_LONG.iter().any(is_too_long)
        || TOO_LONG_ANYWHERE.iter().any(|part| begins.contains(part))
    {
        return Some(Meaning::ContextTooLong);
    }
    let has_no_access = NO_ACCESS.iter().any(|begins| words.starts_with(begins));
    has_no_access.then_some(Meaning::Auth)
}

/// Whether the message of a failure says that the request itself is not accepted.
pub(super) fn refuses(words: &str) -> bool {
    says(words, &REFUSED)
}

/// Whether one of `parts`, in lower case, stands in the first words of a message, outside of
/// quotation marks.
pub(crate) fn says(words: &str, parts: &[&str]) -> bool {
    let words = original(words);
    let first = gyrus_text::first_chars(&words, FIRST_WORDS).to_ascii_lowercase();
    let own: String = first.split(['"', '“', '”']).step_by(2).collect();
    parts.iter().any(|part| own.contains(part))
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
        let check = |words: &str, expected: Option<Meaning>| {
            assert_eq!(meaning(words), expected, "{words}");
        };
        let too_long = Some(Meaning::ContextTooLong);
        check("Error code: 400 - Prompt is too long: 2 > 1", too_long);
        check(
            "litellm.BadRequestError: XException - prompt is too long",
            too_long,
        );
        check(
            r#"APIError: {"error": {"message": "prompt is too long"}}"#,
            too_long,
        );
        check(
            "request (9 tokens) exceeds the available context size",
            too_long,
        );
        check("request (x) is odd", None);
        check("saw: prompt is too long", None);
        check("an error in what you said: prompt is too long", None);
        check(r#"invalid request "a": prompt is too long"#, None);
        assert!(refuses("llava does not support tools"));
        assert!(!refuses("died at \"does not support tools\""));
        assert!(!refuses(&format!(
            "{} invalid image",
            "x".repeat(FIRST_WORDS)
        )));
    }
}
