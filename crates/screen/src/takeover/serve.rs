//! The page over HTTP, on loopback.
//!
//! Static files (`page.html` and the others) are served to every client that uses exactly this
//! address; the token in the address's fragment leaves the person's browser only in the request
//! that uses it up. Pages of other origins have no access.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Request, State},
    http::{
        HeaderValue, StatusCode,
        header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE},
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use tokio::{net::TcpListener, sync::mpsc};

use super::{
    PersonInput,
    desk::{GivenBack, TakeoverDesk},
    did::Did,
    taken_screen::TakenScreen,
};

/// Maximum bytes of a request.
const BODY_LIMIT: usize = 256 * 1024;

/// Maximum characters of the message to the run.
const MAX_WORDS: usize = 1_000;

/// Headers of every answer.
const HEADERS: [(&str, &str); 5] = [
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src blob:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// A desk, with the screen that is taken over at it.
#[derive(Clone)]
pub(super) struct ServedDesk {
    pub(super) desk: Arc<TakeoverDesk>,
    pub(super) screen: Arc<dyn TakenScreen>,
}

/// Serves the takeover page until it is aborted.
pub(super) async fn serve(served: ServedDesk, listener: TcpListener) {
    let desk = served.desk.clone();
    let kept = Router::new()
        .route("/live", get(live))
        .route("/did", post(did))
        .route("/back", post(back))
        .layer(middleware::from_fn_with_state(desk.clone(), with_key));
    let app = Router::new()
        .route(
            "/",
            get(|| file("text/html; charset=utf-8", include_str!("page.html"))),
        )
        .route(
            "/page.css",
            get(|| file("text/css", include_str!("page.css"))),
        )
        .route(
            "/page.js",
            get(|| file("text/javascript", include_str!("page.js"))),
        )
        .route("/open", post(open))
        .merge(kept)
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(middleware::from_fn_with_state(desk, ours_only))
        .with_state(served);
    // It fails only when the listener does, and then no one can connect.
    let _ = axum::serve(listener, app).await;
}

async fn file(kind: &'static str, text: &'static str) -> impl IntoResponse {
    ([(CONTENT_TYPE, kind)], text)
}

async fn ours_only(
    State(desk): State<Arc<TakeoverDesk>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = if desk.is_closed() {
        StatusCode::GONE.into_response()
    } else if desk.is_ours(&request) {
        next.run(request).await
    } else {
        StatusCode::FORBIDDEN.into_response()
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn with_key(State(desk): State<Arc<TakeoverDesk>>, request: Request, next: Next) -> Response {
    if desk.has_key(request.headers()) {
        next.run(request).await
    } else {
        StatusCode::FORBIDDEN.into_response()
    }
}

async fn open(State(served): State<ServedDesk>, token: Bytes) -> Response {
    match served.desk.exchange(&token) {
        Some(key) => key.into_response(),
        None => StatusCode::FORBIDDEN.into_response(),
    }
}

async fn live(State(ServedDesk { desk, screen }): State<ServedDesk>) -> Response {
    let (out, chunks) = mpsc::channel(1);
    tokio::spawn(screen.show(desk, out));
    let chunks = futures_util::stream::unfold(chunks, |mut chunks| async {
        let chunk = chunks.recv().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(chunk), chunks))
    });
    let kind = [(CONTENT_TYPE, "application/octet-stream")];
    (kind, Body::from_stream(chunks)).into_response()
}

async fn did(State(ServedDesk { desk, screen }): State<ServedDesk>, body: Bytes) -> Response {
    let Ok(all) = serde_json::from_slice::<Vec<Did>>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let _turn = desk.inputs.lock().await;
    let mut said = Vec::new();
    for one in all {
        if let (Some(watcher), Some(input)) = (&desk.watcher, one.seen()) {
            watcher.before(input).await;
        }
        if let Err(why) = screen.forward(&desk, one).await {
            said.push(why);
        }
    }
    said.join("; ").into_response()
}

async fn back(State(ServedDesk { desk, .. }): State<ServedDesk>, words: String) -> StatusCode {
    let words = gyrus_text::first_chars(words.trim(), MAX_WORDS).to_owned();
    let given = GivenBack {
        words: (!words.is_empty()).then_some(words),
    };
    if let Some(watcher) = &desk.watcher {
        let _turn = desk.inputs.lock().await;
        watcher.before(PersonInput::GivesBack).await;
    }
    desk.give_back(given);
    StatusCode::NO_CONTENT
}
