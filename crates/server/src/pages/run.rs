//! One run: its goal, what can be done to it, and its steps.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    response::{Html, Response},
};
use gyrus_contract::RunId;
use gyrus_kernel::{Entry, approvals, log_name};
use gyrus_surfaces::{
    page::{self, Rows, Stretch, visible_html},
    projection,
};
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;

use super::{
    forms::see,
    frame::{Frame, Place, age},
    runs::{figures, outcome, state},
    waiting,
};
use crate::{
    api::{
        commands, control,
        runs::{blocking, overview},
    },
    app::App,
    error::ApiError,
    extract::{ApiForm, ApiJson, ApiQuery, RunPath},
    heads::RunWord,
    overview::RunOverview,
    tokens::Identity,
};

/// The part of a run to show.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part {
    before: Option<u64>,
    after: Option<u64>,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    RunPath(run): RunPath,
    ApiQuery(part): ApiQuery<Part>,
) -> Result<Html<String>, ApiError> {
    blocking(move || {
        let overview = overview(&app, run)?;
        let stretch = part.before.map_or(Stretch::Newest, Stretch::Before);
        let rows = stretch_of(&app, run, stretch)?;
        let title = format!("Run {}", overview.name);
        let frame = Frame {
            title: &title,
            place: Place::Other,
        };
        let live = part.before.is_none();
        let main = html! {
            (head(&app, &overview)?)
            div #questions data-live { (questions(&app, run)) }
            @if rows.first > 1 {
                p.earlier { a href={ "/runs/" (run) "?before=" (rows.first) } { "Earlier steps" } }
            }
            section #rows aria-label="Steps" data-run=(run)
                data-after=[live.then_some(rows.after)] { (PreEscaped(&rows.html)) }
            @if !live && rows.more {
                p.earlier { a href={ "/runs/" (run) } { "The newest steps" } }
            }
            (steering(&overview))
        };
        Ok(frame.page(&app, &main))
    })
    .await
}

/// Returns what changed on the page of a run, as a fragment.
pub(super) async fn rows(
    State(app): State<Arc<App>>,
    RunPath(run): RunPath,
    ApiQuery(part): ApiQuery<Part>,
) -> Result<Html<String>, ApiError> {
    blocking(move || {
        let rows = stretch_of(&app, run, Stretch::After(part.after.unwrap_or(0)))?;
        let overview = overview(&app, run)?;
        let fragment = html! {
            (head(&app, &overview)?)
            div #questions data-live { (questions(&app, run)) }
            section #rows data-after=(rows.after) data-more[rows.more] { (PreEscaped(&rows.html)) }
            (steering(&overview))
        };
        Ok(Html(visible_html(&fragment).0))
    })
    .await
}

/// Nothing is shown that is not on disk.
fn stretch_of(app: &App, run: RunId, stretch: Stretch) -> Result<Rows, ApiError> {
    let reader = app.store.reader(&log_name(run))?;
    let end = reader.end()?;
    let end = app.heads.of(run).map_or(end, |head| head.seq.min(end));
    Ok(page::rows(&reader, run, stretch, end)?)
}

fn head(app: &App, run: &RunOverview) -> Result<Markup, ApiError> {
    let reader = app.store.reader(&log_name(run.run))?;
    let goal = match reader.entry(1)?.map(|first| gyrus_kernel::parse(&first)) {
        Some(Ok(Entry::RunStarted(started))) => projection::goal(&started.goal, &reader),
        _ => run.goal.clone(),
    };
    Ok(html! {
        section #head data-live {
            div.heading {
                h1 { "Run " span.name { (run.name) } }
                span.marks { (state(run)) (outcome(run)) }
                p.figures { (figures(run)) }
            }
            div.goal-text { p.label { "Goal" } div.prose tabindex="0" role="group" aria-label="Goal" { (goal) } }
            @if let Some(ending) = &run.ending { p.ending { (ending) } }
            dl.about {
                div { dt { "Folder" } dd { code { (run.workdir.display()) } } }
                div { dt { "Loop" } dd { (run.cognitive_loop) } }
                div { dt { "Agent" } dd { (run.agent) } }
                div { dt { "Model" } dd { (run.model) } }
                div { dt { "Began" } dd { (age(run.started_ms)) } }
                @if let Some(parent) = run.forked_from {
                    div { dt { "Forked from" } dd { a href={ "/runs/" (parent) } { (parent.short()) } } }
                }
                @if let Some(before) = run.continues {
                    div { dt { "Goes on from" } dd { a href={ "/runs/" (before) } { (before.short()) } } }
                }
            }
            (controls(run))
        }
    })
}

