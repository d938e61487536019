//! The workers of a fleet, its queue, and who drives what.

use std::sync::Arc;

use axum::{extract::State, response::Html};
use gyrus_kernel::now_ms;
use gyrus_text::{counted, grouped, span};
use maud::{Markup, html};

use super::frame::{NavigationPlace, age};
use crate::{app::App, error::ApiError, fleet::FleetView};

pub(super) async fn show(State(app): State<Arc<App>>) -> Result<Html<String>, ApiError> {
    let fleet = app.program.fleet().ok_or_else(|| {
        ApiError::not_found("this server is not the door of a fleet")
            .hint("start one that is: gyrus serve --fleet ADDRESS")
    })?;
    let main = html! {
        div.heading { h1 { "Fleet" } p.aside { (fleet.address) } }
        section #figures data-live { (figures(&fleet)) }
        section #fleet data-live { (workers(&fleet)) (runs(&fleet)) }
    };
    Ok(NavigationPlace::Fleet.page(&app, "Fleet", &main))
}

fn figures(fleet: &FleetView) -> Markup {
    let slots: usize = fleet.workers.iter().map(|worker| worker.at_once).sum();
    let oldest = fleet.oldest_ms.map_or_else(|| "none".to_owned(), lasted);
    let tiles = [
        ("workers", grouped(fleet.workers.len() as u64)),
        ("at work", format!("{} of {slots}", fleet.at_work)),
        ("queued", grouped(fleet.waiting as u64)),
        ("longest wait", oldest),
        ("parked", grouped(fleet.parked as u64)),
        ("over", grouped(fleet.over as u64)),
    ];
    html! {
        dl.tiles.costs { @for (name, value) in tiles { div { dt { (name) } dd { (value) } } } }
    }
}

fn workers(fleet: &FleetView) -> Markup {
    html! {
        h2 { "Workers" }
        @if fleet.workers.is_empty() {
            p.nothing { "No worker answers. To start one, on any machine: " code { "gyrus worker --fleet ADDRESS" } }
        } @else {
            div.scrolls tabindex="0" role="group" aria-label="Workers" { table.grid {
                thead { tr {
                    th scope="col" { "Machine" } th scope="col" { "Worker" }
                    th.number scope="col" { "At work" } th scope="col" { "Has" }
                    th.number scope="col" { "Lease" } th scope="col" { "Started" } th scope="col" { "gyrus" }
                } }
                tbody { @for worker in &fleet.workers { tr {
                    td { b { (worker.machine) } }
                    td.name { (worker.name) }
                    td.number { (worker.at_work) " of " (worker.at_once) }
                    td.name { @for label in &worker.labels { code { (label) } " " } }
                    td.number { (span(worker.lease_ms)) }
                    td { (age(worker.since_ms)) }
                    td { (worker.build) }
                } } }
            } }
        }
    }
}

fn runs(fleet: &FleetView) -> Markup {
    html! {
        h2 { "Runs" }
        @if fleet.runs.is_empty() { p.aside { "None is at work, and none waits for a machine." } }
        @else {
            div.scrolls tabindex="0" role="group" aria-label="Runs" { table.grid {
                thead { tr {
                    th scope="col" { "Run" } th scope="col" { "Goal" } th scope="col" { "Where" }
                    th scope="col" { "For" } th scope="col" { "Last sign of life" }
                } }
                tbody { @for one in &fleet.runs { tr {
                    @let name = one.run.get(one.run.len().saturating_sub(8)..).unwrap_or_default();
                    td { @if one.worker.is_some() { a href={ "/runs/" (one.run) } { (name) } } @else { (name) } }
                    td.name { (one.goal) }
                    td.name {
                        @if let Some(worker) = &one.worker { (worker) }
                        @if let Some(why) = &one.waits_for { span.bad { "waits: " (why) } }
                    }
                    td { @if let Some(since) = one.since_ms { (lasted(now_ms() - since)) } }
                    td { @if let Some(sign) = one.sign_ms { (age(sign)) } }
                } } }
            } }
            @if fleet.at_work > fleet.runs.len() {
                p.aside { (counted(fleet.at_work - fleet.runs.len(), "further run")) " at work" }
            }
        }
    }
}

/// Formats a duration in milliseconds.
fn lasted(ms: i64) -> String {
    span(u64::try_from(ms).unwrap_or(0))
}
