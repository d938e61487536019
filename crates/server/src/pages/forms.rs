//! Answers to forms.

use axum::{
    http::{HeaderValue, StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
};

/// Redirects a browser from a sent form to the page with the result.
pub(super) fn see(path: &str) -> Response {
    let path = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(LOCATION, path)]).into_response()
}

/// Returns the text of a form's field; `None` if it is empty.
pub(super) fn typed(text: String) -> Option<String> {
    // Forms send line breaks as two characters.
    let text = text.replace("\r\n", "\n");
    (!text.trim().is_empty()).then_some(text)
}
