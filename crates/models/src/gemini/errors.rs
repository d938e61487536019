//! Classifies the provider's refusals: the messages, statuses and details of its error bodies.
//!
//! The body is a `google.rpc.Status` in JSON (<https://cloud.google.com/apis/design/errors>). The
//! delay is in one of its details, not in a header, and so is the period of a used-up quota, a
//! minute or a day. That of a day is filled again at midnight, and not after the delay.

use gyrus_contract::ModelError;
use jiff::Timestamp;
use serde_json::Value;

use crate::errors::{ErrorKind, ErrorResponse, words_of};

const DAY: i64 = 86_400;

/// Second of the day in UTC at which quotas of a day are filled again: midnight where the provider
/// is, in winter.
const MIDNIGHT: i64 = 8 * 3_600;

/// Returns the kind of error that the status alone does not determine.
fn meaning(error: &Value) -> Option<ErrorKind> {
    let is_key = |detail: &Value| detail["reason"] == "API_KEY_INVALID";
    if details(error).any(is_key) {
        return Some(ErrorKind::Auth);
    }
    (error["status"] == "CANCELLED").then_some(ErrorKind::Overloaded)
}

fn details(error: &Value) -> impl Iterator<Item = &Value> {
    error["details"].as_array().into_iter().flatten()
}

/// Whether the quota is zero: `Quota exceeded for metric: …, limit: 0`. The account may not use
/// this model, whatever delay is named beside it.
fn is_nothing(words: &str) -> bool {
    words.split("limit: ").skip(1).any(|rest| {
        let number = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next();
        number == Some("0")
    })
}

/// Corrects the delay of a daily quota, for which the server gives a wrong one.
fn until_tomorrow(mut error: ModelError, detail: &Value, now: Timestamp) -> ModelError {
    let violations = details(detail).flat_map(|detail| {
        let violations = detail["violations"].as_array();
        violations.into_iter().flatten()
    });
    let mut quotas = violations.filter_map(|violation| violation["quotaId"].as_str());
    if let ModelError::RateLimited { after_ms, .. } = &mut error
        && quotas.any(|quota| quota.contains("PerDay"))
    {
        let seconds = DAY - (now.as_second() - MIDNIGHT).rem_euclid(DAY);
        *after_ms = (*after_ms).max(u64::try_from(seconds * 1000).ok());
    }
    error
}

/// Classifies a response with a status other than 200.
pub(super) fn from_refusal(refusal: &ErrorResponse<'_>) -> ModelError {
    let body = serde_json::from_str::<Value>(refusal.body).unwrap_or_default();
    // Without `alt=sse` the answer is a list, and some gateways use that form anyway.
    let error = &body.get(0).unwrap_or(&body)["error"];
    let words = words_of(error).unwrap_or_else(|| refusal.body.to_owned());
    if is_nothing(&words) {
        return ErrorKind::Auth.error(&format!("{words} (HTTP {})", refusal.status.as_u16()));
    }
    let told = refusal.error(meaning(error), &words);
    until_tomorrow(told, error, refusal.now)
}

/// Classifies an `error` inside a stream that began well.
pub(super) fn from_event(error: &Value, now: Timestamp) -> ModelError {
    let words = words_of(error).unwrap_or_default();
    let own = meaning(error).or(is_nothing(&words).then_some(ErrorKind::Auth));
    let meaning = ErrorKind::of_event(error, own, &words, ErrorKind::BadOutput);
    let name = error["status"].as_str().unwrap_or("no status");
    let told = meaning.event_error(&format!("{words} ({name})"), error);
    until_tomorrow(told, error, now)
}

#[cfg(test)]
mod tests {
    use reqwest::{
        StatusCode,
        header::{HeaderMap, RETRY_AFTER},
    };
    use serde_json::json;

    use super::*;

    fn error(code: u16, status: &str, message: &str, details: Value) -> Value {
        json!({"code": code, "message": message, "status": status, "details": details})
    }

    fn told(error: &ModelError) -> String {
        format!("{error} {:?}", error.retry_after_ms())
    }

