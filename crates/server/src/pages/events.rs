//! The bus: its newest events, the topics and the queues, and a form that sends an event.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    response::{Html, Response},
};
use gyrus_contract::Origin;
use gyrus_text::percent_encoded;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::{
    conversation,
    forms::{see, typed},
    frame::{NavigationPlace, clock},
    queues,
    recipients::Recipients,
};
use crate::{
    api::{
        events::{self, EventList, EventsQuery, PublishEvent},
        runs::blocking,
    },
    app::App,
    error::ApiError,
    extract::{ApiForm, ApiJson, ApiQuery},
    sse::PlacedEvent,
    tokens::Requester,
};

/// Number of characters of a payload that a row shows.
const GIST: usize = 160;

/// Length of a UUID.
const UUID: usize = 36;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventsPart {
    topic: String,
    correlation: String,
    before: Option<u64>,
    after: Option<u64>,
}

impl EventsPart {
    fn query(&self) -> EventsQuery {
        EventsQuery {
            topic: typed(self.topic.trim().to_owned()),
            correlation: typed(self.correlation.clone()),
            after: self.after.unwrap_or(0),
            before: match (self.before, self.after) {
                (None, Some(_)) => None,
                (before, _) => Some(before.unwrap_or(u64::MAX)),
            },
            ..EventsQuery::default()
        }
    }

    /// Returns the address of this selection from another position on.
    fn at(&self, place: &str) -> String {
        let mut address = format!("/events?{place}");
        for (name, value) in [("topic", &self.topic), ("correlation", &self.correlation)] {
            if !value.is_empty() {
                address.push_str(&format!("&{name}={}", percent_encoded(value)));
            }
        }
        address
    }

    fn is_newest(&self) -> bool {
        self.before.is_none() && self.after.is_none()
    }
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    ApiQuery(part): ApiQuery<EventsPart>,
) -> Result<Html<String>, ApiError> {
    let mut list = events::selected(&app, part.query()).await?;
    if part.after.is_some() {
        list.events.reverse();
    }
    let counts = app.topics.of(app.agents.bus()).await?;
    let last = app.agents.bus().last_position()?.0;
    blocking(move || {
        let recipients = Recipients::now(&app);
        let main = html! {
            div.heading {
                h1 { "Events" }
                p.aside { "the newest has the position " (gyrus_text::grouped(last)) }
                (new_event())
            }
            (filter(&part))
            section #events.wide data-live[part.is_newest()] data-bus[part.is_newest()] {
                @if !part.correlation.is_empty() {
                    (conversation::drawn(&app, &part.correlation, &list.events, &recipients))
                }
                @if list.events.is_empty() { p.nothing { "There is no such event." } }
                @else { (table(&list.events, &recipients)) }
                (pages(&part, &list, last))
            }
            section #topics data-live data-bus { (queues::topics(&counts)) }
            section #queues data-live data-bus { (queues::queues(&app)) }
        };
        Ok(NavigationPlace::Events.page(&app, "Events", &main))
    })
    .await
}

fn pages(part: &EventsPart, list: &EventList, last: u64) -> Markup {
    let first = list.events.first().map(|one| one.position);
    let oldest = list.events.last().map(|one| one.position);
    let (newer, older) = match part.after {
        Some(after) => (Some(list.passed), Some(oldest.unwrap_or(after + 1))),
        None => (first, (list.passed > 1).then_some(list.passed)),
    };
    let newer = newer.filter(|newer| !part.is_newest() && *newer < last);
    html! {
        p.pages {
            @if let Some(newer) = newer { a href=(part.at(&format!("after={newer}"))) { "Newer events" } }
            @if !part.is_newest() { a href=(part.at("")) { "The newest events" } }
            @if let Some(older) = older.filter(|older| *older > 1) {
                a href=(part.at(&format!("before={older}"))) { "Older events" }
            }
        }
    }
}

pub(super) fn table(events: &[PlacedEvent], recipients: &Recipients) -> Markup {
    html! {
        div.scrolls tabindex="0" role="group" aria-label="Events" {
            table.grid.events {
                thead { tr {
                    th scope="col" { "Position" }
                    th scope="col" { "Time" }
                    th scope="col" { "Topic" }
                    th scope="col" { "From" }
                    th scope="col" { "To, as of now" }
                    th scope="col" { "Correlation" }
                    th scope="col" { "Payload" }
                } }
                tbody { @for one in events { (row(one, recipients)) } }
            }
        }
    }
}

