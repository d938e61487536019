//! One agent: what it does, what wakes it, what waits, its runs, and its file.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    response::{Html, Response},
};
use gyrus_runtime::TopicPattern;
use gyrus_surfaces::page::date_and_time;
use gyrus_text::{counted, grouped, percent_encoded};
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    agents::{doing, mistakes, pausing, stage, used, waiting},
    events::table,
    forms::{see, typed},
    frame::{NavigationPlace, age},
    recipients::Recipients,
    runs::line,
};
use crate::{
    api::{
        agents::{self, AgentDetail, AgentView, PauseAgent, SendToAgent},
        runs::{blocking, overview},
        triggers::TriggerView,
    },
    app::App,
    error::ApiError,
    extract::{ApiForm, ApiJson, ApiPath},
    sse::PlacedEvent,
    surroundings::AgentFileView,
    tokens::Requester,
};

/// Maximum number of runs, and of events, that are shown.
const RUNS: usize = 20;
const EVENTS: usize = 20;

/// Maximum number of events that are searched.
const SEARCHED: u64 = 2_000;

pub(super) async fn show(
    State(app): State<Arc<App>>,
    ApiPath(name): ApiPath<String>,
) -> Result<Html<String>, ApiError> {
    let (asked, named) = (Arc::clone(&app), name.clone());
    let detail = blocking(move || agents::detail(&asked, &named)).await?;
    let events = heard(&app, &name, &detail).await?;
    blocking(move || {
        let all = app.gateway.with(|queue| queue.runs_within(&name, ..));
        let begun = all.iter().rev().filter_map(|run| overview(&app, *run).ok());
        let runs: Vec<_> = begun.take(RUNS).collect();
        let files = app.program.agent_files();
        let own = files.iter().filter(|file| file.agent.as_ref() == Some(&name));
        let own: Vec<_> = own.collect();
        let valid = own.iter().copied().find(|file| file.mistakes.is_empty());
        let title = format!("Agent {name}");
        let main = html! {
            section #head data-live data-bus {
                (head(&detail.agent, valid))
                (mistakes(own.iter().copied()))
                (all_triggers(&detail.agent))
                (mailbox(&detail))
            }
            (sending(&name))
            section #runs data-live data-bus {
                h2 { "Runs" }
                @if runs.is_empty() { p.nothing { "It has started no run." } }
                @else { ol.runs { @for run in &runs { (line(run)) } } }
                @if runs.len() == RUNS { p.pages { a href={ "/?agent=" (percent_encoded(&name)) } { "All of its runs" } } }
            }
            section #events data-live data-bus {
                h2 { "Events" }
                p.aside { "Receives " @for pattern in &detail.subscriptions {
                    a href={ "/events?topic=" (percent_encoded(pattern)) } { (pattern) } ", " }
                    a href={ "/events?topic=agent." (name) ".inbox" } { "agent." (name) ".inbox" } }
                @if events.is_empty() { p.nothing { "It neither received nor published any of the last " (grouped(SEARCHED)) " events." } }
                @else { (table(&events, &Recipients::now(&app))) }
            }
            @if let Some(file) = valid { (described(file)) }
        };
        Ok(NavigationPlace::Agents.page(&app, &title, &main))
    })
    .await
}

async fn heard(app: &App, name: &str, detail: &AgentDetail) -> Result<Vec<PlacedEvent>, ApiError> {
    let mut patterns: Vec<TopicPattern> = Vec::new();
    patterns.extend(format!("agent.{name}.**").parse());
    patterns.extend(detail.subscriptions.iter().flat_map(|one| one.parse()));
    let bus = app.agents.bus();
    let before = gyrus_runtime::EventPosition(u64::MAX);
    let is_own = |event: &gyrus_runtime::Event| {
        event.from == name || patterns.iter().any(|one| one.matches(&event.topic))
    };
    let (events, _) = bus.read_back(before, SEARCHED, EVENTS, is_own).await?;
    let placed = events.into_iter().map(|(position, event)| PlacedEvent {
        position: position.0,
        event,
    });
    Ok(placed.collect())
}

fn head(agent: &AgentView, file: Option<&AgentFileView>) -> Markup {
    html! {
        div.heading {
            h1 { "Agent " span.name { (agent.name) } }
            span.marks { (stage(agent)) }
            p.figures { span { (waiting(agent)) } span { (used(agent, file)) } }
        }
        p.doing { (doing(agent)) }
        dl.about {
            div { dt { "Handled" } dd { (grouped(agent.handled)) } }
            div { dt { "Failures" } dd { (grouped(agent.failures)) } }
            @if let Some(file) = file {
                @if let Some(folder) = &file.workdir { div { dt { "Folder" } dd { code { (folder.display()) } } } }
                div { dt { "File" } dd { code { (file.path.display()) } } }
            }
        }
        div.controls { (pausing(agent)) }
    }
}

