//! The changes of a run in its folder, file by file, and taking them back.

use std::sync::Arc;

use axum::{Json, extract::State, response::Html};
use gyrus_contract::{Digest, RunId};
use gyrus_kernel::undo::{self, EntryKind, RunUndo, UndoAction, UndoChange};
use gyrus_surfaces::page::{whole_patch, whole_text};
use gyrus_text::counted;
use maud::{Markup, html};
use serde::Deserialize;

use super::head::{RunTab, part_of};
use crate::{
    api::{control, runs::blocking},
    app::App,
    error::ApiError,
    extract::{ApiForm, ApiJson, ApiQuery, RunInPath},
};

/// Maximum size of the patch of one file on the page, in bytes.
const FILE_PATCH: usize = 40 << 10;

/// Maximum number of files on a page, before the number of those with a patch.
const FILES: usize = 500;
const PATCHES: usize = 60;

#[derive(Debug, Deserialize)]
pub(in super::super) struct To {
    #[serde(default)]
    to: u32,
}

pub(in super::super) async fn show(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
) -> Result<Html<String>, ApiError> {
    blocking(move || {
        let body = match planned(&app, run, 0) {
            Ok(found) => html! {
                @if !found.changes().is_empty() {
                    p.beside {
                        a.button href={ "/runs/" (run) "/undo" } { "Undo…" }
                        a href={ "/api/runs/" (run) "/diff" } { "As a patch" }
                    }
                    p.aside {
                        "These files are as the run and its commands left them. What somebody else "
                        "changed in them while it went on counts as the run's."
                    }
                }
                (files(&app, &found, done)?)
            },
            Err(why) => unknown(&why),
        };
        part_of(&app, run, RunTab::Changes, &body)
    })
    .await
}

pub(in super::super) async fn before_undo(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
    ApiQuery(To { to }): ApiQuery<To>,
) -> Result<Html<String>, ApiError> {
    blocking(move || {
        let body = html! {
            div.undo {
                h2 { "Take back what the run changed" }
                form.moment method="get" action={ "/runs/" (run) "/undo" } {
                    label { "Back to the end of step (0 is before the run)"
                        input type="number" name="to" min="0" value=(to) required; }
                    button { "Show" }
                }
                @match planned(&app, run, to) {
                    Ok(found) => { (preview(&app, &found)?) },
                    Err(why) => { (unknown(&why)) },
                }
            }
        };
        part_of(&app, run, RunTab::Other("Undo"), &body)
    })
    .await
}

/// The moment to go back to, with what the person has seen.
#[derive(Debug, Deserialize)]
pub(in super::super) struct UndoForm {
    to: u32,
    seen: String,
}

pub(in super::super) async fn undo(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
    ApiForm(form): ApiForm<UndoForm>,
) -> Result<Html<String>, ApiError> {
    let planning = Arc::clone(&app);
    let to = form.to;
    let found = blocking(move || planned(&planning, run, to).map_err(ApiError::conflict)).await?;
    if seen(&found) != form.seen {
        let error = "what would be taken back is not what the page showed any more";
        return Err(ApiError::conflict(error).hint("go back, look at the page again, and decide"));
    }
    let undo = control::Undo { to, dry_run: false };
    let done = control::undo(State(Arc::clone(&app)), RunInPath(run), ApiJson(undo)).await;
    let Json(done) = done?;
    blocking(move || {
        let body = html! {
            div.undo role="status" { h2 { "Taken back" } (whole_text(&done.said)) }
        };
        part_of(&app, run, RunTab::Other("Undo"), &body)
    })
    .await
}

/// Plans the undo, or says in a sentence why there is none.
pub(in super::super) fn planned(app: &App, run: RunId, to: u32) -> Result<RunUndo, String> {
    undo::plan(&app.store, run, to).map_err(|error| error.to_string())
}

fn unknown(why: &str) -> Markup {
    html! { p.failed { "It is not known what the run changed: " (why) } }
}

/// Returns a digest of exactly the changes that a page shows.
fn seen(found: &RunUndo) -> String {
    let refused: Vec<&str> = found.plan.refused.iter().map(|one| &*one.path).collect();
    Digest::of_json(&(found.changes(), refused)).to_string()
}