fn row(placed: &PlacedEvent, recipients: &Recipients) -> Markup {
    let event = &placed.event;
    html! {
        tr {
            td.number { a href={ "/events/" (placed.position) } { (placed.position) } }
            td { time datetime=(gyrus_text::utc(event.at_ms))
                title=(gyrus_surfaces::page::date_and_time(event.at_ms)) { (clock(event.at_ms)) } }
            td { a.topic href={ "/events?topic=" (percent_encoded(event.topic.as_str())) } { (event.topic) } }
            td.name { (event.from) }
            td.to { (recipients.named(&event.topic)) }
            td.name { @if let Some(id) = &event.correlation { (correlated(id)) } }
            td.payload { div { (trust(&event.origin)) code { (gist(&event.payload)) } } }
        }
    }
}

pub(super) fn correlated(id: &str) -> Markup {
    // Ids of gyrus's own begin with the time, and differ at the end.
    let shown = match id.char_indices().nth_back(7) {
        Some((at, _)) if id.len() == UUID => format!("…{}", &id[at..]),
        _ => gyrus_text::clip(id, 12),
    };
    html! { a href={ "/events?correlation=" (percent_encoded(id)) } title=(id) { (shown) } }
}

/// Renders how far a payload is trusted.
pub(super) fn trust(origin: &Origin) -> Markup {
    let words = match origin {
        Origin::Person => "from a person",
        Origin::Configuration => "from the configuration",
        Origin::Kernel => "from gyrus",
        Origin::Skill { .. } => "from a skill",
        Origin::Memory { .. } => "from the memory",
        Origin::Model | Origin::Lessons { .. } => "untrusted: a model's",
        Origin::Run => "untrusted: a run's",
        Origin::Tool { .. } => "untrusted: a tool's",
        Origin::File { .. } | Origin::Guidelines { .. } => "untrusted: a file's",
        Origin::Stdin | Origin::Event { .. } => "untrusted",
    };
    html! { span.trust.no[!origin.is_trusted()] { (words) } }
}

fn gist(payload: &Value) -> String {
    gyrus_text::clip(&payload.to_string(), GIST)
}

fn filter(part: &EventsPart) -> Markup {
    html! {
        form.filters method="get" action="/events" role="search" aria-label="Filter events" {
            label.wide { "Topic, or a pattern such as build.**"
                input name="topic" value=(part.topic) autocomplete="off" spellcheck="false"; }
            label.wide { "Correlation id"
                input name="correlation" value=(part.correlation) autocomplete="off" spellcheck="false"; }
            button { "Filter" }
            @if !(part.topic.is_empty() && part.correlation.is_empty()) { a href="/events" { "All" } }
        }
    }
}

fn new_event() -> Markup {
    html! {
        details.new {
            summary { "Send an event" }
            form method="post" action="/events" {
                label { "Topic" input name="topic" required placeholder="build.main.finished"
                    autocomplete="off" spellcheck="false"; }
                label { "Correlation id (optional)" input name="correlation" maxlength="200"
                    autocomplete="off" spellcheck="false"; }
                label.wide { "Payload: JSON, or a text"
                    textarea name="payload" rows="3" spellcheck="false" {} }
                p.aside.wide { "JSON is untrusted data for whoever receives it; a text counts as yours." }
                button.primary { "Send" }
            }
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct NewEvent {
    topic: String,
    #[serde(default)]
    payload: String,
    #[serde(default)]
    correlation: String,
}

pub(super) async fn send(
    state: State<Arc<App>>,
    identity: Extension<Requester>,
    ApiForm(new): ApiForm<NewEvent>,
) -> Result<Response, ApiError> {
    let text = new.payload.replace("\r\n", "\n");
    let payload = serde_json::from_str(&text).unwrap_or(Value::String(text));
    let event = PublishEvent {
        topic: new.topic.trim().to_owned(),
        payload,
        id: None,
        correlation: typed(new.correlation.trim().to_owned()),
    };
    let (_, published) = events::publish(state, identity, ApiJson(event)).await?;
    Ok(see(&format!("/events/{}", published.0.position)))
}
