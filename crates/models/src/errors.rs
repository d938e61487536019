//! Converts refusals of all providers to [`ModelError`]: by status, message and delay.
//!
//! Pure. A provider's own table extracts the message from its kind of body and has its own codes;
//! unknown ones are decided here, by the status and the beginning of the message. The delay that a
//! provider asks for is validated: one that is negative, not a number or in the past is ignored
//! (the run then chooses its own), and no delay is longer than [`MAX_DELAY_MS`].

use gyrus_contract::ModelError;
use jiff::{Timestamp, fmt::rfc2822};
use reqwest::{
    StatusCode,
    header::{HeaderMap, LOCATION, RETRY_AFTER},
};

/// Maximum accepted delay, in milliseconds: an hour.
pub(crate) const MAX_DELAY_MS: u64 = 60 * 60 * 1000;

/// Maximum characters kept of a provider's message.
const MAX_WORDS: usize = 1000;

/// Kind of an error, without its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Too many requests: wait.
    RateLimited,
    /// No capacity, or an internal failure: wait.
    Overloaded,
    /// The prompt, or prompt and reply together, are too long.
    ContextTooLong,
    /// The model or its provider does not want to answer.
    Declined,
    /// The request is not accepted as it is.
    Refused,
    /// The answer does not fit the protocol.
    BadOutput,
    /// The key is missing, wrong, not allowed to do this, or out of money.
    Auth,
}

/// Beginnings of messages about a prompt that is too long, and what else they hold, in lower case.
/// The beginning must come first, for anywhere else it may be quoted from the prompt.
const TOO_LONG: [(&str, &str); 10] = [
    ("prompt is too long", ""),
    ("input length and `max_tokens` exceed context limit", ""),
    ("this model's maximum context length", ""),
    ("this endpoint's maximum context length", ""),
    ("your input exceeds the context window", ""),
    ("the request exceeds the available context size", ""),
    ("request (", "exceeds the available context size"),
    ("the input token count", "exceeds the maximum"),
    ("the input (", "context length"),
    ("prompt contains", "too large for model"),
];

/// Beginnings of messages about a key or an account, in lower case.
const NO_ACCESS: [&str; 4] = [
    "your credit balance is too low",
    "insufficient credits",
    "api key not valid",
    "incorrect api key",
];

impl Meaning {
    /// Returns the kind for a status with this message.
    pub(crate) fn of(status: StatusCode, words: &str) -> Self {
        match (status.as_u16(), Self::of_words(words)) {
            (401..=403, _) => Meaning::Auth,
            (413, _) => Meaning::ContextTooLong,
            (400.., Some(meaning)) => meaning,
            (429, None) => Meaning::RateLimited,
            (408 | 500.., None) => Meaning::Overloaded,
            (300..500, None) => Meaning::Refused,
            _ => Meaning::BadOutput,
        }
    }

    /// Returns the kind for a message, if it is known.
    pub(crate) fn of_words(words: &str) -> Option<Self> {
        let words = words.trim_start().to_ascii_lowercase();
        let is_too_long =
            |(begins, holds): &(&str, &str)| words.starts_with(begins) && words.contains(holds);
        if TOO_LONG.iter().any(is_too_long) {
            return Some(Meaning::ContextTooLong);
        }
        let has_no_access = NO_ACCESS.iter().any(|begins| words.starts_with(begins));
        has_no_access.then_some(Meaning::Auth)
    }

    /// Returns the error, with a bounded message and, where it makes sense, the delay.
    pub(crate) fn error(self, words: &str, after_ms: Option<u64>) -> ModelError {
        self.told(bounded_line(words), after_ms)
    }

    fn told(self, message: String, after_ms: Option<u64>) -> ModelError {
        match self {
            Meaning::RateLimited => ModelError::RateLimited { after_ms, message },
            Meaning::Overloaded => ModelError::Overloaded { after_ms, message },
            Meaning::ContextTooLong => ModelError::ContextTooLong { message },
            Meaning::Declined => ModelError::Declined { message },
            Meaning::Refused => ModelError::Refused { message },
            Meaning::BadOutput => ModelError::BadOutput { message },
            Meaning::Auth => ModelError::Auth { message },
        }
    }
}

/// A response with another status than 200.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal<'a> {
    /// Its status.
    pub(crate) status: StatusCode,
    /// Its headers.
    pub(crate) headers: &'a HeaderMap,
    /// Start of its body.
    pub(crate) body: &'a str,
    /// Time of its arrival.
    pub(crate) now: Timestamp,
}

impl Refusal<'_> {
    /// Returns the error: by the provider's own table, otherwise by the status and the message.
    /// `words` are those of the body.
    pub(crate) fn error(&self, own: Option<Meaning>, words: &str) -> ModelError {
        if self.status.is_redirection() {
            return Meaning::Refused.error(&redirected(self.headers), None);
        }
        let meaning = own.unwrap_or_else(|| Meaning::of(self.status, words));
        let words = format!("{} (HTTP {})", bounded_line(words), self.status.as_u16());
        let after_ms = delay_ms(self.headers, self.now);
        meaning.told(words.trim_start().to_owned(), after_ms)
    }
}

/// Returns [`ModelError::BadOutput`], which every reader of streams needs most.
pub(crate) fn bad(message: impl Into<String>) -> ModelError {
    ModelError::BadOutput {
        message: message.into(),
    }
}

