//! The forms of a run's page.

use std::sync::Arc;

use axum::{Extension, extract::State, response::Response};
use gyrus_contract::RunId;
use serde::Deserialize;

use super::super::forms::see;
use crate::{
    api::{commands, control},
    app::App,
    error::ApiError,
    extract::{ApiForm, ApiJson, RunInPath},
    tokens::Requester,
};

/// Words for a run, as typed.
#[derive(Debug, Deserialize)]
pub(in super::super) struct SteerForm {
    text: String,
}

pub(in super::super) async fn steer(
    app: State<Arc<App>>,
    identity: Extension<Requester>,
    RunInPath(run): RunInPath,
    ApiForm(form): ApiForm<SteerForm>,
) -> Result<Response, ApiError> {
    let text = form.text.replace("\r\n", "\n");
    control::steer(
        app,
        identity,
        RunInPath(run),
        ApiJson(control::Steer { text }),
    )
    .await?;
    Ok(back_to(run))
}

pub(in super::super) async fn pause(
    app: State<Arc<App>>,
    identity: Extension<Requester>,
    RunInPath(run): RunInPath,
) -> Result<Response, ApiError> {
    control::pause(app, identity, RunInPath(run)).await?;
    Ok(back_to(run))
}

pub(in super::super) async fn stop(
    app: State<Arc<App>>,
    identity: Extension<Requester>,
    RunInPath(run): RunInPath,
) -> Result<Response, ApiError> {
    control::stop(app, identity, RunInPath(run)).await?;
    Ok(back_to(run))
}

pub(in super::super) async fn resume(
    app: State<Arc<App>>,
    identity: Extension<Requester>,
    RunInPath(run): RunInPath,
) -> Result<Response, ApiError> {
    let _ = commands::resume(app, identity, RunInPath(run)).await?;
    Ok(back_to(run))
}

fn back_to(run: RunId) -> Response {
    see(&format!("/runs/{run}"))
}
