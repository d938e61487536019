//! A run as it goes on: what its screen shows, what it thinks and does, and who has the browser.

use std::sync::Arc;

use axum::{Extension, extract::State, response::Html};
use gyrus_kernel::log_name;
use gyrus_surfaces::page::{self, RunNow, ScreenHolder};
use maud::{Markup, html};

use super::{
    frame::{NavigationPlace, age},
    run,
    runs::state,
};
use crate::{
    api::runs::{blocking, overview},
    app::App,
    error::ApiError,
    extract::RunInPath,
    heads::RunWord,
    leases::TakeoverLease,
    overview::RunOverview,
    tokens::{Requester, TokenScope},
};

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    RunInPath(run): RunInPath,
) -> Result<Html<String>, ApiError> {
    blocking(move || {
        let overview = overview(&app, run)?;
        let reader = app.store.reader(&log_name(run))?;
        let end = reader.end()?;
        let end = app.heads.of(run).map_or(end, |head| head.seq.min(end));
        let now = page::present(&reader, run, end)?;
        let lease = app.leases.of(run).map(|lease| lease.seen_by(&identity));
        let title = format!("Live: run {}", overview.name);
        let main = html! {
            div.heading #head data-live {
                h1 { "Live: run " a.name href={ "/runs/" (run) } { (overview.name) } }
                span.marks { (state(&overview)) }
                p.aside { "as of entry " (end) }
            }
            div.live data-run=(run) {
                div.screen {
                    (holding(&overview, &now, lease, identity.may(TokenScope::Approve)))
                    (screen(&overview, &now))
                }
                div.present {
                    div #questions data-live { (run::questions(&app, run, &format!("/runs/{run}/live"))) }
                    (present(&now))
                    (run::steering(&overview))
                }
            }
        };
        Ok(NavigationPlace::Other.page(&app, &title, &main))
    })
    .await
}

/// Renders the present picture, over the last one that the run stored.
fn screen(run: &RunOverview, now: &RunNow) -> Markup {
    let is_live = matches!(run.state, RunWord::Running | RunWord::Waiting) && now.holder.is_none();
    html! {
        figure.seen {
            div.layers {
                @if let Some(image) = &now.picture {
                    img.kept src={ "/api/runs/" (run.run) "/blobs/" (image.blob) }
                        width=(image.width) height=(image.height) alt="The last picture that the run kept";
                }
                img #screen data-screen={ "/api/runs/" (run.run) "/screen" } hidden
                    alt="The page in the run's browser now";
                (target(now))
            }
            figcaption #seen data-live data-shows=[is_live.then_some("now")] {
                @match &now.place {
                    Some(place) => {
                        span.shown-as { @if now.picture.is_some() { "the last picture that it kept" } @else { "no picture was kept" } }
                        code { (place) }
                    },
                    None => { "This run has no screen, or has not looked at it lately." },
                }
            }
        }
    }
}

/// Draws an outline of the element that the call in progress touches.
fn target(now: &RunNow) -> Markup {
    html! {
        div.target #target data-live {
            @if let Some(target) = &now.target {
                svg viewBox={ "0 0 " (target.width) " " (target.height) } aria-hidden="true" {
                    rect x=(target.bounds.x) y=(target.bounds.y) width=(target.bounds.width)
                        height=(target.bounds.height) rx="4" {}
                }
            }
        }
    }
}

/// Draws who has the browser, with the ways to take it over and to give it back.
fn holding(run: &RunOverview, now: &RunNow, lease: Option<TakeoverLease>, may: bool) -> Markup {
    let button = |what: &str, class: &str, words: &str| {
        html! {
            @if may {
                form method="post" action={ "/runs/" (run.run) "/" (what) } {
                    button class=(class) { (words) }
                }
            }
        }
    };
    let is_driven = matches!(run.state, RunWord::Running | RunWord::Waiting);
    html! {
        div.holding #holding data-live {
            @match (&now.holder, lease) {
                (_, Some(TakeoverLease { address: Some(address), .. })) if is_own_page(&address) => {
                    p { b { "You have the browser." } " The run does nothing until you give it back." }
                    p.choices {
                        a.button href=(address) target="_blank" rel="noopener noreferrer" { "Open it" }
                        (button("give-back", "primary", "Give it back"))
                    }
                },
                (Some(ScreenHolder { by, since_ms }), lease) => {
                    p { b { (by.id) " (" (by.surface) ") has the browser" } " since " (age(*since_ms)) "." }
                    @if lease.is_some() { (button("give-back", "", "Take it back for the run")) }
                },
                (None, Some(lease)) => {
                    p { (lease.by.id) " gets the browser as soon as the run has finished what is in progress." }
                    (button("give-back", "", "Not any more"))
                },
                (None, None) if is_driven && now.place.is_some() => {
                    (button("take", "", "Take the browser over"))
                    p.aside { "The run does nothing meanwhile, and nothing that you see or type is kept." }
                },
                (None, None) => {},
            }
        }
    }
}

/// Addresses of pages for taking over are on this machine.
fn is_own_page(address: &str) -> bool {
    address.starts_with("http://127.0.0.1:")
}

fn present(now: &RunNow) -> Markup {
    let part = |name: &str, drawn: &Option<Markup>| {
        html! {
            @if let Some(drawn) = drawn { section { h2 { (name) } div.row { (drawn) } } }
        }
    };
    html! {
        div #present data-live {
            (part("It does", &now.doing))
            (part("It thinks", &now.thought))
            (part("Its plan", &now.plan))
            @if !now.received.is_empty() {
                section { h2 { "It was told" }
                    @for message in &now.received { div.row { (message) } } }
            }
        }
    }
}
