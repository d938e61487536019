//! The guard of the server. Every request passes here, in this order: does it mean this server, does it
//! come from a page of this server or from no page, who asks, may they do this, do they ask too
//! often.

use std::{collections::HashMap, sync::Arc, time::Instant};

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode,
        header::{
            ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
            ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE, AUTHORIZATION, CACHE_CONTROL,
            CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, COOKIE, HOST, ORIGIN,
            REFERRER_POLICY, RETRY_AFTER, VARY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
            X_FRAME_OPTIONS,
        },
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use gyrus_contract::Principal;
use parking_lot::Mutex;

use crate::{
    app::{App, Counters},
    connection::Peer,
    endpoint::Endpoint,
    error::ApiError,
    pages,
    tokens::{Requester, TokenScope},
};

/// Maximum size of a body in bytes.
pub(crate) const MAX_BODY: usize = 4 << 20;

/// Number of requests a second that an identity may sustain, before the number that it may save.
const RATE: f64 = 200.0;
const BURST: f64 = 1_000.0;

/// The policy of pages: what they may load and do.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' blob:; connect-src 'self'; worker-src 'self'; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'none'";

pub(crate) fn guarded(endpoints: Vec<Endpoint>, app: Arc<App>) -> Router {
    let rates = Arc::new(Rates::default());
    let mut router: Router<Arc<App>> = Router::new();
    for endpoint in endpoints {
        let need = Need {
            app: Arc::clone(&app),
            scope: endpoint.scope,
            is_page: endpoint.is_page,
            is_for_origins: endpoint.is_for_origins,
            rates: Arc::clone(&rates),
        };
        let route = endpoint
            .route
            .route_layer(middleware::from_fn_with_state(Arc::new(need), authorised));
        router = router.route(endpoint.path, route);
    }
    router
        .method_not_allowed_fallback(|app: State<Arc<App>>, request: Request| async move {
            let error = format!("this address takes no {} request", request.method());
            let error = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, error);
            refused(&app, &request, error)
        })
        .fallback(|app: State<Arc<App>>, request: Request| async move {
            let error = ApiError::not_found("there is nothing at this address");
            refused(&app, &request, error)
        })
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), at_home))
        .with_state(app)
}

/// Refuses a request for which there is no endpoint; a person who is let in sees a page.
fn refused(app: &App, request: &Request, error: ApiError) -> Response {
    let accepts = request.headers().get(ACCEPT).map(HeaderValue::as_bytes);
    let is_browser = accepts.is_some_and(|kinds| kinds.starts_with(b"text/html"));
    let response = error.into_response();
    if is_browser && identify(app, request).is_some() {
        return pages::with_errors_as_pages(app, response);
    }
    response
}

/// The origin of the page that sent a request, if the person named it.
#[derive(Clone)]
struct NamedOrigin(HeaderValue);

impl NamedOrigin {
    fn of(app: &App, request: &Request) -> Option<Self> {
        let origin = request.headers().get(ORIGIN)?;
        let name = origin.to_str().ok()?.to_ascii_lowercase();
        app.options
            .origins
            .contains(&name)
            .then(|| Self(origin.clone()))
    }

