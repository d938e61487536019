//! Runs, agents and topics by a text.

use std::sync::Arc;

use axum::{extract::State, response::Html};
use gyrus_runtime::agents::Agents;
use gyrus_text::{grouped, percent_encoded};
use maud::html;
use serde::Deserialize;

use super::{
    frame::{NavigationPlace, age},
    runs::line,
};
use crate::{
    api::runs::{RunsQuery, blocking, listed, overview},
    app::App,
    error::ApiError,
    extract::{ApiQuery, ListLimit},
    overview::RunOverview,
};

/// Maximum number of hits of each kind.
const HITS: usize = 20;

/// Maximum number of characters of a text to search for.
const LONGEST: usize = 200;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SearchQuery {
    text: String,
}

pub(super) async fn find(
    State(app): State<Arc<App>>,
    ApiQuery(wanted): ApiQuery<SearchQuery>,
) -> Result<Html<String>, ApiError> {
    let text = gyrus_text::first_chars(wanted.text.trim(), LONGEST).to_owned();
    let counts = app.topics.of(app.agents.bus()).await?;
    blocking(move || {
        let lower = text.to_lowercase();
        let has = |name: &str| !lower.is_empty() && name.to_lowercase().contains(&lower);
        let (runs, more) = runs(&app, &text)?;
        let mut agents = Agents::known(&app.store)?;
        agents.retain(|name| has(name));
        let topics = counts.topics.iter().filter(|(topic, _)| has(topic));
        let topics: Vec<_> = topics.take(HITS).collect();
        let is_nothing = runs.is_empty() && agents.is_empty() && topics.is_empty();
        let main = html! {
            div.heading { h1 { "Search" } }
            form.filters method="get" action="/search" role="search" aria-label="This search" {
                label.wide { "Text in goals, ids, folders, models, endings, agents and topics"
                    input type="search" name="text" value=(text) autocomplete="off"; }
                button { "Search" }
            }
            @if is_nothing { p.nothing { @if text.is_empty() { "Type what to look for." } @else { "Nothing has this text." } } }
            @if !runs.is_empty() {
                h2 { "Runs" }
                ol.runs { @for run in &runs { (line(run)) } }
                @if more { p.pages { a href={ "/?text=" (percent_encoded(&text)) } { "All runs with this text" } } }
            }
            @if !agents.is_empty() {
                h2 { "Agents" }
                ul.hits { @for name in agents.iter().take(HITS) { li { a href={ "/agents/" (name) } { (name) } } } }
                @if agents.len() > HITS { p.pages { a href={ "/agents?text=" (percent_encoded(&text)) } { "All agents with this text" } } }
            }
            @if !topics.is_empty() {
                h2 { "Topics" }
                ul.hits { @for (topic, count) in &topics {
                    li { a href={ "/events?topic=" (percent_encoded(topic)) } { (topic) }
                        " " span.aside { (grouped(count.events)) " events, the last " (age(count.last_ms)) } }
                } }
            }
        };
        Ok(NavigationPlace::Other.page(&app, "Search", &main))
    })
    .await
}

/// Returns the runs that match a text, the one named by it first, and whether there are more.
fn runs(app: &App, text: &str) -> Result<(Vec<Arc<RunOverview>>, bool), ApiError> {
    if text.is_empty() {
        return Ok((Vec::new(), false));
    }
    let is_id = text.len() >= 6
        && text
            .chars()
            .all(|char| char.is_ascii_hexdigit() || char == '-');
    let named = is_id.then(|| gyrus_kernel::find_run(&app.store, text).ok());
    let named = named.flatten().and_then(|run| overview(app, run).ok());
    let query = RunsQuery {
        text: Some(text.to_owned()),
        limit: ListLimit(HITS),
        ..RunsQuery::default()
    };
    let list = listed(app, &query)?;
    let mut runs: Vec<_> = named.into_iter().collect();
    let is_new = |one: &Arc<RunOverview>| runs.first().is_none_or(|named| named.run != one.run);
    let others: Vec<_> = list.runs.into_iter().filter(is_new).collect();
    runs.extend(others);
    Ok((runs, list.more))
}
