//! What a refusal of the provider means: HTTP statuses, error events and `retry-after` headers
//! to [`ModelError`].
//!
//! Pure. A delay is what the provider asks for, read with distrust: one that is negative, not a
//! number or in the past is no delay (the run then waits as it sees fit), and no delay is longer
//! than [`MAX_DELAY_MS`].

use gyrus_contract::ModelError;
use jiff::{Timestamp, fmt::rfc2822};
use reqwest::{
    StatusCode,
    header::{HeaderMap, RETRY_AFTER},
};
use serde::Deserialize;

/// The longest delay that is believed, in milliseconds: an hour.
pub(super) const MAX_DELAY_MS: u64 = 60 * 60 * 1000;

/// The most of a provider's words that is kept, in characters.
const MAX_WORDS: usize = 1000;

/// The body of an error response, and the data of an `error` event.
#[derive(Debug, Deserialize)]
pub(super) struct ErrorBody {
    error: ErrorDetail,
}

#[derive(Debug, Deserialize)]
struct ErrorDetail {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    message: String,
}

/// A response with a status other than 200.
pub(super) fn from_status(
    status: StatusCode,
    headers: &HeaderMap,
    body: &str,
    now: Timestamp,
) -> ModelError {
    let detail = serde_json::from_str::<ErrorBody>(body)
        .ok()
        .map(|body| body.error);
    let words = detail.as_ref().map_or(body, |detail| &detail.message);
    let message = format!("{words} (HTTP {})", status.as_u16());
    let after_ms = delay_ms(headers, now);
    let message = match status.is_redirection() {
        true => redirected(headers),
        false => shorten(&message),
    };
    match status.as_u16() {
        401..=403 => ModelError::Auth { message },
        429 => ModelError::RateLimited { after_ms, message },
        408 | 500.. => ModelError::Overloaded { after_ms, message },
        413 => ModelError::ContextTooLong { message },
        400 if is_about_length(words) => ModelError::ContextTooLong { message },
        _ => ModelError::Refused { message },
    }
}

/// An `error` event inside a stream that began well.
pub(super) fn from_event(body: ErrorBody) -> ModelError {
    let ErrorDetail {
        kind,
        message: words,
    } = body.error;
    let message = shorten(&format!("{words} ({kind})"));
    match kind.as_str() {
        "overloaded_error" | "api_error" | "timeout_error" => ModelError::Overloaded {
            after_ms: None,
            message,
        },
        "rate_limit_error" => ModelError::RateLimited {
            after_ms: None,
            message,
        },
        "authentication_error" | "permission_error" | "billing_error" => {
            ModelError::Auth { message }
        }
        "request_too_large" => ModelError::ContextTooLong { message },
        "invalid_request_error" if is_about_length(&words) => {
            ModelError::ContextTooLong { message }
        }
        "invalid_request_error" | "not_found_error" => ModelError::Refused { message },
        _ => ModelError::BadOutput { message },
    }
}

/// The two sentences with which the provider says that a prompt does not fit. They must come
/// first: anywhere else they may be quoted.
fn is_about_length(words: &str) -> bool {
    let words = words.to_ascii_lowercase();
    words.starts_with("prompt is too long")
        || words.starts_with("input length and `max_tokens` exceed context limit")
}

fn redirected(headers: &HeaderMap) -> String {
    let target = headers
        .get("location")
        .and_then(|value| value.to_str().ok());
    format!(
        "the address redirects to {}; it is not followed, so that the key goes nowhere else; \
         configure the final address",
        shorten(target.unwrap_or("nowhere"))
    )
}

/// How long the provider asks to wait: `retry-after-ms`, else `retry-after` in seconds or as a
/// date (RFC 9110, section 10.2.3).
fn delay_ms(headers: &HeaderMap, now: Timestamp) -> Option<u64> {
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
    // A float becomes an integer by saturating; what is not a number fails the comparison.
    (wanted > 0.0).then_some((wanted.ceil() as u64).min(MAX_DELAY_MS))
}

/// `text` in one bounded line.
pub(super) fn shorten(text: &str) -> String {
    let text = text.trim();
    let mut short: String = text
        .chars()
        .take(MAX_WORDS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(MAX_WORDS).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-06T08:49:37Z".parse().unwrap()
    }

    #[test]
    fn delays_are_read_with_distrust() {
        let check = |name: &'static str, value: &str, expected: Option<u64>| {
            let headers = HeaderMap::from_iter([(
                reqwest::header::HeaderName::from_static(name),
                value.parse().unwrap(),
            )]);
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
    fn statuses_have_meanings() {
        let check = |status: u16, body: &str, expected: &str| {
            let headers = HeaderMap::from_iter([
                (RETRY_AFTER, "2".parse().unwrap()),
                (
                    reqwest::header::LOCATION,
                    "http://elsewhere/".parse().unwrap(),
                ),
            ]);
            let status = StatusCode::from_u16(status).unwrap();
            let error = from_status(status, &headers, body, now());
            assert_eq!(format!("{error} {:?}", error.retry_after_ms()), expected);
        };
        let said = |message: &str| {
            format!(r#"{{"type":"error","error":{{"type":"x","message":"{message}"}}}}"#)
        };
        check(
            401,
            &said("bad key"),
            "the model's provider refused the key: bad key (HTTP 401) None",
        );
        check(
            403,
            "",
            "the model's provider refused the key: (HTTP 403) None",
        );
        check(
            429,
            &said("slow down"),
            "the model's provider limits the rate: slow down (HTTP 429) Some(2000)",
        );
        check(
            529,
            "<html>\nno</html>",
            "the model's provider is overloaded: <html> no</html> (HTTP 529) Some(2000)",
        );
        check(
            500,
            "{}",
            "the model's provider is overloaded: {} (HTTP 500) Some(2000)",
        );
        check(
            400,
            &said("prompt is too long: 205000 tokens > 200000 maximum"),
            "the prompt is too long for the model: prompt is too long: 205000 tokens > 200000 \
             maximum (HTTP 400) None",
        );
        check(
            400,
            &said("saw: prompt is too long"),
            "the model refused: saw: prompt is too long (HTTP 400) None",
        );
        check(
            413,
            "",
            "the prompt is too long for the model: (HTTP 413) None",
        );
        check(
            307,
            "",
            "the model refused: the address redirects to http://elsewhere/; it is not followed, \
             so that the key goes nowhere else; configure the final address None",
        );
        let long = from_status(
            StatusCode::NOT_FOUND,
            &HeaderMap::new(),
            &"ä".repeat(5000),
            now(),
        );
        assert_eq!(
            long.to_string().chars().count(),
            "the model refused: ".len() + MAX_WORDS + 1
        );
    }
}
