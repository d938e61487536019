//! The server itself: its health, its figures, its tokens, and the command line.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    fmt::Write as _,
    sync::{Arc, atomic::Ordering},
};

use axum::{
    Extension, Json,
    body::Body,
    extract::State,
    http::{
        HeaderMap, HeaderName, StatusCode,
        header::{CONTENT_TYPE, SET_COOKIE},
    },
    response::{IntoResponse, Response},
    routing::{delete, get, post},
};
use futures_util::stream;
use gyrus_runtime::queue::CommandStage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::runs::blocking;
use crate::{
    app::App,
    endpoint::{BodyForm, Endpoint, acts, decides, reads},
    error::ApiError,
    extract::{ApiJson, ApiPath},
    health::ServerStatus,
    tokens::{AccessTokens, Requester, TokenRecord, TokenScope},
};

/// Maximum number of words of a command line, and of bytes in all of them.
const MAX_WORDS: usize = 1_000;
const MAX_BYTES: usize = 1 << 20;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        reads("/healthz", get(health))
            .named("health", "Return whether the server works")
            .json::<Health>(200, "It works.")
            .json::<Health>(
                503,
                "Something is in the way of accepted work; `/api/status` says what.",
            )
            .for_everybody(),
        reads("/metrics", get(metrics))
            .named("metrics", "Return figures for Prometheus")
            .answer(200, "The figures.", BodyForm::Other("text/plain")),
        reads("/api/status", get(status))
            .named(
                "showStatus",
                "Show the server, its folder, its processes and its queue",
            )
            .json::<ServerStatus>(200, "The server as it is now."),
        reads("/openapi.json", get(openapi))
            .named("openapi", "Return this document")
            .json::<Value>(200, "The document.")
            .for_everybody(),
        decides("/api/command", post(command))
            .named("runCommand", "Carry out a command of the command line")
            .body::<CommandLine>()
            .answer(
                200,
                "Its output and its end, in lines of JSON: `{\"stdout\": TEXT}`, \
                 `{\"stderr\": TEXT}`, at last `{\"ended\": CODE}`.",
                BodyForm::Other("application/jsonl"),
            ),
        decides("/api/invitations", post(invite))
            .named("invite", "Make a code that lets a browser in")
            .json::<Invitation>(200, "The code."),
        decides("/api/tokens", get(tokens))
            .reading()
            .named("listTokens", "List tokens, without their secrets")
            .json::<Vec<TokenRecord>>(200, "The tokens."),
        decides("/api/tokens", post(make_token))
            .named("makeToken", "Make a token")
            .body::<NewToken>()
            .json::<MadeToken>(201, "The token; its secret is never shown again."),
        decides("/api/tokens/{name}", delete(revoke_token))
            .deleting()
            .named("revokeToken", "Revoke a token")
            .answer(204, "It does not count any more.", BodyForm::Empty),
        acts("/login", post(login))
            .named(
                "login",
                "Exchange the code of the printed address for a cookie",
            )
            .body::<Login>()
            .answer(204, "The browser is let in.", BodyForm::Empty)
            .for_everybody(),
    ]
}

/// Whether the server works.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Health {
    /// Its version.
    version: String,
    /// Whether all runs are stopped.
    stopped: bool,
}

