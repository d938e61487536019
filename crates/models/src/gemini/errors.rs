//! Classifies the provider's refusals: the messages, statuses and details of its error bodies.
//!
//! The body is a `google.rpc.Status` in JSON (<https://cloud.google.com/apis/design/errors>). The
//! delay is in one of its details, not in a header, and so is the period of a used-up quota, a
//! minute or a day.

use gyrus_contract::ModelError;
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use crate::errors::{Meaning, Refusal, believed_ms};

/// The `error` of a body, or of an event in a stream that began well.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorDetail {
    /// HTTP status.
    code: Value,
    message: Value,
    /// Its canonical name: `RESOURCE_EXHAUSTED`.
    status: Value,
    details: Value,
}

impl ErrorDetail {
    fn details(&self) -> impl Iterator<Item = &Value> {
        self.details.as_array().into_iter().flatten()
    }

    /// Returns the kind that the status alone does not determine.
    fn meaning(&self, words: &str) -> Option<Meaning> {
        let is_key = |detail: &Value| detail["reason"] == "API_KEY_INVALID";
        if self.details().any(is_key) || self.is_used_up(words) {
            return Some(Meaning::Auth);
        }
        (self.status == "CANCELLED").then_some(Meaning::Overloaded)
    }

    /// Whether a quota is used up that does not recover soon: one for a day, or one of zero.
    fn is_used_up(&self, words: &str) -> bool {
        let violations = self.details().flat_map(|detail| {
            let violations = detail["violations"].as_array();
            violations.into_iter().flatten()
        });
        let mut quotas = violations.filter_map(|violation| violation["quotaId"].as_str());
        // `Quota exceeded for metric: …, limit: 0`: the account may not use this model.
        let is_nothing = words.split("limit: ").skip(1).any(|rest| {
            let number = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next();
            number == Some("0")
        });
        is_nothing || quotas.any(|quota| quota.contains("PerDay"))
    }

    /// Returns the delay of `RetryInfo`: a duration in seconds, `"45.837906927s"`.
    fn delay_ms(&self) -> Option<u64> {
        let mut delays = self.details().filter_map(|d| d["retryDelay"].as_str());
        let seconds = delays.next()?.strip_suffix('s')?;
        believed_ms(seconds.parse::<f64>().ok()? * 1000.0)
    }

    fn delayed(&self, mut error: ModelError) -> ModelError {
        if let ModelError::RateLimited { after_ms, .. } | ModelError::Overloaded { after_ms, .. } =
            &mut error
        {
            *after_ms = after_ms.or_else(|| self.delay_ms());
        }
        error
    }
}

/// Classifies a response with a status other than 200.
pub(super) fn from_refusal(refusal: &Refusal<'_>) -> ModelError {
    let body = serde_json::from_str::<Value>(refusal.body).unwrap_or_default();
    // Without `alt=sse` the answer is a list, and some gateways use that form anyway.
    let error = body.get(0).unwrap_or(&body).get("error");
    let detail = error.and_then(|error| ErrorDetail::deserialize(error).ok());
    let detail = detail.unwrap_or_default();
    let words = detail.message.as_str().unwrap_or(refusal.body);
    detail.delayed(refusal.error(detail.meaning(words), words))
}

/// Classifies an `error` inside a stream that began well.
pub(super) fn from_event(detail: &ErrorDetail) -> ModelError {
    let words = detail.message.as_str().unwrap_or_default();
    let code = detail
        .code
        .as_u64()
        .and_then(|code| u16::try_from(code).ok());
    let status = code.and_then(|code| StatusCode::from_u16(code).ok());
    let meaning = detail.meaning(words);
    let meaning = meaning.or_else(|| Some(Meaning::of(status?, words)));
    let name = detail.status.as_str().unwrap_or("no status");
    let error = meaning.unwrap_or(Meaning::BadOutput);
    detail.delayed(error.error(&format!("{words} ({name})"), None))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use reqwest::header::{HeaderMap, RETRY_AFTER};
    use serde_json::json;

    use super::*;

    fn error(code: u16, status: &str, message: &str, details: Value) -> Value {
        json!({"code": code, "message": message, "status": status, "details": details})
    }

    fn told(error: &ModelError) -> String {
        format!("{error} {:?}", error.retry_after_ms())
    }

    /// Checks the same error as a response and as an event.
    fn both(error: &Value) -> String {
        let code = error["code"].as_u64().unwrap();
        let refused = |body: Value| {
            from_refusal(&Refusal {
                status: StatusCode::from_u16(code.try_into().unwrap()).unwrap(),
                headers: &HeaderMap::new(),
                body: &body.to_string(),
                now: Timestamp::UNIX_EPOCH,
            })
        };
        let refusal = refused(json!({"error": error}));
        assert_eq!(refusal, refused(json!([{"error": error}])));
        let event = from_event(&ErrorDetail::deserialize(error).unwrap());
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
        insta::assert_snapshot!(exhausted("wait", quota("RequestsPerDayPerProject")), @"the model's provider refused the key: wait (RESOURCE_EXHAUSTED) None");
        insta::assert_snapshot!(exhausted("no, limit: 0, model: x", retry("9s")), @"the model's provider refused the key: no, limit: 0, model: x (RESOURCE_EXHAUSTED) None");
        insta::assert_snapshot!(exhausted("no, limit: 0.5", retry("-9s")), @"the model's provider limits the rate: no, limit: 0.5 (RESOURCE_EXHAUSTED) None");
        insta::assert_snapshot!(exhausted("no", retry("NaNs")), @"the model's provider limits the rate: no (RESOURCE_EXHAUSTED) None");
        insta::assert_snapshot!(exhausted("no", retry("1e99s")), @"the model's provider limits the rate: no (RESOURCE_EXHAUSTED) Some(3600000)");
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
            told(&from_refusal(&Refusal {
                status: StatusCode::BAD_GATEWAY,
                headers: &HeaderMap::from_iter([(RETRY_AFTER, "2".parse().unwrap())]),
                body,
                now: Timestamp::UNIX_EPOCH,
            }))
        };
        insta::assert_snapshot!(check("<html>"), @"the model's provider is overloaded: <html> (HTTP 502) Some(2000)");
        insta::assert_snapshot!(check(r#"{"error": "no object"}"#), @r#"the model's provider is overloaded: {"error": "no object"} (HTTP 502) Some(2000)"#);
        let event = from_event(&ErrorDetail::default());
        insta::assert_snapshot!(told(&event), @"the model's reply could not be read: (no status) None");
    }
}
