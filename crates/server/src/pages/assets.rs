//! Styles and scripts, which are part of the program. Their address has the hash of all of them, so
//! that a browser keeps them for good and never mixes two versions.

use std::sync::OnceLock;

use axum::{
    http::{
        HeaderValue,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse, Redirect, Response},
};

use crate::{error::ApiError, extract::ApiPath};

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

macro_rules! web {
    ($($file:literal: $media:expr,)*) => {
        [$(($file, $media, include_bytes!(concat!("../../../../web/", $file)) as &[u8]),)*]
    };
}

/// The files of `web/`, with their media types.
const FILES: &[(&str, &str, &[u8])] = &web![
    "dashboard.css": STYLE,
    "live.css": STYLE,
    "run.css": STYLE,
    "places.css": STYLE,
    "icon.svg": "image/svg+xml",
    "main.js": SCRIPT,
    "enter.js": SCRIPT,
    "positions.js": SCRIPT,
    "positions-worker.js": SCRIPT,
    "update.js": SCRIPT,
    "announce.js": SCRIPT,
    "keys.js": SCRIPT,
    "live.js": SCRIPT,
    "widget.js": SCRIPT,
];

fn files() -> impl Iterator<Item = (&'static str, &'static str, &'static [u8])> {
    let page = ("page.css", STYLE, gyrus_surfaces::page::STYLE.as_bytes());
    FILES.iter().copied().chain([page])
}

fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let mut hasher = blake3::Hasher::new();
        for (name, _, bytes) in files() {
            hasher.update(name.as_bytes());
            hasher.update(bytes);
        }
        hasher.finalize().to_hex()[..16].to_owned()
    })
}

pub(super) fn path(file: &str) -> String {
    format!("/web/{}/{file}", version())
}

/// Redirects to the element that shows a run's cycle, from an address that never changes.
pub(super) async fn widget() -> Redirect {
    Redirect::temporary(&path("widget.js"))
}

pub(super) async fn file(
    ApiPath((given, file)): ApiPath<(String, String)>,
) -> Result<Response, ApiError> {
    let found = files().find(|(name, _, _)| *name == file && given == version());
    let Some((_, media, bytes)) = found else {
        return Err(ApiError::not_found("there is nothing at this address"));
    };
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=31536000, immutable"),
    );
    Ok(response)
}
