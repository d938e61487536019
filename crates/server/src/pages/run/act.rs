//! The form that steers a run.

use std::sync::Arc;

use axum::{Extension, extract::State, response::Response};
use serde::Deserialize;

use super::super::forms::see;
use crate::{
    api::control,
    app::App,
    error::ApiError,
    extract::{ApiForm, ApiJson, RunInPath},
    tokens::Requester,
};

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
    Ok(see(&format!("/runs/{run}")))
}
