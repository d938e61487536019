//! Going another way from a step of a run.

use std::sync::Arc;

use axum::{Extension, Json, extract::State, http::StatusCode, routing::post};
use gyrus_contract::RunId;
use gyrus_kernel::{Ending, RunState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{commands, control::succeeded, runs::blocking};
use crate::{
    app::{App, CommandOutput, CommandPiece, CommandPieces},
    endpoint::{Endpoint, acts},
    error::ApiError,
    extract::{ApiJson, RunInPath},
    tokens::Requester,
};

/// The longest words that amend the goal, in bytes.
const MAX_TEXT: usize = 64 << 10;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        acts("/api/runs/{run}/fork", post(fork))
            .named("forkRun", "Go another way from a step of a run")
            .body::<Fork>()
            .json::<ForkedRun>(202, "The new run, which has begun."),
    ]
}

/// The place from which to go another way, and what is different there.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fork {
    /// The step after which it goes another way; 0 for the beginning.
    pub(crate) at: u32,
    /// A new folder for it, which gets the files as they were after that step.
    #[serde(default)]
    pub(crate) into: Option<String>,
    /// Work in the run's own folder, as it is now.
    #[serde(default)]
    pub(crate) in_place: bool,
    /// The model to go on with, as in `gyrus run`; without it, the one that the run had.
    #[serde(default)]
    pub(crate) model: Option<String>,
    /// Words that amend the goal, from the first safe point of the new run on.
    #[serde(default)]
    pub(crate) text: Option<String>,
}

/// A run that goes another way.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ForkedRun {
    /// Its id.
    run: String,
}

pub(crate) async fn fork(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    RunInPath(run): RunInPath,
    ApiJson(fork): ApiJson<Fork>,
) -> Result<(StatusCode, Json<ForkedRun>), ApiError> {
    let run = begin(app, identity, run, fork).await?.to_string();
    Ok((StatusCode::ACCEPTED, Json(ForkedRun { run })))
}

pub(crate) async fn begin(
    app: Arc<App>,
    identity: Requester,
    run: RunId,
    fork: Fork,
) -> Result<RunId, ApiError> {
    let text = fork.text.filter(|text| !text.trim().is_empty());
    if text.as_ref().is_some_and(|text| text.len() > MAX_TEXT) {
        let error = format!("the text is longer than {MAX_TEXT} bytes");
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, error));
    }
    let named = [&fork.into, &fork.model, &text].into_iter().flatten();
    if named.into_iter().any(|name| name.contains('\0')) {
        // No process takes such an argument.
        return Err(ApiError::bad_request(
            "invalid `into`, `model` or `text`: it has a NUL character",
        ));
    }
    let mut arguments = vec![
        "fork".to_owned(),
        run.to_string(),
        format!("--at={}", fork.at),
        "--json".to_owned(),
        // A person can answer here, whatever the run did where it was started.
        "--on-ask=park".to_owned(),
    ];
    if let Some(folder) = fork.into {
        arguments.push(format!("--workdir={folder}"));
    }
    if fork.in_place {
        arguments.push("--in-place".to_owned());
    }
    if let Some(model) = fork.model {
        arguments.push(format!("--model={model}"));
    }
    if let Some(text) = text {
        let from = serde_json::to_string(&identity.principal);
        let from = from.map_err(|error| ApiError::internal(error.to_string()))?;
        arguments.extend([format!("--steer={text}"), format!("--steer-as={from}")]);
    }
    let mut pieces = app.program.begin_command(arguments, Vec::new())?;
    let forked = begun(&mut pieces).await?;
    tokio::spawn(follow(app, identity, forked, pieces));
    Ok(forked)
}

/// Waits until the command prints the first entry of the new run.
async fn begun(pieces: &mut CommandPieces) -> Result<RunId, ApiError> {
    let mut output = CommandOutput::default();
    while let Some(piece) = pieces.recv().await {
        match piece {
            CommandPiece::Stdout(text) => output.stdout.push_str(&text),
            CommandPiece::Stderr(text) => output.stderr.push_str(&text),
            CommandPiece::Ended(code) => {
                output.code = code;
                break;
            }
        }
        if let Some((line, _)) = output.stdout.split_once('\n') {
            let entry: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
            let run = entry["run"].as_str().and_then(|run| run.parse().ok());
            return run.ok_or_else(|| ApiError::internal("the fork did not say its run"));
        }
    }
    succeeded(output)?;
    Err(ApiError::internal("the fork ended before it began"))
}

/// Reads the output of the command to its end, since the command would be interrupted otherwise. A
/// run that waits for a person then goes to the queue, which resumes it when the answer is there.
async fn follow(app: Arc<App>, identity: Requester, run: RunId, mut pieces: CommandPieces) {
    while pieces.recv().await.is_some() {}
    let store = app.store.clone();
    let state = blocking(move || Ok(RunState::of(&store, run)?)).await;
    if let Ok(RunState::Parked(Ending::Waiting { .. })) = state {
        // Whoever looks at the run sees that it is parked, and can resume it.
        let _ = commands::resume(State(app), Extension(identity), RunInPath(run)).await;
    }
}
