//! The page over HTTP, on loopback.
//!
//! Static files (`page.html` and the others) are served to every client that uses exactly this
//! address; the token in the address's fragment leaves the person's browser only in the request
//! that uses it up. Pages of other origins have no access.

use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Request, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode,
        header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN},
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
};

use super::{GivenBack, cast, hands};
use crate::browser::Session;

/// Maximum bytes of a request.
const BODY_LIMIT: usize = 256 * 1024;

/// Maximum characters of the message to the run.
const MAX_WORDS: usize = 1_000;

/// Header with the key of a request.
const KEY: &str = "x-gyrus-key";

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

/// State of one page.
pub(super) struct Desk {
    pub(super) session: Arc<Session>,
    port: u16,
    /// Digest of the token; digests are compared in constant time. `None` once it was used.
    token: Mutex<Option<blake3::Hash>>,
    key: OnceLock<blake3::Hash>,
    /// Size of the page as shown last, in CSS pixels.
    shown: Mutex<(f64, f64)>,
    dragging: AtomicBool,
    /// Keeps inputs in their order.
    inputs: tokio::sync::Mutex<()>,
    give_back: Mutex<Option<oneshot::Sender<GivenBack>>>,
    closed: AtomicBool,
}

impl Desk {
    /// Creates a desk for the holder of `token`, and the receiver of their giving back.
    pub(super) fn new(
        session: Arc<Session>,
        port: u16,
        token: &str,
    ) -> (Arc<Self>, oneshot::Receiver<GivenBack>) {
        let (give_back, given_back) = oneshot::channel();
        let shown = (
            f64::from(session.launch.width),
            f64::from(session.launch.height),
        );
        let desk = Self {
            session,
            port,
            token: Mutex::new(Some(blake3::hash(token.as_bytes()))),
            key: OnceLock::new(),
            shown: Mutex::new(shown),
            dragging: AtomicBool::new(false),
            inputs: tokio::sync::Mutex::default(),
            give_back: Mutex::new(Some(give_back)),
            closed: AtomicBool::new(false),
        };
        (Arc::new(desk), given_back)
    }

    /// Records the size of the page.
    pub(super) fn is_shown(&self, width: f64, height: f64) {
        *lock(&self.shown) = (width, height);
    }

    /// Converts fractions of the picture to a point on the page.
    pub(super) fn place(&self, x: f64, y: f64) -> (f64, f64) {
        let (width, height) = *lock(&self.shown);
        (x.clamp(0.0, 1.0) * width, y.clamp(0.0, 1.0) * height)
    }

    /// Sets whether a drag is in progress, and returns the previous value.
    pub(super) fn is_dragging(&self, now: bool) -> bool {
        self.dragging.swap(now, Ordering::Relaxed)
    }

    /// Denies all further access, on open connections too.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Exchanges the token for a key.
    fn exchange(&self, token: &[u8]) -> Option<String> {
        let mut wanted = lock(&self.token);
        if *wanted != Some(blake3::hash(token)) {
            return None;
        }
        let key = super::random().ok()?;
        *wanted = None;
        self.key.set(blake3::hash(key.as_bytes())).ok()?;
        Some(key)
    }

    fn has_key(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(KEY).map(|key| blake3::hash(key.as_bytes()));
        given.is_some() && given.as_ref() == self.key.get()
    }

    /// Whether a request comes from this page, or from a person who opens it.
    fn is_ours(&self, request: &Request) -> bool {
        let own = |value: &HeaderValue, start: &str| {
            let value = value.to_str().unwrap_or_default();
            let port = value.strip_prefix(start).and_then(|rest| {
                rest.strip_prefix("127.0.0.1:")
                    .or(rest.strip_prefix("localhost:"))
            });
            port == Some(&self.port.to_string())
        };
        let headers = request.headers();
        let host = headers.get(HOST).is_some_and(|host| own(host, ""));
        let origin = match headers.get(ORIGIN) {
            Some(origin) => own(origin, "http://"),
            None => request.method() == Method::GET,
        };
        let says = |name| headers.get(name).map(HeaderValue::as_bytes);
        // A person may come from anywhere: to the empty page, in a tab of its own.
        let arrives = request.uri().path() == "/" && says("sec-fetch-dest") == Some(b"document");
        let site = says("sec-fetch-site")
            .is_none_or(|site| site == b"same-origin" || site == b"none" || arrives);
        host && origin && site
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves the page until it is aborted.
pub(super) async fn serve(desk: Arc<Desk>, listener: TcpListener) {
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
        .layer(middleware::from_fn_with_state(desk.clone(), ours_only))
        .with_state(desk);
    // It fails only when the listener does, and then no one can connect.
    let _ = axum::serve(listener, app).await;
}

async fn file(kind: &'static str, text: &'static str) -> impl IntoResponse {
    ([(CONTENT_TYPE, kind)], text)
}

async fn ours_only(State(desk): State<Arc<Desk>>, request: Request, next: Next) -> Response {
    let mut response = if desk.closed.load(Ordering::Relaxed) {
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

async fn with_key(State(desk): State<Arc<Desk>>, request: Request, next: Next) -> Response {
    match desk.has_key(request.headers()) {
        true => next.run(request).await,
        false => StatusCode::FORBIDDEN.into_response(),
    }
}

async fn open(State(desk): State<Arc<Desk>>, token: Bytes) -> Response {
    match desk.exchange(&token) {
        Some(key) => key.into_response(),
        None => StatusCode::FORBIDDEN.into_response(),
    }
}

async fn live(State(desk): State<Arc<Desk>>) -> Response {
    let (out, chunks) = mpsc::channel(1);
    tokio::spawn(cast::show(desk, out));
    let chunks = futures_util::stream::unfold(chunks, |mut chunks| async {
        let chunk = chunks.recv().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(chunk), chunks))
    });
    let kind = [(CONTENT_TYPE, "application/octet-stream")];
    (kind, Body::from_stream(chunks)).into_response()
}

async fn did(State(desk): State<Arc<Desk>>, body: Bytes) -> Response {
    let Ok(all) = serde_json::from_slice::<Vec<hands::Did>>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let _turn = desk.inputs.lock().await;
    let mut said = Vec::new();
    for one in all {
        if let Err(why) = hands::forward(&desk, one).await {
            said.push(why);
        }
    }
    said.join("; ").into_response()
}

async fn back(State(desk): State<Arc<Desk>>, words: String) -> StatusCode {
    let words = gyrus_text::first_chars(words.trim(), MAX_WORDS).to_owned();
    let given = GivenBack {
        words: (!words.is_empty()).then_some(words),
    };
    if let Some(give_back) = lock(&desk.give_back).take() {
        desk.close();
        // The receiver is gone if the run ended at this moment.
        let _ = give_back.send(given);
    }
    StatusCode::NO_CONTENT
}
