//! All runs, and the form for a new one.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Extension,
    extract::State,
    response::{Html, Response},
};
use gyrus_runtime::{queue::CommandStage, request::options};
use gyrus_text::{counted, grouped, percent_encoded};
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    filter,
    forms::{see, typed},
    frame::{NavigationPlace, age},
    several,
};
use crate::{
    api::{
        commands::{self, StartRun},
        runs::{RunList, RunsQuery, blocking, listed},
    },
    app::App,
    error::ApiError,
    extract::{ApiForm, ApiJson, ApiQuery},
    heads::RunWord,
    overview::RunOverview,
    tokens::Requester,
};

/// Maximum number of queued runs that the page names.
const QUEUED: usize = 20;

const STATES: [RunWord; 5] = [
    RunWord::Running,
    RunWord::Waiting,
    RunWord::Parked,
    RunWord::CutOff,
    RunWord::Over,
];

const OUTCOMES: [&str; 5] = ["answered", "claimed", "checked", "verified", "failed"];

/// The filters, as the form sends them, including empty ones.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Filters {
    state: String,
    outcome: String,
    agent: String,
    text: String,
    before: String,
}

impl Filters {
    fn query(&self) -> Result<RunsQuery, ApiError> {
        let given = |text: &String| typed(text.clone());
        let mut query = RunsQuery {
            state: given(&self.state)
                .map(|state| filter::state_of(&state))
                .transpose()?,
            outcome: given(&self.outcome),
            agent: given(&self.agent),
            before: given(&self.before),
            ..RunsQuery::default()
        };
        filter::take(&self.text, &mut query)?;
        Ok(query)
    }

    fn older(&self, before: &str) -> String {
        let fields = [
            ("state", &*self.state),
            ("outcome", &*self.outcome),
            ("agent", &*self.agent),
            ("text", &*self.text),
            ("before", before),
        ];
        let given = fields.iter().filter(|(_, value)| !value.is_empty());
        let given: Vec<String> = given
            .map(|(name, value)| format!("{name}={}", percent_encoded(value)))
            .collect();
        format!("/?{}", given.join("&"))
    }
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    ApiQuery(filters): ApiQuery<Filters>,
) -> Result<Html<String>, ApiError> {
    blocking(move || {
        let list = listed(&app, &filters.query()?)?;
        let main = html! {
            div.heading { h1 { "Runs" } (new_run(&list)) }
            (filter_form(&filters))
            section #runs data-live {
                (queued(&app))
                @if list.runs.is_empty() {
                    p.nothing { "No run is like this." }
                } @else {
                    ol.runs { @for run in &list.runs { (line(run)) } }
                    (several::forms(&list.runs))
                }
                @if list.more && let Some(last) = list.runs.last() {
                    p.older { a href=(filters.older(&last.run.to_string())) { "Older runs" } }
                }
            }
        };
        Ok(NavigationPlace::Runs.page(&app, "Runs", &main))
    })
    .await
}

pub(super) fn word_of(state: RunWord) -> (&'static str, &'static str) {
    match state {
        RunWord::Running => ("▶", "running"),
        RunWord::Waiting => ("◆", "waiting"),
        RunWord::Parked => ("‖", "parked"),
        RunWord::CutOff => ("✕", "cut-off"),
        RunWord::Over => ("■", "over"),
    }
}

pub(super) fn state(run: &RunOverview) -> Markup {
    let (shape, word) = word_of(run.state);
    html! {
        span class={ "state " (word) } {
            span.shape aria-hidden="true" { (shape) }
            (word.replace('-', " "))
        }
    }
}

/// Returns the word for how strongly the goal is believed to be reached, or that it is not.
pub(super) fn outcome(run: &RunOverview) -> Markup {
    let shape = match run.outcome.as_deref() {
        Some("verified") => "✓✓",
        Some("checked") => "✓",
        Some("failed") => "✗",
        Some(_) => "?",
        None => return html! {},
    };
    let word = run.outcome.as_deref().unwrap_or_default();
    html! {
        span class={ "word " (word) } { span.shape aria-hidden="true" { (shape) } (word) }
    }
}