    /// Returns the answer to a browser that asks what a page of this origin may send.
    fn preflight() -> Response {
        let mut response = StatusCode::NO_CONTENT.into_response();
        for (name, value) in [
            (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
            (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type"),
            (ACCESS_CONTROL_MAX_AGE, "600"),
        ] {
            response
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Refuses requests for another host or from a foreign page.
async fn at_home(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    Counters::add(&app.counters.requests);
    let refusal = strange(&app, &request);
    let origin = NamedOrigin::of(&app, &request);
    let asks = origin.is_some() && *request.method() == Method::OPTIONS;
    if let Some(origin) = &origin {
        request.extensions_mut().insert(origin.clone());
    }
    let has_body = !matches!(*request.method(), Method::GET | Method::HEAD);
    let mut response = match refusal {
        Some(error) => error.into_response(),
        None if asks => NamedOrigin::preflight(),
        None => next.run(request).await,
    };
    if response.status().is_client_error() {
        Counters::add(&app.counters.refused);
        if has_body {
            // Its body may not have been read, so that nothing else can follow on the connection.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
    }
    let headers = response.headers_mut();
    if let Some(NamedOrigin(origin)) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    if !app.options.origins.is_empty() {
        headers.insert(VARY, HeaderValue::from_static("Origin"));
    }
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // Without a referrer, a browser would send the forms of our own pages with `Origin: null`.
        (REFERRER_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Returns the error for a request to another host or from a foreign page.
fn strange(app: &App, request: &Request) -> Option<ApiError> {
    // A delivery is signed, and comes by whatever name the sender knows.
    if request.uri().path().starts_with("/hooks/") {
        return too_long(request.headers());
    }
    let is_local = matches!(request.extensions().get(), Some(Peer::Local { .. }));
    let headers = request.headers();
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    // A page whose name was made to lead here still gives its own name. A local socket has none.
    let knows = host.is_some_and(|host| app.options.hosts.contains(&host.to_ascii_lowercase()));
    if !is_local && (!knows || headers.get_all(HOST).iter().count() != 1) {
        let given = host.unwrap_or_default();
        return Some(
            ApiError::new(StatusCode::FORBIDDEN, format!("invalid host `{given}`"))
                .hint("use the address that `gyrus serve` printed"),
        );
    }
    let foreign = |error: &str| Some(ApiError::new(StatusCode::FORBIDDEN, error));
    if NamedOrigin::of(app, request).is_some() {
        return too_long(headers);
    }
    if let Some(origin) = headers.get(ORIGIN) {
        let own = origin.to_str().ok().and_then(|origin| {
            let (_, host) = origin.split_once("://")?;
            Some(app.options.hosts.contains(&host.to_ascii_lowercase()))
        });
        if own != Some(true) {
            return foreign("the request comes from a page of another origin");
        }
    }
    if let Some(error) = too_long(headers) {
        return Some(error);
    }
    let site = headers
        .get("sec-fetch-site")
        .and_then(|site| site.to_str().ok());
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD);
    if !is_safe && matches!(site, Some("cross-site" | "same-site")) {
        return foreign("the request comes from a page of another site");
    }
    None
}

/// Returns the error for a body whose declared length is too large.
fn too_long(headers: &HeaderMap) -> Option<ApiError> {
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok());
    let length: Option<u64> = length.and_then(|length| length.parse().ok());
    length.filter(|length| *length > MAX_BODY as u64)?;
    let error = format!("the body is longer than {MAX_BODY} bytes");
    Some(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, error))
}

struct Need {
    app: Arc<App>,
    scope: Option<TokenScope>,
    is_page: bool,
    is_for_origins: bool,
    rates: Arc<Rates>,
}

/// Refuses clients that may not use an endpoint.
async fn authorised(State(need): State<Arc<Need>>, request: Request, next: Next) -> Response {
    let is_page = need.is_page;
    let app = Arc::clone(&need.app);
    let response = admitted(&need, request, next).await;
    if is_page {
        return pages::with_errors_as_pages(&app, response);
    }
    response
}

async fn admitted(need: &Need, mut request: Request, next: Next) -> Response {
    if !need.is_for_origins && request.extensions().get::<NamedOrigin>().is_some() {
        let error = "pages of other origins may not use this";
        return ApiError::new(StatusCode::FORBIDDEN, error).into_response();
    }
    let Some(scope) = need.scope else {
        // Whoever sends something without a token shares one rate.
        if *request.method() == Method::POST {
            if !need.rates.admits(&everybody()) {
                return too_many();
            }
            // It may have read a code or the secret of a webhook.
            if comes_from_a_run(&need.app, &request) {
                return part_of_a_run();
            }
        }
        return next.run(request).await;
    };
    let Some(identity) = identify(&need.app, &request) else {
        let error = ApiError::new(StatusCode::UNAUTHORIZED, "there is no token that counts")
            .hint("send `Authorization: Bearer TOKEN`; to make one: gyrus serve token NAME");
        let mut response = error.into_response();
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        return response;
    };
    if comes_from_a_run(&need.app, &request) {
        return part_of_a_run();
    }
    if !identity.may(scope) {
        let name = &identity.principal.id;
        let error = format!("the token `{name}` may not do this; it needs another scope");
        return ApiError::new(StatusCode::FORBIDDEN, error).into_response();
    }
    if !need.rates.admits(&identity.principal) {
        return too_many();
    }
    request.extensions_mut().insert(identity);
    next.run(request).await
}

fn part_of_a_run() -> Response {
    let error = "a command or a page of a run cannot use this";
    ApiError::new(StatusCode::FORBIDDEN, error).into_response()
}

fn too_many() -> Response {
    let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too many requests");
    let mut response = error.hint("wait a second").into_response();
    let second = HeaderValue::from_static("1");
    response.headers_mut().insert(RETRY_AFTER, second);
    response
}

fn everybody() -> Principal {
    Principal {
        surface: "everybody".to_owned(),
        id: "everybody".to_owned(),
    }
}

fn identify(app: &App, request: &Request) -> Option<Requester> {
    let headers = request.headers();
    if let Some(given) = headers.get(AUTHORIZATION) {
        let secret = given.to_str().ok()?.strip_prefix("Bearer ")?;
        return app.tokens.identify(secret.trim(), false);
    }
    // A browser sends the cookie with what a page of another origin asks, too.
    if request.extensions().get::<NamedOrigin>().is_some() {
        return None;
    }
    if let Some(secret) = cookie(headers, &app.options.cookie) {
        return app.tokens.identify(secret, true);
    }
    match request.extensions().get() {
        Some(Peer::Local { principal, .. }) => Some(Requester::owner(principal.clone())),
        Some(Peer::Network { .. }) | None => None,
    }
}

fn cookie<'h>(headers: &'h HeaderMap, own: &str) -> Option<&'h str> {
    let cookies = headers.get_all(COOKIE).iter();
    let mut pairs = cookies
        .filter_map(|cookies| cookies.to_str().ok())
        .flat_map(|cookies| cookies.split(';'));
    pairs.find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == own).then_some(value)
    })
}

/// A run may have read a token, and its commands and browser run under the same user.
fn comes_from_a_run(app: &App, request: &Request) -> bool {
    match request.extensions().get::<Peer>() {
        Some(peer) => peer.is_part_of_a_run(|| app.drivers()),
        None => false,
    }
}

/// Recent request rates of identities: the allowance left and its time.
#[derive(Default)]
struct Rates(Mutex<HashMap<Principal, (f64, Instant)>>);

impl Rates {
    fn admits(&self, who: &Principal) -> bool {
        let now = Instant::now();
        // Identities are tokens, of which there is a limited number.
        let mut rates = self.0.lock();
        let (left, since) = rates.entry(who.clone()).or_insert((BURST, now));
        *left = (*left + now.duration_since(*since).as_secs_f64() * RATE).min(BURST);
        *since = now;
        if *left < 1.0 {
            return false;
        }
        *left -= 1.0;
        true
    }
}
