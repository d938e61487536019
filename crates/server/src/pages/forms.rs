//! Answers to forms.

use axum::{
    extract::Request,
    http::{HeaderValue, StatusCode, header::LOCATION},
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
};

use crate::endpoint::Endpoint;

impl Endpoint {
    /// Answers a form that succeeded with the page `target`, in which names stand for what is at
    /// their places in the endpoint's own path.
    pub(super) fn then_see(mut self, target: &'static str) -> Self {
        let path = self.path;
        self.route = self
            .route
            .layer(from_fn(move |request: Request, next: Next| {
                let target = filled(target, path, request.uri().path());
                async move {
                    let answer = next.run(request).await;
                    if answer.status().is_success() {
                        see(&target)
                    } else {
                        answer
                    }
                }
            }));
        self
    }
}

/// Returns `target` with the parts of an address that the names in its pattern stand for.
fn filled(target: &str, pattern: &str, address: &str) -> String {
    let parts = pattern.split('/').zip(address.split('/'));
    let named = parts.filter(|(name, _)| name.starts_with('{'));
    named.fold(target.to_owned(), |target, (name, part)| {
        target.replace(name, part)
    })
}

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
