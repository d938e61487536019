//! Converts refusals of all providers to [`ModelError`]: by status, message and delay.
//!
//! A provider's own table has its own codes; unknown ones are decided here, by the status, and
//! the message overrules both where it is clear (`wording`). `delay` reads the time to wait: a quota
//! that names one is a limit of the rate, however long, and not a matter of the key.

mod delay;
mod wording;

use gyrus_contract::ModelError;
use jiff::Timestamp;
use reqwest::{
    StatusCode,
    header::{HeaderMap, LOCATION},
};
use serde_json::Value;

pub(crate) use wording::{says, words_of};

/// Maximum number of kept characters of a provider's message.
const MAX_WORDS: usize = 1000;

/// Kind of an error, without its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// Too many requests: wait.
    RateLimited,
    /// No capacity, or an internal failure: wait.
    Overloaded,
    /// The prompt, or prompt and reply together, are too long.
    ContextTooLong,
    /// The model or its provider declines to answer.
    Declined,
    /// The request is not accepted in this form.
    Refused,
    /// The answer does not fit the protocol.
    BadOutput,
    /// The key is missing, wrong, not allowed to do this, or out of money.
    Auth,
}

impl ErrorKind {
    /// Returns the kind for a status with this message.
    pub(crate) fn of(status: StatusCode, words: &str) -> Self {
        let by_status = match status.as_u16() {
            401..=403 => return ErrorKind::Auth,
            413 => return ErrorKind::ContextTooLong,
            429 => ErrorKind::RateLimited,
            408 | 500.. => ErrorKind::Overloaded,
            300..500 => ErrorKind::Refused,
            _ => return ErrorKind::BadOutput,
        };
        by_status.told_by(words)
    }

    /// Returns the kind of error that the message indicates, if it is more precise than this one.
    pub(crate) fn told_by(self, words: &str) -> Self {
        match self {
            ErrorKind::ContextTooLong | ErrorKind::Auth | ErrorKind::Declined => self,
            _ if wording::is_too_long(words) => ErrorKind::ContextTooLong,
            _ if wording::is_about_access(words) => ErrorKind::Auth,
            ErrorKind::Overloaded | ErrorKind::BadOutput if wording::refuses(words) => {
                ErrorKind::Refused
            }
            ErrorKind::Overloaded
            | ErrorKind::BadOutput
            | ErrorKind::RateLimited
            | ErrorKind::Refused => self,
        }
    }

    /// Returns the kind of an error inside a stream: by the provider's own table, otherwise by the
    /// status that it carries. `otherwise` is that of one that says nothing.
    pub(crate) fn of_event(error: &Value, own: Option<Self>, words: &str, otherwise: Self) -> Self {
        let status = [&error["code"], &error["status"]].into_iter();
        let mut status = status.filter_map(|code| u16::try_from(code.as_u64()?).ok());
        let by_status = || {
            let status = StatusCode::from_u16(status.find(|code| *code >= 400)?).ok()?;
            Some(Self::of(status, words))
        };
        own.or_else(by_status).unwrap_or(otherwise).told_by(words)
    }

    /// Returns the error, with a bounded message and, where it makes sense, the requested delay.
    pub(crate) fn error(self, words: &str) -> ModelError {
        let after_ms = delay::in_words(words).and_then(delay::believed_ms);
        self.told(bounded_line(words), after_ms)
    }

    /// Like [`ErrorKind::error`], for an error inside a stream, whose fields may have the delay.
    pub(crate) fn event_error(self, words: &str, error: &Value) -> ModelError {
        let wanted = delay::in_body(error, gyrus_text::now());
        let wanted = wanted.or_else(|| delay::in_words(words));
        self.told(bounded_line(words), wanted.and_then(delay::believed_ms))
    }

    fn told(self, message: String, after_ms: Option<u64>) -> ModelError {
        match self {
            ErrorKind::RateLimited => ModelError::RateLimited { after_ms, message },
            ErrorKind::Overloaded => ModelError::Overloaded { after_ms, message },
            ErrorKind::ContextTooLong => ModelError::ContextTooLong { message },
            ErrorKind::Declined => ModelError::Declined { message },
            ErrorKind::Refused => ModelError::Refused { message },
            ErrorKind::BadOutput => ModelError::BadOutput { message },
            ErrorKind::Auth => ModelError::Auth { message },
        }
    }
}

/// A response with a status other than success.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorResponse<'a> {
    pub(crate) status: StatusCode,
    pub(crate) headers: &'a HeaderMap,
    /// Start of the response's body.
    pub(crate) body: &'a str,
    /// Time at which the response arrived.
    pub(crate) now: Timestamp,
}

