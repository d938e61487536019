//! Replay as a proof: the run again, from its journal alone.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{Html, IntoResponse, Response},
};
use gyrus_surfaces::page::whole_text;
use maud::html;

use super::head::{RunTab, part_of};
use crate::{
    api::{control, runs::blocking},
    app::App,
    error::ApiError,
    extract::RunInPath,
};

pub(in super::super) async fn replay(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
) -> Result<Response, ApiError> {
    let replayed = control::replay(State(Arc::clone(&app)), RunInPath(run)).await;
    let (status, body) = match replayed {
        Ok(Json(done)) => {
            let body = html! {
                h2 { "Identical" }
                p { "Run again from its journal alone, every step came to the same end. No model was "
                    "asked, no tool called, nothing written." }
                (whole_text(&done.said))
            };
            (StatusCode::OK, body)
        }
        Err(error) => {
            let body = html! {
                h2 { "Not identical" }
                div.untrusted tabindex="0" role="group" aria-label="The difference" {
                    (whole_text(&error.body.error))
                }
                @if let Some(hint) = &error.body.hint { p { (hint) } }
            };
            (error.status, body)
        }
    };
    let body = html! { div.replayed role="status" { (body) } };
    let page: Html<String> =
        blocking(move || part_of(&app, run, RunTab::Other("Replay"), &body)).await?;
    Ok((status, page).into_response())
}
