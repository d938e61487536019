//! Classifies the provider's refusals: the messages and kinds of its bodies and `error` events.

use gyrus_contract::ModelError;
use serde::Deserialize;

use crate::errors::{Meaning, Refusal};

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

/// Classifies a response with a status other than 200: the status decides.
pub(super) fn from_refusal(refusal: &Refusal<'_>) -> ModelError {
    let body = serde_json::from_str::<ErrorBody>(refusal.body).ok();
    let words = body.as_ref().map_or(refusal.body, |b| &b.error.message);
    refusal.error(None, words)
}

/// Classifies an `error` event inside a stream that began well.
pub(super) fn from_event(body: ErrorBody) -> ModelError {
    let ErrorDetail { kind, message } = body.error;
    let meaning = match kind.as_str() {
        "overloaded_error" | "api_error" | "timeout_error" => Meaning::Overloaded,
        "rate_limit_error" => Meaning::RateLimited,
        "authentication_error" | "permission_error" | "billing_error" => Meaning::Auth,
        "request_too_large" => Meaning::ContextTooLong,
        "invalid_request_error" => Meaning::of_words(&message).unwrap_or(Meaning::Refused),
        "not_found_error" => Meaning::Refused,
        _ => Meaning::BadOutput,
    };
    meaning.error(&format!("{message} ({kind})"), None)
}
