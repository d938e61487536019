//! The head of the pages of a run: its goal, what can be done to it, and the way to its parts.

use axum::response::Html;
use gyrus_contract::RunId;
use gyrus_kernel::{Entry, log_name};
use gyrus_surfaces::{ShownProcesses, projection};
use maud::{Markup, html};

use super::super::{
    frame::{NavigationPlace, age},
    runs::{figures, outcome, state},
};
use crate::{
    api::runs::overview, app::App, error::ApiError, heads::RunWord, overview::RunOverview,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunTab {
    Steps,
    Reading,
    Changes,
    Outcome,
    Cost,
    Context,
    Children,
    Raw,
    /// Another page, by its name.
    Other(&'static str),
}

impl RunTab {
    const ALL: [RunTab; 8] = [
        RunTab::Steps,
        RunTab::Reading,
        RunTab::Changes,
        RunTab::Outcome,
        RunTab::Cost,
        RunTab::Context,
        RunTab::Children,
        RunTab::Raw,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            RunTab::Steps => "Steps",
            RunTab::Reading => "Reading",
            RunTab::Changes => "Changes",
            RunTab::Outcome => "Outcome",
            RunTab::Cost => "Cost",
            RunTab::Context => "Context",
            RunTab::Children => "Children",
            RunTab::Raw => "Raw",
            RunTab::Other(name) => name,
        }
    }

    fn address(self) -> &'static str {
        match self {
            RunTab::Steps | RunTab::Other(_) => "",
            RunTab::Reading => "?zoom=reading",
            RunTab::Changes => "/changes",
            RunTab::Outcome => "/outcome",
            RunTab::Cost => "/cost",
            RunTab::Context => "/context",
            RunTab::Children => "/children",
            RunTab::Raw => "?zoom=entries",
        }
    }
}

/// Returns a page about a part of a run, below a short head.
pub(super) fn part_of(
    app: &App,
    run: RunId,
    tab: RunTab,
    body: &Markup,
) -> Result<Html<String>, ApiError> {
    let overview = overview(app, run)?;
    let title = match tab.name() {
        "" => format!("Run {}", overview.name),
        name => format!("{name} of run {}", overview.name),
    };
    let main = html! {
        (short_head(&overview))
        (tabs(run, tab))
        div.part-of-run data-run=(run) { (body) }
    };
    Ok(NavigationPlace::Other.page(app, &title, &main))
}

pub(super) fn tabs(run: RunId, current: RunTab) -> Markup {
    html! {
        nav.tabs aria-label="Parts of the run" {
            @for tab in RunTab::ALL {
                a href={ "/runs/" (run) (tab.address()) }
                    aria-current=[(tab == current).then_some("page")] { (tab.name()) }
            }
        }
    }
}

fn short_head(run: &RunOverview) -> Markup {
    html! {
        section #head data-live {
            div.heading {
                h1 { a href={ "/runs/" (run.run) } { "Run " span.name { (run.name) } } }
                span.marks { (state(run)) (outcome(run)) }
                p.figures { (figures(run)) }
            }
            p.goal-line { (run.goal) }
        }
    }
}

pub(super) fn head(app: &App, run: &RunOverview) -> Result<Markup, ApiError> {
    let reader = app.store.reader(&log_name(run.run))?;
    let goal = match reader.entry(1)?.map(|first| gyrus_kernel::parse(&first)) {
        Some(Ok(Entry::RunStarted(started))) => projection::goal(&started.goal, &reader),
        _ => run.goal.clone(),
    };
    let processes = ShownProcesses::read(&app.store, run.run);
    Ok(html! {
        section #head data-live {
            div.heading {
                h1 { "Run " span.name { (run.name) } }
                span.marks { (state(run)) (outcome(run)) }
                p.figures { (figures(run)) }
            }
            div.goal-text { p.label { "Goal" } div.prose tabindex="0" role="group" aria-label="Goal" { (goal) } }
            @if let Some(ending) = &run.ending { p.ending.bad[run.outcome.as_deref() == Some("failed")] { (ending) } }
            dl.about {
                div { dt { "Folder" } dd { code { (run.workdir.display()) } } }
                div { dt { "Loop" } dd { (run.cognitive_loop) } }
                div { dt { "Agent" } dd { (run.agent) } }
                div { dt { "Model" } dd { (run.model) } }
                div { dt { "Began" } dd { (age(run.started_ms)) } }
                @for process in processes {
                    div { dt { "In the background" } dd { code { (process.line) } " " (age(process.since_ms)) } }
                }
                @if let Some(parent) = run.forked_from {
                    div {
                        dt { "Forked from" }
                        dd {
                            a href={ "/runs/" (parent) } { (parent.short()) } " · "
                            a.compare href={ "/compare?runs=" (parent) "," (run.run) } { "compare" }
                        }
                    }
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
            a.button href={ "/runs/" (run.run) "/live" } { "Live" }
            a.button.fork href={ "/runs/" (run.run) "/fork" } { "Fork" }
            a.button.compare href={ "/compare?runs=" (run.run) } { "Compare" }
            a.button href={ "/runs/" (run.run) "/undo" } { "Undo" }
            (button("replay", "Run it again from its journal, with nothing live behind it", "", "Replay"))
            a.save href={ "/api/runs/" (run.run) "/page" } { "Save as one file" }
        }
    }
}