fn redirected(headers: &HeaderMap) -> String {
    let target = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    format!(
        "the address redirects to {}; it is not followed, so that the key goes nowhere else; \
         configure the final address",
        target.unwrap_or("nowhere")
    )
}

/// Returns the delay that the provider asks for: `retry-after-ms`, otherwise `retry-after` in
/// seconds or as a date (RFC 9110, section 10.2.3).
pub(crate) fn delay_ms(headers: &HeaderMap, now: Timestamp) -> Option<u64> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let milliseconds = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok());
    let wanted = milliseconds.or_else(|| {
        let text = text(RETRY_AFTER.as_str())?;
        if let Ok(seconds) = text.parse::<f64>() {
            return Some(seconds * 1000.0);
        }
        let date = rfc2822::DateTimeParser::new()
            .relaxed_weekday(true)
            .parse_timestamp(text)
            .ok()?;
        Some(date.duration_since(now).as_millis_f64())
    })?;
    believed_ms(wanted)
}

/// Returns a delay in milliseconds, validated; for providers that name it in their body.
pub(crate) fn believed_ms(wanted: f64) -> Option<u64> {
    // A float becomes an integer by saturating; what is not a number fails the comparison.
    (wanted > 0.0).then_some((wanted.ceil() as u64).min(MAX_DELAY_MS))
}

/// Returns `text` as one bounded line.
pub(crate) fn bounded_line(text: &str) -> String {
    gyrus_text::shorten(text.trim(), MAX_WORDS).replace(gyrus_text::is_unseen, " ")
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderName;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-06T08:49:37Z".parse().unwrap()
    }

    #[test]
    fn delays_are_read_with_distrust() {
        let check = |name: &'static str, value: &str, expected: Option<u64>| {
            let name = HeaderName::from_static(name);
            let headers = HeaderMap::from_iter([(name.clone(), value.parse().unwrap())]);
            assert_eq!(delay_ms(&headers, now()), expected, "{name}: {value}");
        };
        check("retry-after", "7", Some(7_000));
        check("retry-after", " 0.5 ", Some(500));
        check("retry-after-ms", "1500", Some(1_500));
        check("retry-after", "Fri, 06 Nov 2026 08:50:07 GMT", Some(30_000));
        check(
            "retry-after",
            "Fri, 06 Nov 2126 08:50:07 GMT",
            Some(MAX_DELAY_MS),
        );
        check("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT", None);
        check("retry-after", "0", None);
        check("retry-after", "-1", None);
        check("retry-after", "NaN", None);
        check("retry-after", "inf", Some(MAX_DELAY_MS));
        check("retry-after", "1e300", Some(MAX_DELAY_MS));
        check("retry-after", "-inf", None);
        check("retry-after", "soon", None);
        check("retry-after", "", None);
        check("retry-after-ms", "99999999999999999999", Some(MAX_DELAY_MS));
    }

    #[test]
    fn statuses_and_words_have_meanings() {
        let check = |status: u16, words: &str, expected: Meaning| {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(Meaning::of(status, words), expected, "{status}: {words}");
        };
        check(401, "", Meaning::Auth);
        check(402, "pay", Meaning::Auth);
        check(400, "API key not valid. Please pass one", Meaning::Auth);
        check(400, "Your credit balance is too low to", Meaning::Auth);
        check(429, "slow down", Meaning::RateLimited);
        check(429, "Insufficient credits. Add more", Meaning::Auth);
        check(408, "", Meaning::Overloaded);
        check(503, "", Meaning::Overloaded);
        check(529, "", Meaning::Overloaded);
        check(413, "", Meaning::ContextTooLong);
        check(
            400,
            " Prompt is too long: 205000 tokens > 200000 maximum",
            Meaning::ContextTooLong,
        );
        check(
            500,
            "request (9000 tokens) exceeds the available context size (4096 tokens)",
            Meaning::ContextTooLong,
        );
        check(400, "request (x) is odd", Meaning::Refused);
        check(400, "saw: prompt is too long", Meaning::Refused);
        check(404, "no such model", Meaning::Refused);
        check(204, "", Meaning::BadOutput);
    }

    #[test]
    fn a_refusal_is_told_in_one_bounded_line() {
        let headers = HeaderMap::from_iter([
            (RETRY_AFTER, "2".parse().unwrap()),
            (LOCATION, "http://elsewhere/".parse().unwrap()),
        ]);
        let told = |status: u16, words: &str, own| {
            let refusal = Refusal {
                status: StatusCode::from_u16(status).unwrap(),
                headers: &headers,
                body: "",
                now: now(),
            };
            let error = refusal.error(own, words);
            format!("{error} {:?}", error.retry_after_ms())
        };
        insta::assert_snapshot!(told(529, "<html>\nno</html>\n", None), @"the model's provider is overloaded: <html> no</html> (HTTP 529) Some(2000)");
        insta::assert_snapshot!(told(429, "no money", Some(Meaning::Auth)), @"the model's provider refused the key: no money (HTTP 429) None");
        insta::assert_snapshot!(told(403, "", None), @"the model's provider refused the key: (HTTP 403) None");
        insta::assert_snapshot!(told(307, "", None), @"the model refused: the address redirects to http://elsewhere/; it is not followed, so that the key goes nowhere else; configure the final address None");
        let long = told(404, &"ä".repeat(5000), None);
        assert!(long.ends_with("ä… (HTTP 404) None"), "{long}");
        assert!(long.chars().count() < MAX_WORDS + 50);
    }
}
