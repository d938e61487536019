//! Classifies the provider's refusals: the messages and kinds of its bodies and `error` events.

use gyrus_contract::ModelError;
use serde_json::Value;

use crate::errors::{ErrorKind, ErrorResponse, words_of};

/// Classifies a response with a status other than 200 by its status.
pub(super) fn from_refusal(refusal: &ErrorResponse<'_>) -> ModelError {
    let body = serde_json::from_str::<Value>(refusal.body).unwrap_or_default();
    let words = words_of(&body).unwrap_or_else(|| refusal.body.to_owned());
    refusal.error(None, &words)
}

/// Classifies the `error` of an event inside a stream that began well.
pub(super) fn from_event(error: &Value) -> ModelError {
    let words = words_of(error).unwrap_or_default();
    let kind = error["type"].as_str().unwrap_or("no kind");
    let meaning = match kind {
        "overloaded_error" | "api_error" | "timeout_error" => Some(ErrorKind::Overloaded),
        "rate_limit_error" => Some(ErrorKind::RateLimited),
        "authentication_error" | "permission_error" | "billing_error" => Some(ErrorKind::Auth),
        "request_too_large" => Some(ErrorKind::ContextTooLong),
        "invalid_request_error" | "not_found_error" => Some(ErrorKind::Refused),
        _ => None,
    };
    let meaning = ErrorKind::of_event(error, meaning, &words, ErrorKind::BadOutput);
    meaning.event_error(&format!("{words} ({kind})"), error)
}