fn all_triggers(agent: &AgentView) -> Markup {
    html! {
        @if !agent.triggers.is_empty() {
            h2 { "Triggers" }
            div.scrolls tabindex="0" role="group" aria-label="Triggers" { table.grid {
                thead { tr {
                    th scope="col" { "Trigger" }
                    th scope="col" { "Next" }
                    th scope="col" { "Last, and what came of it" }
                    th.number scope="col" { "Today" }
                    th scope="col" { "Held back" }
                    th scope="col" { span.said { "Fire it" } }
                } }
                tbody { @for trigger in &agent.triggers { (trigger_row(&agent.name, trigger)) } }
            } }
        }
    }
}

fn trigger_row(agent: &str, trigger: &TriggerView) -> Markup {
    html! {
        tr {
            td { b { (trigger.name) } " " (trigger.kind.unwrap_or_default())
                @if let Some(why) = &trigger.paused { p.bad { "paused: " (why) } }
                @if let Some(why) = &trigger.problem { p.bad { "cannot fire: " (why) } }
            }
            td { @if let Some(next) = trigger.next_ms { time { (date_and_time(next)) } } }
            td {
                @if let Some(last) = trigger.last_ms { (age(last)) " " }
                (trigger.last_result.as_deref().unwrap_or_default())
            }
            td.number { (grouped(trigger.wakes_today)) }
            td { @for (why, count) in &trigger.held {
                (count) " " (serde_json::to_value(why).ok().as_ref().and_then(|why| why.as_str()).unwrap_or_default().replace('_', " ")) " "
            } }
            td { form method="post" action={ "/agents/" (agent) "/triggers/" (trigger.name) "/fire" } {
                button title="Fire it now, whatever its conditions, pauses and budgets say" { "Fire" }
            } }
        }
    }
}

fn mailbox(detail: &AgentDetail) -> Markup {
    let name = &detail.agent.name;
    html! {
        @if !detail.events.is_empty() {
            div.heading.small {
                h2 { "Inbox" }
                p.aside { (counted(detail.agent.waiting, "event")) " of at most " (grouped(detail.mailbox as u64)) }
                form method="post" action={ "/agents/" (name) "/skip" } {
                    button.danger title="Give up the first event; its run goes on" { "Skip the first" }
                }
            }
            ol.mailbox { @for (at, event) in detail.events.iter().enumerate() {
                li {
                    a href={ "/events/" (event.position) } { (event.position) } " "
                    code { (event.topic) } " from " span.name { (event.from) } " " (age(event.at_ms))
                    @if at == 0 && detail.agent.run.is_some() { " " b { "in progress" } }
                }
            } }
        }
    }
}

fn sending(name: &str) -> Markup {
    html! {
        form.steer method="post" action={ "/agents/" (name) "/send" } {
            label { "Tell it something, which it makes a run of"
                textarea name="text" rows="2" required {} }
            button { "Send" }
        }
    }
}

fn described(file: &AgentFileView) -> Markup {
    html! {
        h2 { "What it does with each event" }
        p.aside { "as its file says: " code { (file.path.display()) } }
        div.prose.file { (file.instructions) }
    }
}

pub(super) async fn pause(
    state: State<Arc<App>>,
    identity: Extension<Requester>,
    ApiPath(name): ApiPath<String>,
) -> Result<Response, ApiError> {
    let back = back_to(&name);
    let given = ApiJson(PauseAgent { why: None });
    agents::pause(state, identity, ApiPath(name), given).await?;
    Ok(back)
}

#[derive(Debug, Deserialize)]
pub(super) struct SendForm {
    text: String,
}

pub(super) async fn send(
    state: State<Arc<App>>,
    identity: Extension<Requester>,
    ApiPath(name): ApiPath<String>,
    ApiForm(form): ApiForm<SendForm>,
) -> Result<Response, ApiError> {
    let text = typed(form.text).ok_or_else(|| ApiError::bad_request("there is nothing to send"))?;
    let back = back_to(&name);
    let given = ApiJson(SendToAgent { text });
    let _ = agents::send(state, identity, ApiPath(name), given).await?;
    Ok(back)
}

fn back_to(agent: &str) -> Response {
    see(&format!("/agents/{}", percent_encoded(agent)))
}
