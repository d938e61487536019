//! Reading requests, with errors in the form of the API.

use std::{sync::Arc, time::Duration};

use axum::{
    Form,
    body::Bytes,
    extract::{FromRequest, FromRequestParts, Path, Query, Request},
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE, request::Parts},
};
use gyrus_contract::RunId;
use gyrus_kernel::find_run;
use serde::de::DeserializeOwned;

use crate::{app::App, error::ApiError};

/// Time within which a body must have arrived.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// A JSON body.
pub(crate) struct ApiJson<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for ApiJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        if !is_json(request.headers()) {
            let error = "the body is not declared as JSON";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, error)
                .hint("send `Content-Type: application/json`"));
        }
        let reading = tokio::time::timeout(BODY_WITHIN, Bytes::from_request(request, app));
        let bytes = reading.await.map_err(|_| {
            ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "the body did not arrive in time",
            )
        })?;
        let bytes = bytes.map_err(|error| ApiError::new(error.status(), error.body_text()))?;
        let value = serde_json::from_slice(&bytes);
        value
            .map(ApiJson)
            .map_err(|error| ApiError::bad_request(format!("invalid body: {error}")))
    }
}

/// A browser sends other types across origins without asking first.
fn is_json(headers: &HeaderMap) -> bool {
    let given = headers
        .get(CONTENT_TYPE)
        .and_then(|given| given.to_str().ok());
    let media = given.and_then(|given| given.split(';').next());
    media.is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}

/// Parameters in the query.
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

/// Parameters in the path.
pub(crate) struct ApiPath<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<App>> for ApiPath<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let path = Path::from_request_parts(parts, app).await;
        path.map(|Path(path)| ApiPath(path))
            .map_err(|error| ApiError::bad_request(format!("invalid path: {}", error.body_text())))
    }
}

/// The run that the path names by `{run}`: `last`, its id, or the start or end of it.
pub(crate) struct RunPath(pub(crate) RunId);

impl FromRequestParts<Arc<App>> for RunPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let ApiPath(given) =
            ApiPath::<std::collections::HashMap<String, String>>::from_request_parts(parts, app)
                .await?;
        let given = given.get("run").map(String::as_str).unwrap_or_default();
        // An id that is given whole is found without a look at all the others.
        if let Ok(run) = given.parse()
            && app.store.exists(&gyrus_kernel::log_name(run))
        {
            return Ok(RunPath(run));
        }
        Ok(RunPath(find_run(&app.store, given)?))
    }
}

/// The fields of a form of a page.
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