pub(crate) async fn health(State(app): State<Arc<App>>) -> (StatusCode, Json<Health>) {
    let status = match app.gateway.want() {
        None => StatusCode::OK,
        Some(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    let health = Health {
        version: app.options.build.to_owned(),
        stopped: app.options.latch.check().is_err(),
    };
    (status, Json(health))
}

async fn status(State(app): State<Arc<App>>) -> Result<Json<ServerStatus>, ApiError> {
    blocking(move || ServerStatus::now(&app).map(Json)).await
}

pub(crate) async fn openapi(State(app): State<Arc<App>>) -> Json<Value> {
    Json(app.document.get().cloned().unwrap_or_default())
}

type PlainText = ([(HeaderName, &'static str); 1], String);

pub(crate) async fn metrics(State(app): State<Arc<App>>) -> PlainText {
    let mut stages: BTreeMap<&str, usize> = BTreeMap::new();
    app.gateway.with(|queue| {
        for standing in queue.all() {
            let stage = match standing.stage {
                CommandStage::Queued => "queued",
                CommandStage::Running { .. } => "running",
                CommandStage::Parked { .. } => "parked",
                CommandStage::Ended { .. } => "ended",
                CommandStage::Cancelled { .. } => "cancelled",
            };
            *stages.entry(stage).or_default() += 1;
        }
    });
    let counters = &app.counters;
    let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let mut text = String::new();
    for (name, kind, help, value) in [
        (
            "gyrus_requests_total",
            "counter",
            "Requests.",
            read(&counters.requests),
        ),
        (
            "gyrus_requests_refused_total",
            "counter",
            "Requests that were refused.",
            read(&counters.refused),
        ),
        (
            "gyrus_streams",
            "gauge",
            "Open streams of events.",
            read(&counters.streams),
        ),
        (
            "gyrus_questions",
            "gauge",
            "Questions that wait for a person.",
            app.heads.questions() as u64,
        ),
        (
            "gyrus_stopped",
            "gauge",
            "Whether all runs are stopped.",
            u64::from(app.options.latch.check().is_err()),
        ),
    ] {
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"
        );
    }
    text.push_str(
        "# HELP gyrus_commands Commands of the queue by stage.\n# TYPE gyrus_commands gauge\n",
    );
    for stage in ["queued", "running", "parked", "ended", "cancelled"] {
        let count = stages.get(stage).copied().unwrap_or(0);
        let _ = writeln!(text, "gyrus_commands{{stage=\"{stage}\"}} {count}");
    }
    (
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text,
    )
}

/// A command of the command line.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandLine {
    /// The words after `gyrus`.
    #[schemars(length(min = 1))]
    arguments: Vec<String>,
    /// The text that it reads from standard input.
    #[serde(default)]
    stdin: String,
}

pub(crate) async fn command(
    State(app): State<Arc<App>>,
    ApiJson(line): ApiJson<CommandLine>,
) -> Result<Response, ApiError> {
    let bytes: usize = line.arguments.iter().map(String::len).sum();
    if line.arguments.is_empty() || line.arguments.len() > MAX_WORDS || bytes > MAX_BYTES {
        return Err(ApiError::bad_request(
            "invalid `arguments`: 1 to 1,000 words, at most 1 MiB",
        ));
    }
    if line.arguments.iter().any(|word| word.contains('\0')) {
        return Err(ApiError::bad_request(
            "invalid `arguments`: a word has a zero byte",
        ));
    }
    let pieces = app
        .program
        .begin_command(line.arguments, line.stdin.into_bytes())?;
    let lines = stream::unfold(pieces, |mut pieces| async move {
        let piece = pieces.recv().await?;
        let mut line = serde_json::to_string(&piece).unwrap_or_default();
        line.push('\n');
        Some((Ok::<_, Infallible>(line), pieces))
    });
    let headers = [(CONTENT_TYPE, "application/jsonl")];
    Ok((headers, Body::from_stream(lines)).into_response())
}

pub(crate) async fn tokens(
    State(app): State<Arc<App>>,
) -> Result<Json<Vec<TokenRecord>>, ApiError> {
    blocking(move || Ok(Json(AccessTokens::list(&app.store)?))).await
}

/// A token to make.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewToken {
    /// Its name.
    #[schemars(regex(pattern = r"^[A-Za-z0-9._-]{1,64}$"))]
    name: String,
    /// The scopes of its holder.
    #[schemars(with = "Vec<TokenScope>", length(min = 1))]
    scopes: BTreeSet<TokenScope>,
}

/// A token that was made.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MadeToken {
    /// The secret.
    token: String,
}

pub(crate) async fn make_token(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    ApiJson(new): ApiJson<NewToken>,
) -> Result<(StatusCode, Json<MadeToken>), ApiError> {
    if new.scopes.is_empty() {
        let error = "invalid `scopes`: a token needs one at least";
        return Err(ApiError::bad_request(error));
    }
    // Nobody gives more than they have.
    if let Some(scope) = new.scopes.iter().find(|scope| !identity.may(**scope)) {
        let error = format!("you cannot give what you do not have: {scope:?}");
        return Err(ApiError::new(StatusCode::FORBIDDEN, error));
    }
    let token = app.tokens.make(&new.name, new.scopes).await?;
    Ok((StatusCode::CREATED, Json(MadeToken { token })))
}

pub(crate) async fn revoke_token(
    State(app): State<Arc<App>>,
    ApiPath(name): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    match app.tokens.revoke(&name).await? {
        0 => Err(ApiError::not_found(format!("there is no token `{name}`"))),
        _ => Ok(StatusCode::NO_CONTENT),
    }
}

/// An address that lets one browser in.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Invitation {
    /// The code, which counts once, within ten minutes.
    code: String,
}

pub(crate) async fn invite(State(app): State<Arc<App>>) -> Result<Json<Invitation>, ApiError> {
    let code = app.tokens.code(TokenScope::all())?;
    Ok(Json(Invitation { code }))
}

/// The code of the printed address.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    /// The code.
    code: String,
}

pub(crate) async fn login(
    State(app): State<Arc<App>>,
    ApiJson(login): ApiJson<Login>,
) -> Result<(StatusCode, HeaderMap), ApiError> {
    let Some(secret) = app.tokens.exchange(&login.code).await? else {
        let error = "the code does not count; it lets in once, within ten minutes";
        return Err(ApiError::new(StatusCode::FORBIDDEN, error)
            .hint("for another address: gyrus serve open"));
    };
    let name = &app.options.cookie;
    let cookie = format!("{name}={secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000");
    let mut headers = HeaderMap::new();
    let value = cookie
        .parse()
        .map_err(|_| ApiError::internal("the cookie is malformed"))?;
    headers.insert(SET_COOKIE, value);
    Ok((StatusCode::NO_CONTENT, headers))
}
