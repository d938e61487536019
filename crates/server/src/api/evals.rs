//! Reports of evaluations, as `gyrus eval --report` wrote them.

use std::{io, path::PathBuf, sync::Arc};

use axum::{Json, extract::State, routing::get};
use gyrus_process::read_regular_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::runs::blocking;
use crate::{
    app::App,
    endpoint::{Endpoint, reads},
    error::ApiError,
    extract::ApiPath,
};

/// Maximum number of listed reports: the newest.
const LISTED: usize = 100;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        reads("/api/evals", get(list))
            .named("listEvals", "List the newest reports of evaluations")
            .json::<Vec<EvalView>>(200, "The reports, newest first."),
        reads("/api/evals/{eval}", get(show))
            .named("showEval", "Return the whole report of an evaluation")
            .json::<Value>(200, "The report, as in its `report.json`."),
    ]
}

/// A report in a few words.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EvalView {
    /// Its id.
    id: String,
    #[serde(flatten)]
    report: EvalReport,
}

/// The head of a report.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct EvalReport {
    /// The version of gyrus that made it.
    gyrus: String,
    /// The names of the suites.
    suites: Vec<String>,
    /// The names of the models, separated by commas.
    model: String,
    /// The least strength that passed: `claimed`, `checked` or `verified`.
    required: String,
    /// The time of its beginning, in UTC.
    began: String,
    /// Number of attempts that were to be made.
    planned: u64,
    /// Whether it was ended before all were made.
    interrupted: bool,
    /// Figures over all attempts.
    totals: EvalTotals,
}

/// Figures over the attempts of an evaluation.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct EvalTotals {
    /// Number of attempts that came to an end.
    attempts: u64,
    /// Number of attempts that passed.
    passed: u64,
    /// Part of the attempts that passed.
    rate: f64,
    /// Cost in millionths of a US dollar.
    cost: u64,
}

fn folder(app: &App) -> PathBuf {
    app.options.state.join("evals")
}

async fn list(State(app): State<Arc<App>>) -> Result<Json<Vec<EvalView>>, ApiError> {
    blocking(move || {
        let folder = folder(&app);
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Json(Vec::new())),
            entries => entries.map_err(|error| ApiError::internal(error.to_string()))?,
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let ids = names.filter_map(|name| Some(name.strip_suffix(".json")?.to_owned()));
        let mut ids: Vec<String> = ids.filter(|id| is_id(id)).collect();
        ids.sort_by(|one, other| other.cmp(one));
        ids.truncate(LISTED);
        let views = ids.into_iter().filter_map(|id| {
            // One of another form, or one that was removed since, is left out.
            let text = read_regular_text(&folder.join(format!("{id}.json"))).ok()?;
            let report = serde_json::from_str(&text).ok()?;
            Some(EvalView { id, report })
        });
        Ok(Json(views.collect()))
    })
    .await
}

async fn show(
    State(app): State<Arc<App>>,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<Value>, ApiError> {
    blocking(move || {
        let missing = || ApiError::not_found("there is no such report").hint("list: /api/evals");
        if !is_id(&id) {
            return Err(missing());
        }
        let path = folder(&app).join(format!("{id}.json"));
        let text = read_regular_text(&path).map_err(|_| missing())?;
        let report = serde_json::from_str(&text);
        report
            .map(Json)
            .map_err(|_| ApiError::internal("the report is not JSON"))
    })
    .await
}

/// Whether a text has the form of an id, which names a file.
fn is_id(text: &str) -> bool {
    text.len() == 36
        && text
            .chars()
            .all(|char| char.is_ascii_hexdigit() || char == '-')
}
