//! One event, with everything that it says.

use std::sync::Arc;

use axum::{extract::State, response::Html};
use gyrus_surfaces::page::{date_and_time, whole_text};
use maud::html;

use super::{
    conversation::runs,
    events::{correlated, trust},
    frame::{NavigationPlace, age},
    recipients::Recipients,
};
use crate::{
    api::{
        events::{self, EventsQuery},
        runs::blocking,
    },
    app::App,
    error::ApiError,
    extract::{ApiPath, ListLimit},
};

pub(super) async fn show(
    State(app): State<Arc<App>>,
    ApiPath(position): ApiPath<u64>,
) -> Result<Html<String>, ApiError> {
    let query = EventsQuery {
        after: position.saturating_sub(1),
        limit: ListLimit(1),
        ..EventsQuery::default()
    };
    let found = events::selected(&app, query).await?.events.pop();
    let found = found.filter(|one| one.position == position);
    let event = found.ok_or_else(|| {
        ApiError::not_found(format!("there is no event with the position {position}"))
            .hint("old events are removed; /events lists those that are kept")
    })?;
    let event = event.event;
    blocking(move || {
        let recipients = Recipients::now(&app);
        let title = format!("Event {position}");
        let whole = serde_json::to_string_pretty(&event.payload).unwrap_or_default();
        let main = html! {
            div.heading { h1 { "Event " span.name { (position) } } p.aside { (age(event.at_ms)) } }
            dl.facts.wide-facts {
                div { dt { "Topic" } dd { code { (event.topic) } } }
                div { dt { "From" } dd { (event.from) } }
                div { dt { "To, as of now" } dd { (recipients.named(&event.topic)) } }
                div { dt { "Time" } dd { (date_and_time(event.at_ms)) } }
                div { dt { "Correlation" } dd {
                    @match &event.correlation { Some(id) => (correlated(id)), None => "none" }
                } }
                @if let Some(topic) = &event.reply_to { div { dt { "Replies go to" } dd { code { (topic) } } } }
                div { dt { "Id" } dd { code { (event.id) } } }
                @let runs = runs(&app, &event);
                @if !runs.is_empty() {
                    div { dt { "Runs" } dd { @for run in &runs {
                        a href={ "/runs/" (run) } { (run.short()) } " "
                    } } }
                }
            }
            p.label { "Payload " (trust(&event.origin)) }
            div.untrusted[!event.origin.is_trusted()] tabindex="0" role="group" aria-label="Payload" {
                (whole_text(&whole))
            }
            p.pages {
                a href={ "/events?before=" (position) } { "Events before it" }
                a href={ "/events?after=" (position) } { "Events after it" }
            }
        };
        Ok(NavigationPlace::Events.page(&app, &title, &main))
    })
    .await
}
