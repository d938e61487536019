//! One step, under an address that stays.

use std::{collections::HashMap, sync::Arc};

use axum::{extract::State, response::Html};
use gyrus_kernel::log_name;
use gyrus_surfaces::page::{one_step, step_address};
use maud::{PreEscaped, html};

use super::head::{RunTab, part_of};
use crate::{
    api::runs::blocking,
    app::App,
    error::ApiError,
    extract::{ApiPath, RunInPath},
};

pub(in super::super) async fn show(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
    ApiPath(path): ApiPath<HashMap<String, String>>,
) -> Result<Html<String>, ApiError> {
    let given = path.get("seq").cloned().unwrap_or_default();
    let missing = format!("run {} has no step with the entry `{given}`", run.short());
    let seq = given.parse().map_err(|_| ApiError::not_found(&missing))?;
    blocking(move || {
        let reader = app.store.reader(&log_name(run))?;
        let end = app.end_of(run, &reader)?;
        let step = one_step(&reader, run, seq, end)?;
        let step = step.ok_or_else(|| ApiError::not_found(missing))?;
        let body = html! {
            article.one-step {
                header.step-head {
                    h2 { "Step " (step.number) }
                    p.gist-line { (step.gist) }
                    p.beside {
                        @if step.first > 1 {
                            a.previous href=(step_address(run, step.first - 1)) { "The step before" }
                        }
                        @if step.last < end {
                            a.next href=(step_address(run, step.last + 1)) { "The step after" }
                        }
                        a.fork href={ "/runs/" (run) "/fork?at=" (step.number) } { "Fork after it" }
                        a href=(step_address(run, step.first)) { "Permanent link" }
                    }
                }
                (PreEscaped(&step.html))
            }
        };
        part_of(&app, run, RunTab::Other("Step"), &body)
    })
    .await
}
