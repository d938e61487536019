//! Reading requests, with errors in the form of the API.

use std::{borrow::Cow, sync::Arc, time::Duration};

use axum::{
    Form,
    body::Bytes,
    extract::{FromRequest, FromRequestParts, Path, Query, Request},
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE, request::Parts},
};
use gyrus_contract::RunId;
use gyrus_kernel::find_run;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{app::App, error::ApiError};

/// Time within which a body must have arrived.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// The highest number that a client may send, which every client can represent.
pub(crate) const MAX_NUMBER: u64 = (1 << 53) - 1;

pub(crate) struct ApiJson<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for ApiJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        if !is_json(request.headers()) {
            let error = "the body is not declared as JSON";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, error)
                .hint("send `Content-Type: application/json`"));
        }
        let bytes = bytes(request, app).await?;
        let value = serde_json::from_slice(&bytes);
        value
            .map(ApiJson)
            .map_err(|error| ApiError::bad_request(format!("invalid body: {error}")))
    }
}

/// Whether the body is declared as JSON, because browsers send other types across origins without
/// asking first.
fn is_json(headers: &HeaderMap) -> bool {
    let given = headers
        .get(CONTENT_TYPE)
        .and_then(|given| given.to_str().ok());
    let media = given.and_then(|given| given.split(';').next());
    media.is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}

pub(crate) struct RawBody(pub(crate) Bytes);

impl FromRequest<Arc<App>> for RawBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        bytes(request, app).await.map(RawBody)
    }
}

async fn bytes(request: Request, app: &Arc<App>) -> Result<Bytes, ApiError> {
    let reading = tokio::time::timeout(BODY_WITHIN, Bytes::from_request(request, app));
    let bytes = reading.await.map_err(|_| {
        ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive in time",
        )
    })?;
    bytes.map_err(|error| ApiError::new(error.status(), error.body_text()))
}

pub(crate) struct ApiQuery<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<App>> for ApiQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let query = Query::from_request_parts(parts, app).await;
        query
            .map(|Query(query)| ApiQuery(query))
            .map_err(|error| ApiError::bad_request(format!("invalid query: {}", error.body_text())))
    }
}

pub(crate) struct ApiPath<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<App>> for ApiPath<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let path = Path::from_request_parts(parts, app).await;
        path.map(|Path(path)| ApiPath(path))
            .map_err(|error| ApiError::bad_request(format!("invalid path: {}", error.body_text())))
    }
}

/// Maximum number of items that a query asks for: 1 to `MAX`, and `DEFAULT` if it says nothing.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "usize")]
pub(crate) struct ListLimit<const DEFAULT: usize, const MAX: usize>(pub(crate) usize);

impl<const DEFAULT: usize, const MAX: usize> Default for ListLimit<DEFAULT, MAX> {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl<const DEFAULT: usize, const MAX: usize> TryFrom<usize> for ListLimit<DEFAULT, MAX> {
    type Error = String;

    fn try_from(limit: usize) -> Result<Self, String> {
        let is_valid = (1..=MAX).contains(&limit);
        is_valid
            .then_some(Self(limit))
            .ok_or_else(|| format!("invalid `limit`: 1 to {MAX}"))
    }
}

impl<const DEFAULT: usize, const MAX: usize> JsonSchema for ListLimit<DEFAULT, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ListLimit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 1, "maximum": MAX, "default": DEFAULT})
    }
}

/// The run that the path parameter `{run}` names: `last`, its id, or the start or end of it.
pub(crate) struct RunInPath(pub(crate) RunId);

impl FromRequestParts<Arc<App>> for RunInPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let CommandRunPath { run, has_begun } =
            CommandRunPath::from_request_parts(parts, app).await?;
        has_begun.then_some(RunInPath(run)).ok_or_else(|| {
            ApiError::conflict("the run has not begun yet")
                .hint("follow it: GET /api/runs/RUN/events")
        })
    }
}

/// Like [`RunInPath`], and also the run that an open command is to start, by its complete id.
pub(crate) struct CommandRunPath {
    pub(crate) run: RunId,
    has_begun: bool,
}

impl FromRequestParts<Arc<App>> for CommandRunPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let ApiPath(given) =
            ApiPath::<std::collections::HashMap<String, String>>::from_request_parts(parts, app)
                .await?;
        let given = given.get("run").map(String::as_str).unwrap_or_default();
        // An id that is given whole is found without a look at all the others.
        if let Ok(run) = given.parse() {
            let has_begun = app.store.exists(&gyrus_kernel::log_name(run));
            if has_begun || app.gateway.with(|queue| queue.is_open(run)) {
                return Ok(Self { run, has_begun });
            }
        }
        Ok(Self {
            run: find_run(&app.store, given)?,
            has_begun: true,
        })
    }
}

pub(crate) struct ApiForm<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for ApiForm<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        let reading = tokio::time::timeout(BODY_WITHIN, Form::from_request(request, app));
        let form = reading.await.map_err(|_| {
            ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "the form did not arrive in time",
            )
        })?;
        form.map(|Form(form)| ApiForm(form))
            .map_err(|error| ApiError::new(error.status(), error.body_text()))
    }
}
