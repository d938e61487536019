//! A person at the screen: their token and key, and what the page and the session share.

use std::{
    fmt::Write,
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    extract::Request,
    http::{
        HeaderMap, HeaderValue, Method,
        header::{HOST, ORIGIN},
    },
};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::InputWatcher;

/// Header with the key of a request.
const KEY: &str = "x-gyrus-key";

/// Maximum number of characters shown of a run's reason.
const MAX_REASON: usize = 1_000;

/// Result of a takeover that a person ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenBack {
    /// The person's message to the run.
    pub words: Option<String>,
}

/// State of one takeover page.
pub(crate) struct TakeoverDesk {
    /// The model's reason for asking a person to take over.
    pub(crate) reason: Option<String>,
    /// Hears of every input.
    pub(super) watcher: Option<Arc<dyn InputWatcher>>,
    port: u16,
    /// Digest of the token; digests are compared in constant time. `None` once it was used.
    token: Mutex<Option<blake3::Hash>>,
    key: OnceLock<blake3::Hash>,
    /// Size of the page as last shown, in CSS pixels.
    shown: Mutex<(f64, f64)>,
    dragging: AtomicBool,
    /// Keeps inputs in order.
    pub(super) inputs: tokio::sync::Mutex<()>,
    give_back: Mutex<Option<oneshot::Sender<GivenBack>>>,
    closed: AtomicBool,
}

impl TakeoverDesk {
    /// Creates a desk at a screen of this size for the holder of `token`, and the channel that
    /// reports when they give the screen back.
    pub(super) fn new(
        (width, height): (u32, u32),
        (port, token): (u16, &str),
        reason: Option<&str>,
        watcher: Option<Arc<dyn InputWatcher>>,
    ) -> (Arc<Self>, oneshot::Receiver<GivenBack>) {
        let (give_back, given_back) = oneshot::channel();
        let shown = (f64::from(width), f64::from(height));
        let desk = Self {
            reason: reason.map(|reason| {
                let reason = gyrus_text::shorten(reason.trim(), MAX_REASON);
                gyrus_text::readable(&reason).into_owned()
            }),
            watcher,
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
    pub(crate) fn is_shown(&self, width: f64, height: f64) {
        *self.shown.lock() = (width, height);
    }

    /// Converts fractions of the picture to a point on the page.
    pub(crate) fn place(&self, x: f64, y: f64) -> (f64, f64) {
        let (width, height) = *self.shown.lock();
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

    /// Whether all access is denied.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Ends the takeover, once.
    pub(super) fn give_back(&self, given: GivenBack) {
        if let Some(give_back) = self.give_back.lock().take() {
            self.close();
            // The receiver is gone if the run ended at this moment.
            let _ = give_back.send(given);
        }
    }

    pub(super) fn exchange(&self, token: &[u8]) -> Option<String> {
        let mut wanted = self.token.lock();
        if *wanted != Some(blake3::hash(token)) {
            return None;
        }
        let key = random().ok()?;
        *wanted = None;
        self.key.set(blake3::hash(key.as_bytes())).ok()?;
        Some(key)
    }

    pub(super) fn has_key(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(KEY).map(|key| blake3::hash(key.as_bytes()));
        given.is_some() && given.as_ref() == self.key.get()
    }

    /// Whether a request comes from this page, or from a person who opens it.
    pub(super) fn is_ours(&self, request: &Request) -> bool {
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

/// Returns 128 random bits, in hexadecimal digits.
pub(super) fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let mut text = String::with_capacity(32);
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