    /// Checks that an error is classified equally in a response and in an event.
    fn both(error: &Value) -> String {
        let code = error["code"].as_u64().unwrap();
        let refused = |body: Value| {
            from_refusal(&ErrorResponse {
                status: StatusCode::from_u16(code.try_into().unwrap()).unwrap(),
                headers: &HeaderMap::new(),
                body: &body.to_string(),
                now: Timestamp::UNIX_EPOCH,
            })
        };
        let refusal = refused(json!({"error": error}));
        assert_eq!(refusal, refused(json!([{"error": error}])));
        let event = from_event(error, Timestamp::UNIX_EPOCH);
        assert_eq!(
            std::mem::discriminant(&refusal),
            std::mem::discriminant(&event),
            "{refusal} / {event}"
        );
        assert_eq!(refusal.retry_after_ms(), event.retry_after_ms());
        told(&event)
    }

    #[test]
    fn errors_have_meanings() {
        let retry = |delay: &str| {
            let kind = "type.googleapis.com/google.rpc.RetryInfo";
            json!([{"@type": kind, "retryDelay": delay}])
        };
        let quota = |id: &str| json!([{"violations": [{"quotaId": id}]}, {"retryDelay": "30s"}]);
        let exhausted =
            |words: &str, details| both(&error(429, "RESOURCE_EXHAUSTED", words, details));
        insta::assert_snapshot!(exhausted("wait", retry("45.837906927s")), @"the model's provider limits the rate: wait (RESOURCE_EXHAUSTED) Some(45838)");
        insta::assert_snapshot!(exhausted("wait", quota("RequestsPerMinutePerProject")), @"the model's provider limits the rate: wait (RESOURCE_EXHAUSTED) Some(30000)");
        insta::assert_snapshot!(exhausted("wait", quota("RequestsPerDayPerProject")), @"the model's provider limits the rate: wait (RESOURCE_EXHAUSTED) Some(28800000)");
        insta::assert_snapshot!(exhausted("no, limit: 0, model: x", retry("9s")), @"the model's provider refused the key: no, limit: 0, model: x (RESOURCE_EXHAUSTED) None");
        insta::assert_snapshot!(exhausted("no, limit: 0.5", retry("-9s")), @"the model's provider limits the rate: no, limit: 0.5 (RESOURCE_EXHAUSTED) None");
        insta::assert_snapshot!(exhausted("no", retry("NaNs")), @"the model's provider limits the rate: no (RESOURCE_EXHAUSTED) None");
        insta::assert_snapshot!(exhausted("no", retry("1e99s")), @"the model's provider limits the rate: no (RESOURCE_EXHAUSTED) None");
        insta::assert_snapshot!(exhausted("no", json!({"retryDelay": 3})), @"the model's provider limits the rate: no (RESOURCE_EXHAUSTED) None");
        insta::assert_snapshot!(both(&error(503, "UNAVAILABLE", "busy", retry("9s"))), @"the model's provider is overloaded: busy (UNAVAILABLE) Some(9000)");
        insta::assert_snapshot!(both(&error(499, "CANCELLED", "gone", json!(null))), @"the model's provider is overloaded: gone (CANCELLED) None");
        let invalid = |words: &str, details| both(&error(400, "INVALID_ARGUMENT", words, details));
        insta::assert_snapshot!(invalid("odd", json!([])), @"the model refused: odd (INVALID_ARGUMENT) None");
        insta::assert_snapshot!(invalid("bad key", json!([{"reason": "API_KEY_INVALID"}])), @"the model's provider refused the key: bad key (INVALID_ARGUMENT) None");
        insta::assert_snapshot!(invalid("The input token count (3475108) exceeds the maximum number of tokens allowed (1048576).", json!([])), @"the prompt is too long for the model: The input token count (3475108) exceeds the maximum number of tokens allowed (1048576). (INVALID_ARGUMENT) None");
        insta::assert_snapshot!(both(&error(403, "PERMISSION_DENIED", "no", json!([]))), @"the model's provider refused the key: no (PERMISSION_DENIED) None");
    }

    #[test]
    fn odd_bodies_are_told_as_they_are() {
        let check = |body: &str| {
            told(&from_refusal(&ErrorResponse {
                status: StatusCode::BAD_GATEWAY,
                headers: &HeaderMap::from_iter([(RETRY_AFTER, "2".parse().unwrap())]),
                body,
                now: Timestamp::UNIX_EPOCH,
            }))
        };
        insta::assert_snapshot!(check("<html>"), @"the model's provider is overloaded: <html> (HTTP 502) Some(2000)");
        insta::assert_snapshot!(check(r#"{"error": "no object"}"#), @"the model's provider is overloaded: no object (HTTP 502) Some(2000)");
        let event = from_event(&Value::Null, Timestamp::UNIX_EPOCH);
        insta::assert_snapshot!(told(&event), @"the model's reply could not be read: (no status) None");
    }
}