fn preview(app: &App, found: &RunUndo) -> Result<Markup, ApiError> {
    let refused = &found.plan.refused;
    Ok(html! {
        p { "In " code { (found.plan.workspace.display()) } ":" }
        (files(app, found, will_be)?)
        @if found.plan.already > 0 {
            p.aside { (counted(found.plan.already, "path")) " already as before." }
        }
        @if !refused.is_empty() {
            h3 { "Left alone" }
            ul.refused { @for one in refused.iter().take(FILES) { li { code { (one.path) } ": " (one.why) } } }
        }
        @if let Some(step) = found.unfinished {
            p.aside { "The run was cut off in step " (step) "; what it changed there cannot be told from what others changed." }
        }
        @if !found.changes().is_empty() {
            form method="post" action={ "/runs/" (found.run) "/undo" } {
                input type="hidden" name="to" value=(found.to);
                input type="hidden" name="seen" value=(seen(found));
                button.danger { "Take back " (counted(found.changes().len(), "change")) }
                p.aside {
                    "Above, lines with + are the run's and go; lines with − come back. What goes or is "
                    "overwritten is kept in the trash of gyrus's state."
                    @if !found.is_over { " The run is not over and does not know it: steer it afterwards." }
                }
            }
        }
    })
}

pub(in super::super) fn done(change: &UndoChange) -> &'static str {
    match change.action {
        UndoAction::Delete => "created",
        UndoAction::Restore => "changed",
        UndoAction::Create => "removed",
        UndoAction::Mode => "mode changed",
    }
}

fn will_be(change: &UndoChange) -> &'static str {
    match change.action {
        UndoAction::Delete => "is deleted",
        UndoAction::Restore => "is restored",
        UndoAction::Create => "is created again",
        UndoAction::Mode => "gets its mode back",
    }
}

fn files(
    app: &App,
    found: &RunUndo,
    words: fn(&UndoChange) -> &'static str,
) -> Result<Markup, ApiError> {
    let changes = found.changes();
    let (patch, _) = found
        .patch(&app.store)
        .map_err(|error| ApiError::internal(error.to_string()))?;
    let patches = by_file(&patch);
    Ok(html! {
        @if changes.is_empty() {
            p.nothing { "No change of this run is in place: it changed nothing, or its files were changed since." }
        } @else { ul.files-changed {
            @for (number, change) in changes.iter().take(FILES).enumerate() {
                @let of_file = patches.iter().find(|(path, _)| *path == change.path);
                li { (file(change, words(change), of_file.filter(|_| number < PATCHES).map(|(_, patch)| *patch))) }
            }
        } }
        @if changes.len() > FILES {
            p.aside { "and " (counted(changes.len() - FILES, "more path")) "; all of them are in the patch" }
        }
    })
}

fn file(change: &UndoChange, words: &str, patch: Option<&str>) -> Markup {
    let line = html! {
        code { (change.path) @if change.kind == EntryKind::Folder { "/" } }
        " " span.done { (words) }
        @match change.kind {
            EntryKind::File => span.size { (counted(change.bytes, "byte")) },
            EntryKind::Link => span.size { "link" },
            EntryKind::Folder => span.size { "folder" },
            EntryKind::Repository => span.size { "branches, HEAD, index and settings" },
        }
    };
    html! {
        @match patch {
            None => { p.file-line { (line) } },
            Some(patch) => {
                details open[patch.len() < 4_000] {
                    summary.file-line { (line) }
                    (whole_patch(gyrus_text::first_bytes(patch, FILE_PATCH)))
                    @if patch.len() > FILE_PATCH { p.cut { "… the rest is in the whole patch" } }
                }
            },
        }
    }
}

/// Splits a patch into those of its files, with the path of each.
fn by_file(patch: &str) -> Vec<(&str, &str)> {
    let mut starts: Vec<usize> = patch
        .match_indices("diff --git ")
        .map(|(at, _)| at)
        .filter(|at| *at == 0 || patch.as_bytes()[at - 1] == b'\n')
        .collect();
    starts.push(patch.len());
    let parts = starts.windows(2).map(|ends| &patch[ends[0]..ends[1]]);
    let path = |part: &'_ str| {
        let head = part.lines().next()?;
        let (_, path) = head.rsplit_once(" b/")?;
        Some(path.len()).map(|length| head.len() - length)
    };
    parts
        .filter_map(|part| {
            let at = path(part)?;
            let end = part.find('\n').unwrap_or(part.len());
            Some((&part[at..end], part))
        })
        .collect()
}
