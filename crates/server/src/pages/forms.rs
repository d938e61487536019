//! Answers to forms.

use axum::{
    http::{HeaderValue, StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
};

/// Leads a browser from a form that was sent to the page that shows what came of it.
pub(super) fn see(path: &str) -> Response {
    let path = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(LOCATION, path)]).into_response()
}

/// Returns what was typed into a field; `None` if it is empty.
pub(super) fn typed(text: String) -> Option<String> {
    // Forms send line breaks as two characters.
    let text = text.replace("\r\n", "\n");
    (!text.trim().is_empty()).then_some(text)
}
