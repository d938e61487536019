//! The server: pages, what visitors do, and the ledger, over HTTP on loopback.

use std::{
    collections::BTreeMap,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, State},
    http::{
        HeaderMap, HeaderValue, StatusCode, Uri,
        header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION},
    },
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Map, Value};
use tokio::{net::TcpListener, sync::watch};
use url::form_urlencoded;

use crate::sites::{
    holds::SiteHolds,
    pages,
    world::{SiteEvent, SiteRefusal, Worlds},
};

/// The largest request body, in bytes.
const MAX_BODY: usize = 256 * 1024;
/// The longest that an answer is held back.
const MAX_DELAY: Duration = Duration::from_secs(10);

pub(crate) async fn listen(port: Option<u16>) -> io::Result<TcpListener> {
    gyrus_text::check_http_date(SystemTime::now())?;
    TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await
}

pub(crate) fn origin(address: SocketAddr) -> String {
    format!("http://{address}")
}

/// The state of one origin: the worlds, which both share, and where the other one is.
pub(crate) struct SiteState {
    worlds: Arc<Worlds>,
    holds: Arc<SiteHolds>,
    other: String,
}

/// Serves one origin until the sender of `stopped` is dropped.
pub(crate) fn serve(listener: TcpListener, served: SiteState, mut stopped: watch::Receiver<()>) {
    let router = Router::new()
        .route("/", get(async || see_other("/w/demo/")))
        .route("/site.css", get(async || typed("text/css", pages::STYLE)))
        .route(
            "/site.js",
            get(async || typed("text/javascript", pages::SCRIPT)),
        )
        .route(
            "/restyle.js",
            get(async || typed("text/javascript", pages::RESTYLE)),
        )
        .route("/w/{world}/", get(home))
        .route("/w/{world}/ledger", get(ledger))
        .route("/w/{world}/{site}/", get(first_page))
        .route("/w/{world}/{site}/{page}", get(page))
        .route("/w/{world}/{site}/act/{kind}", post(act))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(Arc::new(served));
    let serving = axum::serve(listener, router).with_graceful_shutdown(async move {
        // It resolves when the sender is dropped: that is the whole signal.
        _ = stopped.changed().await;
    });
    tokio::spawn(async { serving.await });
}

type SiteAnswer = Result<Response, SiteRefusal>;

async fn home(State(served): State<Arc<SiteState>>, Path(world): Path<String>) -> SiteAnswer {
    served.page(&world, "home", &BTreeMap::new()).await
}

async fn ledger(State(served): State<Arc<SiteState>>, Path(world): Path<String>) -> Response {
    let events = served.worlds.ledger(&world);
    json(StatusCode::OK, &events)
}

async fn first_page(
    State(served): State<Arc<SiteState>>,
    Path((world, site)): Path<(String, String)>,
    uri: Uri,
) -> SiteAnswer {
    served.page(&world, &site, &asked(&uri)).await
}

/// Returns a page of a site, which is one document that looks at its own address.
async fn page(
    State(served): State<Arc<SiteState>>,
    Path((world, site, _)): Path<(String, String, String)>,
    uri: Uri,
) -> SiteAnswer {
    served.page(&world, &site, &asked(&uri)).await
}

async fn act(
    State(served): State<Arc<SiteState>>,
    Path((world, site, kind)): Path<(String, String, String)>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> SiteAnswer {
    let asked = asked(&uri);
    if pages::find(&site).is_none() {
        return Ok((StatusCode::NOT_FOUND, "there is no such site").into_response());
    }
    if let Some(unwell) = served
        .moods(&world, &format!("{site}/{kind}"), &asked)
        .await?
    {
        return Ok(unwell);
    }
    let is_json = headers
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let data = if is_json {
        serde_json::from_slice(&body)
            .map_err(|error| SiteRefusal::Invalid(format!("this is not a JSON object: {error}")))?
    } else {
        form_urlencoded::parse(&body)
            .map(|(key, value)| (key.into_owned(), Value::from(value.into_owned())))
            .collect::<Map<_, _>>()
    };
    let event: SiteEvent = served.worlds.act(&world, &site, &kind, data)?;
    served.holds.pass(&world, &kind).await;
    // Only pages of this site: a form cannot send its visitor elsewhere.
    match asked.get("next").filter(|next| !next.contains([':', '/'])) {
        Some(next) => Ok(see_other(&format!("/w/{world}/{site}/{next}"))),
        None => Ok(json(StatusCode::OK, &event)),
    }
}

impl SiteState {
    pub(crate) fn new(worlds: &Arc<Worlds>, holds: &Arc<SiteHolds>, other: SocketAddr) -> Self {
        Self {
            worlds: worlds.clone(),
            holds: holds.clone(),
            other: origin(other),
        }
    }

    async fn page(&self, world: &str, site: &str, asked: &BTreeMap<String, String>) -> SiteAnswer {
        let Some(found) = pages::find(site) else {
            return Ok((StatusCode::NOT_FOUND, "there is no such site").into_response());
        };
        if let Some(unwell) = self.moods(world, site, asked).await? {
            return Ok(unwell);
        }
        let html = pages::draw(found, world, &self.worlds.ledger(world), &self.other);
        Ok(typed("text/html; charset=utf-8", html))
    }

    /// Waits for the time given in the address as `slow=MILLISECONDS`. Of requests with `fails=N`,
    /// the first N of every N+1 are refused.
    async fn moods(
        &self,
        world: &str,
        address: &str,
        asked: &BTreeMap<String, String>,
    ) -> Result<Option<Response>, SiteRefusal> {
        let number = |name| asked.get(name).and_then(|text| text.parse().ok());
        if let Some(delay) = number("slow") {
            tokio::time::sleep(Duration::from_millis(delay).min(MAX_DELAY)).await;
        }
        let Some(fails) = number("fails").filter(|fails| *fails > 0) else {
            return Ok(None);
        };
        let is_down = self.worlds.count(world, address)? % fails.saturating_add(1) != 0;
        Ok(is_down.then(|| {
            let html = typed("text/html; charset=utf-8", pages::UNAVAILABLE);
            (StatusCode::SERVICE_UNAVAILABLE, html).into_response()
        }))
    }
}

fn asked(uri: &Uri) -> BTreeMap<String, String> {
    let query = uri.query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect()
}

fn see_other(location: &str) -> Response {
    match HeaderValue::from_str(location) {
        Ok(location) => (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response(),
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

fn typed(kind: &'static str, body: impl Into<axum::body::Body>) -> Response {
    let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-store")];
    (headers, body.into()).into_response()
}

fn json(status: StatusCode, value: &impl serde::Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => (status, typed("application/json", text)).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

impl IntoResponse for SiteRefusal {
    fn into_response(self) -> Response {
        let status = match self {
            Self::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
            Self::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
        };
        (status, self.to_string()).into_response()
    }
}