/// The forms that need no words.
fn controls(run: &RunOverview) -> Markup {
    let button = |what: &str, title: &str, class: &str, words: &str| {
        html! {
            form method="post" action={ "/runs/" (run.run) "/" (what) } {
                button class=(class) title=(title) { (words) }
            }
        }
    };
    html! {
        div.controls {
            @match run.state {
                RunWord::Running | RunWord::Waiting => {
                    (button("pause", "Finish the effect in progress, then park the run", "", "Pause"))
                    (button("stop", "Cut off the effect in progress, and park the run", "danger", "Stop"))
                },
                RunWord::Parked | RunWord::CutOff => {
                    (button("resume", "Go on from where it stands", "primary", "Resume"))
                },
                RunWord::Over => {},
            }
            a.live-link href={ "/runs/" (run.run) "/live" } { "Live" }
            a href={ "/api/runs/" (run.run) "/page" } { "Save as one file" }
        }
    }
}

pub(super) fn steering(run: &RunOverview) -> Markup {
    html! {
        section #steering {
            @if run.state != RunWord::Over {
                form.steer method="post" action={ "/runs/" (run.run) "/steer" } {
                    label { "Add to the goal"
                        textarea name="text" rows="2" required {} }
                    button { "Steer" }
                    p.aside { "It counts from the next safe point on, for the rest of the run." }
                }
            }
        }
    }
}

pub(super) fn questions(app: &App, run: RunId) -> Markup {
    let open = approvals::open(&app.store, run).unwrap_or_default();
    html! { @for question in &open { (waiting::card(app, question, run, &format!("/runs/{run}"))) } }
}

/// Words for a run, as typed.
#[derive(Debug, Deserialize)]
pub(super) struct SteerForm {
    text: String,
}

pub(super) async fn steer(
    app: State<Arc<App>>,
    identity: Extension<Identity>,
    RunPath(run): RunPath,
    ApiForm(form): ApiForm<SteerForm>,
) -> Result<Response, ApiError> {
    let text = form.text.replace("\r\n", "\n");
    control::steer(
        app,
        identity,
        RunPath(run),
        ApiJson(control::Steer { text }),
    )
    .await?;
    Ok(back_to(run))
}

pub(super) async fn pause(
    app: State<Arc<App>>,
    identity: Extension<Identity>,
    RunPath(run): RunPath,
) -> Result<Response, ApiError> {
    control::pause(app, identity, RunPath(run)).await?;
    Ok(back_to(run))
}

pub(super) async fn stop(
    app: State<Arc<App>>,
    identity: Extension<Identity>,
    RunPath(run): RunPath,
) -> Result<Response, ApiError> {
    control::stop(app, identity, RunPath(run)).await?;
    Ok(back_to(run))
}

pub(super) async fn resume(
    app: State<Arc<App>>,
    identity: Extension<Identity>,
    RunPath(run): RunPath,
) -> Result<Response, ApiError> {
    let _ = commands::resume(app, identity, RunPath(run)).await?;
    Ok(back_to(run))
}

fn back_to(run: RunId) -> Response {
    see(&format!("/runs/{run}"))
}
