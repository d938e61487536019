//! The steps of a run at several zooms, as they reach the disk.

use std::sync::Arc;

use axum::{extract::State, response::Html};
use gyrus_contract::RunId;
use gyrus_kernel::log_name;
use gyrus_surfaces::page::{self, RunRows, Stretch, Zoom, visible_html};
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;

use super::{
    super::frame::NavigationPlace,
    head::{RunTab, head, tabs},
    widget::{questions, widget},
};
use crate::{
    api::runs::{blocking, overview},
    app::App,
    error::ApiError,
    extract::{ApiQuery, RunInPath},
    heads::RunWord,
    overview::RunOverview,
};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ZoomName {
    Cycles,
    #[default]
    Effects,
    Entries,
    Reading,
}

impl ZoomName {
    fn meaning(self) -> (Zoom, &'static str, RunTab) {
        match self {
            ZoomName::Cycles => (Zoom::Cycles, "cycles", RunTab::Steps),
            ZoomName::Effects => (Zoom::Effects, "effects", RunTab::Steps),
            ZoomName::Entries => (Zoom::Entries, "entries", RunTab::Raw),
            ZoomName::Reading => (Zoom::Reading, "reading", RunTab::Reading),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct StepsPart {
    before: Option<u64>,
    after: Option<u64>,
    zoom: ZoomName,
}

pub(in super::super) async fn show(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
    ApiQuery(part): ApiQuery<StepsPart>,
) -> Result<Html<String>, ApiError> {
    blocking(move || {
        let overview = overview(&app, run)?;
        let stretch = part.before.map_or(Stretch::Newest, Stretch::Before);
        let (zoom, name, tab) = part.zoom.meaning();
        let rows = stretch_of(&app, run, stretch, zoom)?;
        let title = format!("Run {}", overview.name);
        let live = part.before.is_none();
        let address = format!("/runs/{run}?zoom={name}");
        let main = html! {
            (head(&app, &overview)?)
            (widget(&app, run)?)
            (tabs(run, tab))
            (zooms(run, part.zoom))
            (film(&rows))
            @if rows.first > 1 {
                p.earlier { a href={ (address) "&before=" (rows.first) } { "Earlier steps" } }
            }
            section #rows aria-label="Steps" data-run=(run) data-zoom=(name)
                data-after=[live.then_some(rows.after)] { (PreEscaped(&rows.html)) }
            @if !live && rows.more { p.earlier { a href=(address) { "The newest steps" } } }
            (steering(&overview))
        };
        Ok(NavigationPlace::Other.page(&app, &title, &main))
    })
    .await
}

pub(in super::super) async fn rows(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
    ApiQuery(part): ApiQuery<StepsPart>,
) -> Result<Html<String>, ApiError> {
    blocking(move || {
        let stretch = Stretch::After(part.after.unwrap_or(0));
        let rows = stretch_of(&app, run, stretch, part.zoom.meaning().0)?;
        let overview = overview(&app, run)?;
        let fragment = html! {
            (head(&app, &overview)?)
            div #questions data-live { (questions(&app, run, &format!("/runs/{run}"))) }
            (film(&rows))
            section #rows data-after=(rows.after) data-more[rows.more] { (PreEscaped(&rows.html)) }
            (steering(&overview))
        };
        Ok(Html(visible_html(&fragment).0))
    })
    .await
}

/// Reads a stretch of a run, without entries that are not on disk yet.
fn stretch_of(app: &App, run: RunId, stretch: Stretch, zoom: Zoom) -> Result<RunRows, ApiError> {
    let reader = app.store.reader(&log_name(run))?;
    let end = app.end_of(run, &reader)?;
    Ok(page::rows(&reader, run, stretch, zoom, end)?)
}

fn zooms(run: RunId, current: ZoomName) -> Markup {
    let all = [
        (ZoomName::Cycles, "Cycles"),
        (ZoomName::Effects, "Effects"),
        (ZoomName::Entries, "Entries"),
    ];
    html! {
        @if current != ZoomName::Reading {
            nav.zooms aria-label="Zoom" {
                @for (zoom, words) in all {
                    a href={ "/runs/" (run) "?zoom=" (zoom.meaning().1) }
                        aria-current=[(zoom == current).then_some("true")] { (words) }
                }
            }
        }
    }
}

/// The strip stays empty, and unseen, until there is a picture.
fn film(rows: &RunRows) -> Markup {
    html! {
        ol #film aria-label="Pictures" tabindex=[(!rows.film.is_empty()).then_some("0")] {
            (PreEscaped(&rows.film))
        }
    }
}

pub(in crate::pages) fn steering(run: &RunOverview) -> Markup {
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
