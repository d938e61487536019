//! All agents: what each does now, what waits for it, what wakes it, and what it used today.

use std::{collections::BTreeMap, sync::Arc};

use axum::{extract::State, response::Html};
use gyrus_runtime::agents::Agents;
use gyrus_text::{counted, grouped, percent_encoded};
use maud::{Markup, html};
use serde::Deserialize;

use super::frame::{NavigationPlace, age};
use crate::{
    api::{
        agents::{self, AgentView},
        runs::blocking,
        triggers::TriggerView,
    },
    app::App,
    error::ApiError,
    extract::ApiQuery,
    surroundings::AgentFileView,
};

/// Number of agents on a page.
const SHOWN: usize = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AgentsPart {
    text: String,
    after: String,
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    ApiQuery(part): ApiQuery<AgentsPart>,
) -> Result<Html<String>, ApiError> {
    blocking(move || {
        let mut names = Agents::known(&app.store)?;
        names.sort();
        let all = names.len();
        names.retain(|name| name.contains(part.text.trim()) && *name > part.after);
        let more = names.len() > SHOWN;
        names.truncate(SHOWN);
        let files = app.program.agent_files();
        let by_agent: BTreeMap<&str, &AgentFileView> = files
            .iter()
            .filter_map(|file| Some((file.agent.as_deref()?, file)))
            .collect();
        let views = names.iter().map(|name| agents::view(&app, name));
        let views: Vec<AgentView> = views.collect::<Result<_, _>>()?;
        let main = html! {
            div.heading { h1 { "Agents" } p.aside { (counted(all, "agent")) } }
            @if all > SHOWN { (filter(&part)) }
            section #agents data-live data-bus {
                (mistakes(&files))
                @if views.is_empty() {
                    p.nothing { @if all == 0 { "There is no agent yet. " } @else { "There is no such agent. " }
                        "An agent is a file " code { "agents/NAME.md" }
                        " in the configuration folder." }
                } @else {
                    ol.agents { @for view in &views {
                        (line(view, by_agent.get(view.name.as_str()).copied()))
                    } }
                }
                @if let Some(last) = names.last().filter(|_| more) {
                    p.pages { a href={ "/agents?after=" (last) "&text=" (percent_encoded(&part.text)) } {
                        "Further agents"
                    } }
                }
            }
        };
        Ok(NavigationPlace::Agents.page(&app, "Agents", &main))
    })
    .await
}

fn filter(part: &AgentsPart) -> Markup {
    html! {
        form.filters method="get" action="/agents" role="search" aria-label="Filter agents" {
            label.wide { "Name" input type="search" name="text" value=(part.text) autocomplete="off"; }
            button { "Filter" }
        }
    }
}

pub(super) fn mistakes<'a>(files: impl IntoIterator<Item = &'a AgentFileView>) -> Markup {
    let invalid: Vec<_> = files
        .into_iter()
        .filter(|file| !file.mistakes.is_empty())
        .collect();
    html! {
        @for file in invalid.iter().take(SHOWN) {
            div.problem role="group" aria-label="Invalid agent file" {
                p { b { code { (file.path.display()) } } " cannot be used. "
                    @match &file.agent {
                        Some(agent) => { "The agent " b { (agent) } " stays as it was." },
                        None => "It describes no agent.",
                    }
                }
                ul { @for mistake in &file.mistakes { li { (mistake) } } }
            }
        }
        @if invalid.len() > SHOWN {
            p.aside { (counted(invalid.len() - SHOWN, "further file")) " cannot be used: " code { "gyrus agents check" } }
        }
    }
}

fn line(agent: &AgentView, file: Option<&AgentFileView>) -> Markup {
    html! {
        li id={ "agent-" (agent.name) } {
            span.marks { (stage(agent)) }
            div.what {
                a.goal href={ "/agents/" (agent.name) } { (agent.name) }
                p.last { (doing(agent)) }
                @if !agent.triggers.is_empty() {
                    ul.triggers { @for trigger in &agent.triggers { li { (woken(trigger)) } } }
                }
            }
            div.figures-column {
                p { (waiting(agent)) }
                p { (used(agent, file)) }
            }
            div.controls { (pausing(agent)) }
        }
    }
}

