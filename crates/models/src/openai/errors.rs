//! Classifies errors of both protocols, in responses and in streams.
//!
//! The provider's own form is `{"error": {"message", "type", "code"}}`. Compatible servers also
//! send the error as a text, without the outer object, as `detail`, or with a number as code.

use gyrus_contract::ModelError;
use serde_json::Value;

use crate::errors::{ErrorKind, ErrorResponse, words_of};

/// Classifies a response with a status other than 200.
pub(super) fn from_refusal(refusal: &ErrorResponse<'_>) -> ModelError {
    let body = serde_json::from_str::<Value>(refusal.body).unwrap_or_default();
    let body = body.get(0).unwrap_or(&body);
    let error = body.get("error").unwrap_or(body);
    let words = words_of(body).unwrap_or_else(|| refusal.body.to_owned());
    refusal.error(meaning(error), &words)
}

/// Classifies an error inside a stream that began well: the value of `error`, or the whole event.
pub(super) fn from_event(error: &Value) -> ModelError {
    let words = words_of(error).unwrap_or_else(|| "it gave no reason".to_owned());
    let code = [&error["code"], &error["type"]];
    let kind = code.iter().find_map(|code| code.as_str());
    let otherwise = match kind {
        Some("invalid_request_error" | "invalid_prompt" | "model_not_found") => ErrorKind::Refused,
        _ => ErrorKind::BadOutput,
    };
    let meaning = ErrorKind::of_event(error, meaning(error), &words, otherwise);
    let words = kind.map_or(words.clone(), |kind| format!("{words} ({kind})"));
    meaning.event_error(&words, error)
}

/// Whether a model refused to return its reasoning because it does not reason.
pub(super) fn is_about_reasoning(error: &ModelError) -> bool {
    matches!(error, ModelError::Refused { message }
        if message.starts_with("Encrypted content is not supported"))
}

/// Maps the codes of the provider and of compatible servers; the code is more specific than the
/// type.
fn meaning(error: &Value) -> Option<ErrorKind> {
    let of = |code: &Value| match code.as_str()? {
        "insufficient_quota"
        | "billing_hard_limit_reached"
        | "billing_not_active"
        | "invalid_api_key"
        | "account_deactivated"
        | "authentication_error"
        | "permission_error" => Some(ErrorKind::Auth),
        "context_length_exceeded" | "exceed_context_size_error" => Some(ErrorKind::ContextTooLong),
        "rate_limit_exceeded" | "rate_limit_error" | "usage_limit_reached" => {
            Some(ErrorKind::RateLimited)
        }
        "server_error"
        | "internal_server_error"
        | "server_is_overloaded"
        | "overloaded_error"
        | "slow_down"
        | "service_unavailable"
        | "unavailable_error"
        | "vector_store_timeout" => Some(ErrorKind::Overloaded),
        "content_policy_violation" | "content_filter" | "moderation_blocked" => {
            Some(ErrorKind::Refused)
        }
        _ => None,
    };
    of(&error["code"]).or_else(|| of(&error["type"]))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use reqwest::{StatusCode, header::HeaderMap};
    use serde_json::json;

    use super::*;

    #[test]
    fn refusals_have_meanings() {
        let told = |status: u16, body: Value| {
            let refusal = ErrorResponse {
                status: StatusCode::from_u16(status).unwrap(),
                headers: &HeaderMap::new(),
                body: &body.to_string(),
                now: Timestamp::UNIX_EPOCH,
            };
            from_refusal(&refusal).to_string()
        };
        let own = |code: &str, message: &str| json!({"error": {"message": message, "code": code}});
        insta::assert_snapshot!(told(429, own("insufficient_quota", "You exceeded your current quota")), @"the model's provider refused the key: You exceeded your current quota (HTTP 429)");
        insta::assert_snapshot!(told(429, own("rate_limit_exceeded", "slow down")), @"the model's provider limits the rate: slow down (HTTP 429)");
        insta::assert_snapshot!(told(400, own("context_length_exceeded", "too long")), @"the prompt is too long for the model: too long (HTTP 400)");
        insta::assert_snapshot!(told(400, json!({"error": {"code": 400, "message": "request (9 tokens) exceeds the available context size (4 tokens), try increasing it", "type": "exceed_context_size_error"}})), @"the prompt is too long for the model: request (9 tokens) exceeds the available context size (4 tokens), try increasing it (HTTP 400)");
        insta::assert_snapshot!(told(400, json!({"object": "error", "message": "This model's maximum context length is 8 tokens", "code": 400})), @"the prompt is too long for the model: This model's maximum context length is 8 tokens (HTTP 400)");
        insta::assert_snapshot!(told(404, json!({"error": "no such model"})), @"the model refused: no such model (HTTP 404)");
        insta::assert_snapshot!(told(422, json!({"detail": "a field is missing"})), @"the model refused: a field is missing (HTTP 422)");
        insta::assert_snapshot!(told(502, json!([1])), @"the model's provider is overloaded: [1] (HTTP 502)");
        let refused = told(
            400,
            own("x", "Encrypted content is not supported with this model."),
        );
        insta::assert_snapshot!(refused, @"the model refused: Encrypted content is not supported with this model. (HTTP 400)");
    }

    #[test]
    fn errors_in_streams_have_meanings() {
        let told = |error: Value| from_event(&error).to_string();
        insta::assert_snapshot!(told(json!({"code": "rate_limit_exceeded", "message": "wait"})), @"the model's provider limits the rate: wait (rate_limit_exceeded)");
        insta::assert_snapshot!(told(json!({"code": 502, "message": "nobody there"})), @"the model's provider is overloaded: nobody there");
        insta::assert_snapshot!(told(json!({"type": "invalid_request_error", "code": null, "message": "no"})), @"the model refused: no (invalid_request_error)");
        insta::assert_snapshot!(told(json!("the request exceeds the available context size")), @"the prompt is too long for the model: the request exceeds the available context size");
        insta::assert_snapshot!(told(json!({"code": "tomorrow"})), @"the model's reply could not be read: it gave no reason (tomorrow)");
    }
}
