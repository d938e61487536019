//! The pages about a run as a whole: its outcome, its cost, its relatives.

use std::sync::Arc;

use axum::{extract::State, response::Html};
use gyrus_contract::RunId;
use gyrus_surfaces::page::WholeRun;
use maud::Markup;

use super::head::{RunTab, part_of};
use crate::{api::runs::blocking, app::App, error::ApiError, extract::RunInPath};

pub(in super::super) async fn outcome(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
) -> Result<Html<String>, ApiError> {
    whole(app, run, RunTab::Outcome, WholeRun::outcome).await
}

pub(in super::super) async fn cost(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
) -> Result<Html<String>, ApiError> {
    whole(app, run, RunTab::Cost, WholeRun::cost).await
}

pub(in super::super) async fn children(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
) -> Result<Html<String>, ApiError> {
    whole(app, run, RunTab::Children, WholeRun::relatives).await
}

async fn whole(
    app: Arc<App>,
    run: RunId,
    tab: RunTab,
    draw: fn(&WholeRun) -> Markup,
) -> Result<Html<String>, ApiError> {
    blocking(move || {
        let read = WholeRun::read(&app.store, run)?;
        part_of(&app, run, tab, &draw(&read))
    })
    .await
}