pub(super) fn stage(agent: &AgentView) -> Markup {
    let (shape, class, word) = match (agent.stage, &agent.run) {
        ("active", Some(_)) => ("▶", "running", "working"),
        ("active", None) => ("○", "idle", "idle"),
        ("paused", _) => ("‖", "parked", "paused"),
        ("quarantined", _) => ("✕", "cut-off", "quarantined"),
        (other, _) => ("■", "over", other),
    };
    html! { span class={ "state " (class) } { span.shape aria-hidden="true" { (shape) } (word) } }
}

/// Draws an agent's present activity, or the reason why there is none.
pub(super) fn doing(agent: &AgentView) -> Markup {
    let last = agent.last_summary.as_deref();
    html! {
        @if let Some(why) = &agent.why { span.why { (why) } "; " }
        @if let Some(run) = &agent.run {
            "works on run " a href={ "/runs/" (run) } { (short(run)) }
        } @else if let Some(run) = &agent.last_run {
            "last: " a href={ "/runs/" (run) } { (short(run)) } " " (last.unwrap_or_default())
        } @else { (last.unwrap_or("has done nothing yet")) }
    }
}

/// Draws the number of waiting and of dropped events of an agent.
pub(super) fn waiting(agent: &AgentView) -> Markup {
    html! {
        (counted(agent.waiting, "event")) " waiting"
        @if agent.dropped > 0 { ", " span.bad { (grouped(agent.dropped)) " dropped" } }
    }
}

/// Draws the use of an agent today, against its budget.
pub(super) fn used(agent: &AgentView, file: Option<&AgentFileView>) -> Markup {
    let money = gyrus_contract::Microdollars;
    let most_cost = file.and_then(|file| file.most_cost_microdollars);
    let has_cost = agent.cost_microdollars_today > 0 || most_cost.is_some();
    html! {
        "today " (of(agent.runs_today, file.and_then(|file| file.most_runs))) " runs, "
        (of(agent.tokens_today, file.and_then(|file| file.most_tokens))) " tokens"
        @if has_cost {
            ", " (money(agent.cost_microdollars_today))
            @if let Some(most) = most_cost { " of " (money(most)) }
        }
    }
}

fn short(run: &str) -> String {
    let parsed = run.parse::<gyrus_contract::RunId>();
    parsed.map_or_else(|_| run.to_owned(), gyrus_contract::RunId::short)
}

fn of(used: u64, most: Option<u64>) -> String {
    match most {
        Some(most) => format!("{} of {}", grouped(used), grouped(most)),
        None => grouped(used),
    }
}

fn woken(trigger: &TriggerView) -> Markup {
    html! {
        b { (trigger.name) }
        @if let Some(kind) = trigger.kind { " " (kind) }
        @if let Some(next) = trigger.next_ms { "; next " (gyrus_surfaces::page::date_and_time(next)) }
        @if let Some(last) = trigger.last_ms { "; last " (age(last)) }
        @if let Some(result) = &trigger.last_result { ": " (gyrus_text::clip(result, 120)) }
        @if let Some(why) = &trigger.paused { "; " span.bad { "paused: " (why) } }
        @if let Some(why) = &trigger.problem { "; " span.bad { "cannot fire: " (why) } }
    }
}

pub(super) fn pausing(agent: &AgentView) -> Markup {
    let resumes = agent
        .triggers
        .iter()
        .any(|trigger| trigger.paused.is_some());
    html! {
        @if agent.stage == "active" {
            form method="post" action={ "/agents/" (agent.name) "/pause" } {
                button title="Let events wait; the one in progress is finished" { "Pause" }
            }
        }
        @if matches!(agent.stage, "paused" | "quarantined") || resumes {
            form method="post" action={ "/agents/" (agent.name) "/resume" } {
                button.primary title="Go on, also with paused triggers" { "Resume" }
            }
        }
    }
}
