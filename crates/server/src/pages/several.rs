//! Acting on several runs at once, with what came of each.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    response::{Html, IntoResponse as _},
};
use gyrus_contract::RunId;
use gyrus_text::counted;
use maud::{Markup, html};
use serde::Deserialize;

use super::frame::NavigationPlace;
use crate::{
    api::{commands, control},
    app::App,
    error::{ApiError, ErrorBody},
    extract::{ApiForm, RunInPath},
    heads::RunWord,
    overview::RunOverview,
    tokens::Requester,
};

/// Maximum number of runs of one form.
const MOST: usize = 500;

/// Renders the forms that act on exactly the runs shown, whatever begins meanwhile.
pub(super) fn forms(shown: &[Arc<RunOverview>]) -> Markup {
    let of = |states: &[RunWord]| -> Vec<RunId> {
        let fitting = shown.iter().filter(|run| states.contains(&run.state));
        fitting.map(|run| run.run).collect()
    };
    let (at_work, parked) = (
        of(&[RunWord::Running, RunWord::Waiting]),
        of(&[RunWord::Parked, RunWord::CutOff]),
    );
    html! {
        @if at_work.len() + parked.len() > 1 {
            div.several role="group" aria-label="All runs that are shown" {
                (form("pause", "Pause", "", &at_work))
                (form("resume", "Resume", "", &parked))
                (form("stop", "Stop", "danger", &at_work))
            }
        }
    }
}

fn form(action: &str, word: &str, class: &str, runs: &[RunId]) -> Markup {
    let ids: Vec<String> = runs.iter().map(ToString::to_string).collect();
    html! {
        @if !runs.is_empty() {
            form method="post" action="/runs/several" {
                input type="hidden" name="action" value=(action);
                input type="hidden" name="runs" value=(ids.join(" "));
                button class=(class) { (word) " " (runs.len()) " shown" }
            }
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Several {
    action: BulkAction,
    runs: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BulkAction {
    Pause,
    Resume,
    Stop,
}

pub(super) async fn act(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    ApiForm(several): ApiForm<Several>,
) -> Result<Html<String>, ApiError> {
    let runs: Result<Vec<RunId>, _> = several.runs.split_whitespace().map(str::parse).collect();
    let runs = runs.map_err(|_| ApiError::bad_request("invalid `runs`: one is not an id"))?;
    if runs.is_empty() || runs.len() > MOST {
        return Err(ApiError::bad_request(format!(
            "invalid `runs`: 1 to {MOST} ids"
        )));
    }
    let mut results = Vec::new();
    for run in runs {
        let done = act_on(&app, &identity, several.action, run).await;
        results.push((run, done.map_err(|error| error.body)));
    }
    Ok(NavigationPlace::Runs.page(&app, "Several runs", &told(several.action, &results)))
}

async fn act_on(
    app: &Arc<App>,
    identity: &Requester,
    action: BulkAction,
    run: RunId,
) -> Result<(), ApiError> {
    if !app.store.exists(&gyrus_kernel::log_name(run)) {
        return Err(ApiError::not_found("there is no such run"));
    }
    let (state, identity) = (State(Arc::clone(app)), Extension(identity.clone()));
    match action {
        BulkAction::Pause => control::pause(state, identity, RunInPath(run))
            .await
            .map(drop),
        BulkAction::Stop => control::stop(state, identity, RunInPath(run))
            .await
            .map(drop),
        BulkAction::Resume => {
            let accepted = commands::resume(state, identity, RunInPath(run)).await?;
            drop(accepted.into_response());
            Ok(())
        }
    }
}

fn told(action: BulkAction, results: &[(RunId, Result<(), ErrorBody>)]) -> Markup {
    let word = match action {
        BulkAction::Pause => "asked to pause",
        BulkAction::Resume => "queued to go on",
        BulkAction::Stop => "asked to stop",
    };
    let done = results.iter().filter(|(_, done)| done.is_ok()).count();
    html! {
        div.heading { h1 { "Several runs" } p.aside { (counted(done, "run")) " of " (results.len()) " " (word) } }
        table.grid.tree {
            thead { tr { th scope="col" { "Run" } th scope="col" { "Result" } } }
            tbody { @for (run, done) in results { tr {
                td { a href={ "/runs/" (run) } { (run.short()) } }
                @match done {
                    Ok(()) => td { (word) },
                    Err(error) => td.bad { (error.error) },
                }
            } } }
        }
        p.pages { a href="/" { "All runs" } }
    }
}
