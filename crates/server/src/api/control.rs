//! Steering runs, and going other ways from them.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::{delete, get, post},
};
use gyrus_contract::{MessageBody, RunId};
use gyrus_kernel::approvals;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::runs::blocking;
use crate::{
    app::{App, CommandOutput},
    endpoint::{BodyForm, Endpoint, acts, decides, reads},
    error::ApiError,
    extract::{ApiJson, RunInPath},
    tokens::Requester,
};

/// The longest text of a person in bytes.
const MAX_TEXT: usize = 64 << 10;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let message = "It is in the run's inbox.";
    vec![
        acts("/api/runs/{run}/steer", post(steer))
            .named("steerRun", "Add to the goal of a run, for good")
            .body::<Steer>()
            .answer(202, message, BodyForm::Empty),
        acts("/api/runs/{run}/pause", post(pause))
            .named(
                "pauseRun",
                "Finish the effect in progress, then park the run",
            )
            .answer(202, message, BodyForm::Empty),
        acts("/api/runs/{run}/stop", post(stop))
            .named(
                "stopRun",
                "Cut off the effect in progress, and park the run",
            )
            .answer(202, message, BodyForm::Empty),
        acts("/api/runs/{run}/replay", post(replay))
            .named(
                "replayRun",
                "Run it again from its journal, with nothing live behind it",
            )
            .json::<Done>(200, "Whether it took the same way."),
        acts("/api/runs/{run}/undo", post(undo))
            .named(
                "undoRun",
                "Put files back as they were before a run, or after a step",
            )
            .body::<Undo>()
            .json::<Done>(200, "The files that were put back, or would be."),
        reads("/api/runs/{run}/diff", get(diff))
            .named("diffRun", "Return a run's changes as a patch")
            .answer(200, "A unified diff.", BodyForm::Other("text/x-diff")),
        acts("/api/stop", post(stop_all))
            .named(
                "stopAll",
                "Emergency stop: end every run at once, and let none begin",
            )
            .body::<StopAll>()
            .json::<Done>(200, "The runs that were ended."),
        decides("/api/stop", delete(rearm))
            .deleting()
            .named("rearm", "Lift the emergency stop")
            .json::<Done>(200, "It is lifted."),
    ]
}

/// The result of a command.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Done {
    /// The words that the command said.
    pub(crate) said: String,
}

/// Words for a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Steer {
    /// The words. They amend the goal for good.
    #[schemars(length(min = 1))]
    pub(crate) text: String,
}

pub(crate) async fn steer(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    RunInPath(run): RunInPath,
    ApiJson(Steer { text }): ApiJson<Steer>,
) -> Result<StatusCode, ApiError> {
    if text.trim().is_empty() {
        return Err(ApiError::bad_request("there is nothing to add").hint("say what is to change"));
    }
    if text.len() > MAX_TEXT {
        let error = format!("the text is longer than {MAX_TEXT} bytes");
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, error));
    }
    send(app, identity, run, MessageBody::steer(text)).await
}

pub(crate) async fn pause(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    RunInPath(run): RunInPath,
) -> Result<StatusCode, ApiError> {
    send(app, identity, run, MessageBody::Pause).await
}

pub(crate) async fn stop(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    RunInPath(run): RunInPath,
) -> Result<StatusCode, ApiError> {
    send(app, identity, run, MessageBody::Stop).await
}

/// Adds a message to the inbox of a run that can still read it.
async fn send(
    app: Arc<App>,
    identity: Requester,
    run: RunId,
    body: MessageBody,
) -> Result<StatusCode, ApiError> {
    blocking(move || {
        approvals::send(&app.store, run, identity.principal, body)?;
        Ok(StatusCode::ACCEPTED)
    })
    .await
}

pub(crate) async fn replay(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
) -> Result<Json<Done>, ApiError> {
    let output = app
        .command(vec!["replay".to_owned(), run.to_string()])
        .await?;
    if output.code != Some(0) && !output.stdout.is_empty() {
        // Both sides of each difference stand where the result would.
        let error = format!("it took another way: {}", output.stdout.trim());
        return Err(ApiError::conflict(error));
    }
    let said = succeeded(output)?.stdout.trim().to_owned();
    Ok(Json(Done { said }))
}

/// The files to put back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Undo {
    /// The step after which the files are to be as they were; 0 for before the run.
    #[serde(default)]
    pub(crate) to: u32,
    /// Say what would be put back, and put nothing back.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

pub(crate) async fn undo(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
    ApiJson(undo): ApiJson<Undo>,
) -> Result<Json<Done>, ApiError> {
    let to = format!("--to={}", undo.to);
    let mut arguments = ["undo", &run.to_string(), &to].map(str::to_owned).to_vec();
    if !undo.dry_run {
        // Without it, and with nobody to ask, the command says what it would do.
        arguments.push("--yes".to_owned());
    }
    carried_out(&app, arguments).await
}

pub(crate) async fn diff(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
) -> Result<Response, ApiError> {
    let arguments = vec!["diff".to_owned(), run.to_string()];
    let output = app.command(arguments).await?;
    let patch = succeeded(output)?.stdout;
    Ok(([(CONTENT_TYPE, "text/x-diff; charset=utf-8")], patch).into_response())
}

/// An emergency stop.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopAll {
    /// The reason, for people who find everything stopped.
    #[serde(default)]
    pub(crate) reason: Option<String>,
}

pub(crate) async fn stop_all(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    ApiJson(given): ApiJson<StopAll>,
) -> Result<Json<Done>, ApiError> {
    let who = &identity.principal;
    let reason = match given.reason {
        Some(reason) => format!("{reason}; asked by {who}"),
        None => format!("asked by {who}"),
    };
    let arguments = ["stop", "--all", &format!("--reason={reason}")].map(str::to_owned);
    carried_out(&app, arguments.to_vec()).await
}

pub(crate) async fn rearm(State(app): State<Arc<App>>) -> Result<Json<Done>, ApiError> {
    carried_out(&app, vec!["rearm".to_owned(), "--yes".to_owned()]).await
}

async fn carried_out(app: &App, arguments: Vec<String>) -> Result<Json<Done>, ApiError> {
    let output = succeeded(app.command(arguments).await?)?;
    let said = output.stdout + &output.stderr;
    Ok(Json(Done {
        said: said.trim().to_owned(),
    }))
}

/// Returns the output of a command that succeeded; the messages of a failed one become the error.
pub(crate) fn succeeded(output: CommandOutput) -> Result<CommandOutput, ApiError> {
    if output.code == Some(0) {
        return Ok(output);
    }
    let said = output.stderr.trim().to_owned();
    let said = said.strip_prefix("error: ").unwrap_or(&said).to_owned();
    let (error, hint) = match said.split_once("\n  hint: ") {
        Some((error, hint)) => (error.to_owned(), Some(hint.trim().to_owned())),
        None => (said, None),
    };
    let mut answer = ApiError::conflict(error);
    answer.body.hint = hint;
    Err(answer)
}
