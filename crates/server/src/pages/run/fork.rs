//! Going another way from a step: what is taken from the journal and what is live stands there
//! before anything is started.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    response::{Html, Response},
};
use gyrus_contract::{Limits, RunId, Spent};
use gyrus_kernel::{Entry, Snapshot, log_name};
use gyrus_surfaces::projection::limits;
use gyrus_text::counted;
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    super::forms::{see, typed},
    changes,
    head::{RunTab, part_of},
};
use crate::{
    api::{
        forks::{self, Fork},
        runs::{blocking, overview},
    },
    app::App,
    error::ApiError,
    extract::{ApiForm, ApiQuery, RunInPath},
    overview::RunOverview,
    tokens::Requester,
};

/// The step to fork after; without one, the last complete one.
#[derive(Debug, Deserialize)]
pub(in super::super) struct At {
    at: Option<u32>,
}

struct ForkPoint {
    at: u32,
    last: u32,
    /// The resources used by the steps up to this one.
    spent: Spent,
    /// The folder at that time, or the reason why it was not stored.
    snapshot: Snapshot,
    limits: Limits,
}

pub(in super::super) async fn form(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
    ApiQuery(At { at }): ApiQuery<At>,
) -> Result<Html<String>, ApiError> {
    blocking(move || {
        let overview = overview(&app, run)?;
        let moment = moment(&app, run, at)?;
        let body = html! {
            div.forking {
                h2 { "Go another way from a step" }
                form.moment method="get" action={ "/runs/" (run) "/fork" } {
                    label { "After step (0 is the beginning; " (moment.last) " is the last complete one)"
                        input type="number" name="at" min="0" max=(moment.last) value=(moment.at) required; }
                    button { "Show" }
                }
                (said(&app, run, &moment))
                (start(&overview, &moment))
            }
        };
        part_of(&app, run, RunTab::Other("Fork"), &body)
    })
    .await
}

fn moment(app: &App, run: RunId, at: Option<u32>) -> Result<ForkPoint, ApiError> {
    let reader = app.store.reader(&log_name(run))?;
    let last = match reader
        .last("cycle.ended")?
        .map(|entry| gyrus_kernel::parse(&entry))
    {
        Some(Ok(Entry::CycleEnded(ended))) => ended.cycle,
        _ => 0,
    };
    let at = at.unwrap_or(last);
    if at > last {
        let error = format!("run {} has no complete step {at}", run.short());
        return Err(ApiError::not_found(error).hint(format!("the last one is {last}")));
    }
    let mut moment = ForkPoint {
        at,
        last,
        spent: Spent::default(),
        snapshot: Snapshot::Missing("the run was cut off before its folder was read".to_owned()),
        limits: Limits::default(),
    };
    for entry in reader.entries(1)? {
        let Ok(entry) = gyrus_kernel::parse(&entry?) else {
            continue;
        };
        if let Entry::RunStarted(started) = entry {
            moment.limits = started.settings.limits;
            moment.snapshot = started.snapshot.unwrap_or(moment.snapshot);
        } else if let Entry::WorkspaceRecorded(recorded) = entry {
            moment.snapshot = recorded.snapshot;
        } else if let Entry::CycleEnded(ended) = entry {
            if ended.cycle > at {
                break;
            }
            moment.spent = ended.kernel.spent;
            moment.snapshot = ended.snapshot.unwrap_or(moment.snapshot);
        }
    }
    Ok(moment)
}

/// Tells which part comes from the journal, and which is live.
fn said(app: &App, run: RunId, moment: &ForkPoint) -> Markup {
    let at = moment.at;
    let most = limits(&moment.limits);
    let spent = &moment.spent;
    html! {
        ul.what-comes {
            @match at {
                0 => li { "Nothing comes from the journal but the goal." },
                1 => li { b { "Step 1 from the journal, 0 tokens" } (used(spent)) },
                at => li { b { "Steps 1–" (at) " from the journal, 0 tokens" } (used(spent)) },
            }
            li {
                b { "In a new folder: the files as after step " (at) "." }
                @if let Snapshot::Missing(why) = &moment.snapshot {
                    " Not possible here, because they are not kept: " (why)
                }
            }
            li { b { "In place: the folder as it is now. " } (differs(app, run, at)) }
            li {
                b { "Live from step " (at + 1) }
                ": models are asked, tools are called, money is spent"
                @if most.is_empty() { ", without a limit." } @else { "; at most " (most) " for the new run." }
            }
            li { "Your yeses do not carry over, nor do your answers and messages." }
        }
    }
}

fn used(spent: &Spent) -> Markup {
    html! {
        " (they took " (counted(spent.tokens, "token")) (spent.cost.after(", ")) " then)."
    }
}

fn differs(app: &App, run: RunId, at: u32) -> Markup {
    match changes::planned(app, run, at) {
        Ok(found) => match found.changes().len() + found.plan.refused.len() {
            0 => html! { "What the run touched is as it was after step " (at) "." },
            paths => html! {
                (counted(paths, "path")) " differ from step " (at) ": "
                a href={ "/runs/" (run) "/undo?to=" (at) } { "which" }
            },
        },
        Err(why) => html! { "It is not known how it differs: " (why) },
    }
}

fn start(run: &RunOverview, moment: &ForkPoint) -> Markup {
    let folder = format!("{}-after-{}", run.workdir.display(), moment.at);
    let is_kept = matches!(moment.snapshot, Snapshot::Blob(_));
    html! {
        form.fork-form method="post" action={ "/runs/" (run.run) "/fork" } {
            input type="hidden" name="at" value=(moment.at);
            fieldset {
                legend { "Where" }
                label.choice {
                    input type="radio" name="place" value="folder" checked[is_kept] disabled[!is_kept];
                    span { "A new folder with the files as they were" }
                }
                label { "The new folder" input name="into" value=(folder) disabled[!is_kept] autocomplete="off"; }
                label.choice {
                    input type="radio" name="place" value="in-place" checked[!is_kept];
                    span { "In place: " code { (run.workdir.display()) } }
                }
            }
            label { "Another model (empty: " (run.model) ")" input name="model" autocomplete="off"; }
            label { "Words that amend the goal (optional)" textarea name="text" rows="3" {} }
            p.aside { "The words count from the new run's first safe point on: a request that is already under way does not know them." }
            button.primary { "Fork after step " (moment.at) }
        }
    }
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct ForkForm {
    at: u32,
    place: String,
    #[serde(default)]
    into: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    text: String,
}

pub(in super::super) async fn fork(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    RunInPath(run): RunInPath,
    ApiForm(form): ApiForm<ForkForm>,
) -> Result<Response, ApiError> {
    let in_place = match form.place.as_str() {
        "in-place" => true,
        "folder" => false,
        other => {
            let error = format!("invalid place: `{other}` is neither folder nor in-place");
            return Err(ApiError::bad_request(error));
        }
    };
    let into = typed(form.into).map(|folder| folder.trim().to_owned());
    if !in_place && !into.as_ref().is_some_and(|folder| folder.starts_with('/')) {
        return Err(
            ApiError::bad_request("invalid folder: it is not absolute").hint("begin with /")
        );
    }
    let fork = Fork {
        at: form.at,
        into: into.filter(|_| !in_place),
        in_place,
        model: typed(form.model).map(|model| model.trim().to_owned()),
        text: typed(form.text),
    };
    let forked = forks::begin(app, identity, run, fork).await?;
    Ok(see(&format!("/compare?runs={run},{forked}")))
}