impl ErrorResponse<'_> {
    /// Returns the error by the provider's own table, or else by the status and the message.
    pub(crate) fn error(&self, own: Option<ErrorKind>, words: &str) -> ModelError {
        if self.status.is_redirection() {
            return ErrorKind::Refused.error(&redirected(self.headers));
        }
        let status = self.status.as_u16();
        let meaning = match own {
            Some(own) if status != 413 => own.told_by(words),
            _ => ErrorKind::of(self.status, words),
        };
        let after_ms = self.delay_ms(words);
        // A quota that is filled again, and not a wrong key.
        let is_quota = meaning == ErrorKind::Auth && matches!(status, 402 | 429);
        let meaning = match after_ms {
            Some(_) if is_quota => ErrorKind::RateLimited,
            Some(_) | None => meaning,
        };
        let words = format!("{} (HTTP {status})", bounded_line(words));
        meaning.told(words.trim_start().to_owned(), after_ms)
    }

    /// Returns the delay that the provider requests.
    fn delay_ms(&self, words: &str) -> Option<u64> {
        let body = || serde_json::from_str::<Value>(self.body).ok();
        let wanted = delay::in_headers(self.headers, self.now)
            .or_else(|| delay::in_body(&body()?, self.now))
            .or_else(|| delay::in_words(words));
        let is_limit = matches!(self.status.as_u16(), 402 | 429);
        let reset = || delay::until_reset(self.headers, self.now).filter(|_| is_limit);
        wanted.or_else(reset).and_then(delay::believed_ms)
    }
}

/// Returns [`ModelError::BadOutput`], the most frequent error of stream readers.
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

pub(crate) fn bounded_line(text: &str) -> String {
    gyrus_text::shorten(text.trim(), MAX_WORDS).replace(gyrus_text::is_unseen, " ")
}

#[cfg(test)]
mod tests {
    use reqwest::header::RETRY_AFTER;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-06T08:49:37Z".parse().unwrap()
    }

    #[test]
    fn statuses_and_words_have_meanings() {
        let check = |status: u16, words: &str, expected: ErrorKind| {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(ErrorKind::of(status, words), expected, "{status}: {words}");
        };
        check(401, "", ErrorKind::Auth);
        check(402, "pay", ErrorKind::Auth);
        check(400, "API key not valid. Please pass one", ErrorKind::Auth);
        check(400, "Your credit balance is too low to", ErrorKind::Auth);
        check(429, "slow down", ErrorKind::RateLimited);
        check(429, "Insufficient credits. Add more", ErrorKind::Auth);
        check(408, "", ErrorKind::Overloaded);
        check(503, "", ErrorKind::Overloaded);
        check(529, "", ErrorKind::Overloaded);
        check(413, "", ErrorKind::ContextTooLong);
        check(
            400,
            " Prompt is too long: 205000 tokens > 200000 maximum",
            ErrorKind::ContextTooLong,
        );
        check(
            500,
            "request (9000 tokens) exceeds the available context size (4096 tokens)",
            ErrorKind::ContextTooLong,
        );
        check(400, "request (x) is odd", ErrorKind::Refused);
        check(400, "saw: prompt is too long", ErrorKind::Refused);
        check(404, "no such model", ErrorKind::Refused);
        check(204, "", ErrorKind::BadOutput);
    }

    #[test]
    fn a_refusal_is_told_in_one_bounded_line() {
        let headers = HeaderMap::from_iter([
            (RETRY_AFTER, "2".parse().unwrap()),
            (LOCATION, "http://elsewhere/".parse().unwrap()),
        ]);
        let told = |status: u16, words: &str, own| {
            let refusal = ErrorResponse {
                status: StatusCode::from_u16(status).unwrap(),
                headers: &headers,
                body: "",
                now: now(),
            };
            let error = refusal.error(own, words);
            format!("{error} {:?}", error.retry_after_ms())
        };
        insta::assert_snapshot!(told(529, "<html>\nno</html>\n", None), @"the model's provider is overloaded: <html> no</html> (HTTP 529) Some(2000)");
        insta::assert_snapshot!(told(429, "no money", Some(ErrorKind::Auth)), @"the model's provider limits the rate: no money (HTTP 429) Some(2000)");
        insta::assert_snapshot!(told(403, "", None), @"the model's provider refused the key: (HTTP 403) None");
        insta::assert_snapshot!(told(307, "", None), @"the model refused: the address redirects to http://elsewhere/; it is not followed, so that the key goes nowhere else; configure the final address None");
        let long = told(404, &"ä".repeat(5000), None);
        assert!(long.ends_with("ä… (HTTP 404) None"), "{long}");
        assert!(long.chars().count() < MAX_WORDS + 50);
    }
}
