//! The frame of every page: where one is, what waits, whether it is live, and the emergency stop.

use axum::response::Html;
use gyrus_surfaces::page::visible_html;
use maud::{DOCTYPE, Markup, html};

use super::assets;
use crate::{app::App, error::ErrorBody};
use gyrus_kernel::now_ms;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NavigationPlace {
    Runs,
    Waiting,
    Agents,
    Events,
    Costs,
    Rules,
    Fleet,
    Health,
    Other,
}

impl NavigationPlace {
    pub(super) fn page(self, app: &App, title: &str, main: &Markup) -> Html<String> {
        let questions = app.heads.questions();
        let latched = app.options.latch.check().err();
        let link = |place, path: &str, name: &str, count: Option<usize>| {
            html! {
                a href=(path) aria-current=[(self == place).then_some("page")] {
                    (name)
                    @if let Some(count) = count {
                        span.count data-waiting=(count) hidden[count == 0] {
                            (count) span.said { " waiting" }
                        }
                    }
                }
            }
        };
        let page = html! {
            (head(title))
            body.dash {
                a.skip href="#main" { "Skip to the content" }
                header.bar {
                    a.brand href="/" { b { "gyrus" } }
                    nav.places aria-label="Pages" {
                        (link(NavigationPlace::Runs, "/", "Runs", None))
                        (link(NavigationPlace::Waiting, "/waiting", "Waiting", Some(questions)))
                        (link(NavigationPlace::Agents, "/agents", "Agents", None))
                        (link(NavigationPlace::Events, "/events", "Events", None))
                        (link(NavigationPlace::Costs, "/costs", "Costs", None))
                        (link(NavigationPlace::Rules, "/rules", "Rules", None))
                        @if app.program.fleet().is_some() { (link(NavigationPlace::Fleet, "/fleet", "Fleet", None)) }
                        (link(NavigationPlace::Health, "/health", "Health", None))
                    }
                    form.search role="search" aria-label="Everything" method="get" action="/search" {
                        input type="search" name="text" placeholder="Search" required
                            aria-label="Search runs, agents and topics" autocomplete="off";
                    }
                    p.connection role="status" { "as of " (clock(now_ms())) }
                    button.notify type="button" hidden { "Notify me" }
                    (emergency(latched.is_some()))
                }
                @if let Some(latched) = &latched {
                    div.latched role="alert" {
                        p { b { "All runs are stopped, and none may begin." } " " (latched) }
                        form method="post" action="/rearm" { button { "Lift the emergency stop" } }
                    }
                }
                main #main tabindex="-1" { (main) }
            }
        };
        whole(&page)
    }
}

fn emergency(is_stopped: bool) -> Markup {
    html! {
        @if !is_stopped {
            details.emergency {
                summary { "Emergency stop" }
                form method="post" action="/stop" {
                    label { "Why (optional)" input name="reason" maxlength="500" autocomplete="off"; }
                    button.danger { "End every run now" }
                    p.aside { "No run begins until a person lifts it." }
                }
            }
        }
    }
}

fn head(title: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en";
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " · gyrus" }
            link rel="icon" href=(assets::path("icon.svg"));
            link rel="stylesheet" href=(assets::path("page.css"));
            link rel="stylesheet" href=(assets::path("dashboard.css"));
            link rel="stylesheet" href=(assets::path("live.css"));
            link rel="stylesheet" href=(assets::path("run.css"));
            link rel="stylesheet" href=(assets::path("places.css"));
            script type="module" src=(assets::path("main.js")) {}
        }
    }
}

fn whole(page: &Markup) -> Html<String> {
    Html(visible_html(page).0)
}

/// Returns the page for a browser without a cookie. Its script sends the code of the printed
/// address, which no server sees by itself: it stands behind the `#`.
pub(super) fn letting_in() -> Html<String> {
    whole(&html! {
        (head("Not let in"))
        body.dash {
            main #main.letting-in data-enter {
                p.brand { b { "gyrus" } }
                h1 { "This browser is not let in yet" }
                p #said role="status" {
                    "Open the address that the server printed, with all that stands behind the "
                    code { "#" } ". For another address, type in a terminal:"
                }
                pre { code { "gyrus serve open" } }
                p.aside { "An address lets in one browser, once, within ten minutes." }
                noscript { p.aside { "Letting in needs JavaScript; the pages themselves do not." } }
            }
        }
    })
}

pub(super) fn error(heading: &str, error: &ErrorBody) -> Markup {
    html! {
        h1 { (heading) }
        p.failed role="alert" { (error.error) }
        @if let Some(hint) = &error.hint { p { (hint) } }
        p { a href="/" { "All runs" } }
    }
}

pub(super) fn clock(at_ms: i64) -> String {
    let text = gyrus_surfaces::page::date_and_time(at_ms);
    text.split_once(' ')
        .map_or(text.clone(), |(_, time)| time.to_owned())
}

/// Returns how long ago a time was, with the time itself behind it.
pub(super) fn age(at_ms: i64) -> Markup {
    let ago = u64::try_from(now_ms().saturating_sub(at_ms)).unwrap_or(0) / 1_000;
    let words = match ago {
        ..5 => "now".to_owned(),
        5..60 => format!("{ago} s ago"),
        60..3_600 => format!("{} min ago", ago / 60),
        3_600..172_800 => format!("{} h ago", ago / 3_600),
        _ => format!("{} days ago", ago / 86_400),
    };
    html! {
        time datetime=(gyrus_text::utc(at_ms))
            title=(gyrus_surfaces::page::date_and_time(at_ms)) { (words) }
    }
}