/// Draws the resources that a run used, against its limits.
pub(super) fn figures(run: &RunOverview) -> Markup {
    let steps = run
        .limits
        .steps
        .map(|most| format!(" of {}", grouped(most)));
    html! {
        span { (counted(run.steps, "step")) (steps.unwrap_or_default()) }
        span { (counted(run.tokens, "token")) }
        @if run.cost_microdollars > 0 { span { (gyrus_contract::Microdollars(run.cost_microdollars)) } }
    }
}

pub(super) fn line(run: &RunOverview) -> Markup {
    let last = run.ending.as_ref().unwrap_or(&run.last);
    html! {
        li id={ "run-" (run.run) } {
            span.marks { (state(run)) (outcome(run)) }
            div.what {
                a.goal href={ "/runs/" (run.run) } {
                    @if run.goal.is_empty() { "run " (run.name) } @else { (run.goal) }
                }
                @if !last.is_empty() { p.last { (last) } }
            }
            p.figures { (figures(run)) }
            p.who {
                span { (run.name) }
                span { (run.agent) }
                @if run.forked_from.is_some() { span title="forked from another run" { "⑂ fork" } }
                (age(run.last_ms))
            }
        }
    }
}

fn queued(app: &App) -> Markup {
    let waiting = app.gateway.with(|queue| {
        let all = queue.all().into_iter();
        let waiting = all.filter(|one| matches!(one.stage, CommandStage::Queued));
        let goals = waiting.map(|one| commands::CommandView::from(one).goal);
        goals.take(QUEUED).collect::<Vec<_>>()
    });
    html! {
        @if !waiting.is_empty() {
            ul.queued aria-label="Runs that have not begun" {
                @for goal in &waiting {
                    li {
                        span.state.queued { span.shape aria-hidden="true" { "◌" } "queued" }
                        span.goal { (goal.as_deref().unwrap_or("goes on with a run")) }
                    }
                }
            }
        }
    }
}

fn filter_form(filters: &Filters) -> Markup {
    html! {
        form.filters method="get" action="/" role="search" {
            label { "State" select name="state" {
                option value="" { "any" }
                @for word in STATES.map(|state| word_of(state).1) {
                    option value=(word) selected[filters.state == word] { (word.replace('-', " ")) }
                }
            } }
            label { "Outcome" select name="outcome" {
                option value="" { "any" }
                @for word in OUTCOMES {
                    option value=(word) selected[filters.outcome == word] { (word) }
                }
            } }
            label { "Agent" input name="agent" value=(filters.agent) autocomplete="off"; }
            label.wide { "Text, and filters such as state:waiting cost>0.5"
                input type="search" name="text" value=(filters.text) autocomplete="off" spellcheck="false"; }
            button { "Filter" }
        }
    }
}

fn new_run(list: &RunList) -> Markup {
    let folder = list
        .runs
        .first()
        .map(|run| run.workdir.display().to_string());
    html! {
        details.new {
            summary { "New run" }
            form method="post" action="/runs" {
                label.wide { "Goal" textarea name="goal" rows="3" required {} }
                label.wide { "Folder on the server's machine"
                    input name="workdir" required value=(folder.unwrap_or_default()) autocomplete="off"; }
                label { "Model" input name="model" placeholder="as configured" autocomplete="off"; }
                label { "Loop" input name="loop" placeholder="as configured" autocomplete="off"; }
                label { "Most steps" input name="max-steps" inputmode="numeric" pattern="[0-9]*" autocomplete="off"; }
                button.primary { "Start" }
            }
        }
    }
}

/// Starts a run from a form, whose fields beside goal and folder are options.
pub(super) async fn start(
    state: State<Arc<App>>,
    identity: Extension<Requester>,
    ApiForm(mut form): ApiForm<BTreeMap<String, String>>,
) -> Result<Response, ApiError> {
    let mut take = |name| form.remove(name).unwrap_or_default();
    let (goal, workdir) = (take("goal"), take("workdir"));
    let given = form
        .into_iter()
        .filter(|(_, value)| !value.trim().is_empty());
    let given = given.map(|(name, value)| (name, value.trim().into()));
    let run = StartRun {
        goal: goal.replace("\r\n", "\n"),
        workdir: workdir.trim().into(),
        options: options::read(given.collect())?,
        ..StartRun::default()
    };
    let _ = commands::start(state, identity, ApiJson(run)).await?;
    Ok(see("/"))
}
