//! The exact prompt of one request to a model.

use std::sync::Arc;

use axum::{extract::State, response::Html};
use gyrus_contract::RunId;
use gyrus_journal::LogReader;
use gyrus_kernel::{log_name, prompt_of};
use gyrus_surfaces::page::{self, AskedModel, asked_model, step_address};
use gyrus_text::{counted, grouped};
use maud::{Markup, html};
use serde::Deserialize;

use super::head::{RunTab, part_of};
use crate::{
    api::runs::blocking,
    app::App,
    error::ApiError,
    extract::{ApiQuery, RunInPath},
};

/// The request to show; without one, the newest.
#[derive(Debug, Deserialize)]
pub(in super::super) struct RequestQuery {
    call: Option<u64>,
}

pub(in super::super) async fn show(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
    ApiQuery(asked): ApiQuery<RequestQuery>,
) -> Result<Html<String>, ApiError> {
    blocking(move || {
        let reader = app.store.reader(&log_name(run))?;
        let end = app.end_of(run, &reader)?;
        let body = match (asked_model(&reader, asked.call, end)?, asked.call) {
            (Some(found), _) => request(&reader, run, &found),
            (None, None) => html! { p.nothing { "No model was asked." } },
            (None, Some(seq)) => {
                let error = format!("entry {seq} is not a request to a model");
                return Err(ApiError::not_found(error));
            }
        };
        part_of(&app, run, RunTab::Context, &body)
    })
    .await
}

fn request(reader: &LogReader, run: RunId, found: &AskedModel) -> Markup {
    let call = &found.call;
    let link = |seq: Option<u64>, words: &str| {
        html! {
            @if let Some(seq) = seq { a href={ "/runs/" (run) "/context?call=" (seq) } { (words) } }
        }
    };
    html! {
        div.asked {
            p {
                "Entry " (found.seq) " of " a href=(step_address(run, found.seq)) { "step " (call.effect.cycle_number()) }
                " asks " b { (call.model) }
                @if call.attempt > 1 { ", attempt " (call.attempt) }
                @if !call.why.is_empty() { ", because " (call.why) }
                ". Reserved: " (counted(call.reserved.tokens, "token")) (call.reserved.cost.after(", ")) "."
            }
            p.beside { (link(found.before, "The request before")) (link(found.after, "The request after")) }
        }
        (dropped(found))
        @match prompt_of(reader, found.seq) {
            Ok(sent) => { (page::prompt(&sent, reader, run)) },
            Err(error) => { p.failed { "What was sent cannot be shown: " (error) } },
        }
    }
}

/// Tells how much of the memory the model did not see.
fn dropped(found: &AskedModel) -> Markup {
    let call = &found.call;
    let sent = counted(call.to.saturating_sub(call.from), "message");
    html! {
        p.dropped {
            (sent) " of memory and " (counted(call.tail.len(), "message")) " after it were sent. "
            @match call.from {
                0 => "Nothing was dropped.",
                1 => "The oldest message of memory was dropped.",
                dropped => { "The oldest " (grouped(dropped)) " messages of memory were dropped." },
            }
            @if let Some(window) = call.window { " The model reads at most " (counted(window, "token")) "." }
        }
    }
}
