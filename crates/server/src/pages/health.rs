//! Whether the server and its machine are well, and what to do if not.

use std::sync::Arc;

use axum::{extract::State, response::Html};
use gyrus_runtime::DurableStatus;
use gyrus_surfaces::page::whole_text;
use gyrus_text::{counted, grouped};
use maud::{Markup, html};

use super::{
    frame::{NavigationPlace, age},
    runs::word_of,
};
use crate::{
    api::runs::blocking,
    app::{App, CommandOutput},
    error::ApiError,
    health::ServerStatus,
    surroundings::HookView,
};

const PROCESSES: usize = 50;

/// Maximum number of named journals that are damaged.
const DAMAGED: usize = 20;

/// Beginning of the names under which hooks hear events.
const HOOK: &str = "hook.";

pub(super) async fn show(State(app): State<Arc<App>>) -> Result<Html<String>, ApiError> {
    page(app, None).await
}

/// Runs `gyrus doctor`, and shows its findings.
pub(super) async fn doctor(State(app): State<Arc<App>>) -> Result<Html<String>, ApiError> {
    let output = app.command(vec!["doctor".to_owned()]).await?;
    page(app, Some(("gyrus doctor", output))).await
}

/// Carries out `gyrus runs verify`, which reads every journal.
pub(super) async fn verify(State(app): State<Arc<App>>) -> Result<Html<String>, ApiError> {
    let arguments = ["runs", "verify"].map(str::to_owned);
    let output = app.command(arguments.to_vec()).await?;
    page(app, Some(("gyrus runs verify", output))).await
}

async fn page(
    app: Arc<App>,
    told: Option<(&'static str, CommandOutput)>,
) -> Result<Html<String>, ApiError> {
    blocking(move || {
        let status = ServerStatus::now(&app)?;
        let set = app.program.configured(None);
        let hooks = set.map(|set| set.hooks).unwrap_or_default();
        let damaged: Vec<_> = app.costs.damaged();
        let main = html! {
            div.heading { h1 { "Health" } p.aside { "gyrus " (status.version) } }
            section #figures data-live {
                (figures(&status))
                @if let Some(want) = &status.want {
                    div.problem role="group" aria-label="Accepted work waits" {
                        p { b { "Accepted work waits, and is tried again until it can go on." } }
                        p { (gyrus_text::clip(want, 300)) }
                    }
                }
            }
            (checks(told.as_ref()))
            @if !damaged.is_empty() {
                div.problem role="group" aria-label="Damaged journals" {
                    p { b { (counted(damaged.len(), "journal")) } " cannot be read to the end. "
                        code { "gyrus runs verify" } " says what is wrong." }
                    ul { @for run in damaged.iter().take(DAMAGED) { li { a href={ "/runs/" (run) } { (run.short()) } } } }
                }
            }
            section #health data-live {
                (processes(&status))
                (failures(&status))
                (hooked(&app, &hooks))
                (journals(&status))
            }
        };
        Ok(NavigationPlace::Health.page(&app, "Health", &main))
    })
    .await
}

fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", grouped(bytes / 1_000_000), bytes / 100_000 % 10)
}

fn figures(status: &ServerStatus) -> Markup {
    let queue = &status.queue;
    let state = &status.state;
    let more = if state.more { "more than " } else { "" };
    let tiles = [
        ("memory", megabytes(status.memory_bytes)),
        ("state folder", format!("{more}{}", megabytes(state.bytes))),
        (
            "runs",
            grouped(state.journals.get("runs").copied().unwrap_or(0) as u64),
        ),
        ("at work", format!("{} of {}", queue.running, queue.at_once)),
        ("queued", grouped(queue.queued as u64)),
        ("browsers", grouped(status.browsers as u64)),
    ];
    html! {
        dl.tiles.costs { @for (name, value) in tiles { div { dt { (name) } dd { (value) } } } }
        dl.about {
            div { dt { "Process" } dd { (status.pid) } }
            div { dt { "Started" } dd { (age(status.started_ms)) } }
            div { dt { "State folder" } dd { code { (state.path) } } }
            div { dt { "At most of one agent" } dd { (queue.per_agent) } }
        }
    }
}

fn checks(told: Option<&(&'static str, CommandOutput)>) -> Markup {
    html! {
        div.controls {
            form method="post" action="/health/doctor" {
                button title="Tries the sandbox, the browser and the model; takes a few seconds" { "Run gyrus doctor" }
            }
            form method="post" action="/health/verify" {
                button title="Reads every journal" { "Verify all journals" }
            }
        }
        @if let Some((command, output)) = told {
            section.told role="status" aria-label=(command) {
                p.label { code { (command) } @if output.code != Some(0) { " " b.bad { "found something wrong" } } }
                @if *command == "gyrus doctor" { (advice(&output.stdout)) }
                @else { div.untrusted tabindex="0" role="group" aria-label="Output" { (whole_text(&output.stdout)) } }
                @if !output.stderr.is_empty() { div.untrusted tabindex="0" role="group" aria-label="Errors" { (whole_text(&output.stderr)) } }
            }
        }
    }
}

/// Returns the findings of `gyrus doctor`: a mark, a name, and words that may go over several lines.
fn advice(text: &str) -> Markup {
    let mut findings: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        let mark = ["✓", "!", "✗"]
            .into_iter()
            .find(|mark| line.starts_with(mark));
        match (mark, findings.last_mut()) {
            (Some(mark), _) => {
                let rest = line[mark.len()..].trim_start();
                let (name, words) = rest.split_once("  ").unwrap_or((rest, ""));
                findings.push((mark, name, vec![words.trim_start()]));
            }
            (None, Some((_, _, lines))) => lines.push(line.trim()),
            (None, None) => {}
        }
    }
    html! {
        dl.findings { @for (mark, name, lines) in &findings {
            @let class = match *mark { "✓" => "fine", "!" => "gap", _ => "wrong" };
            div class=(class) {
                dt { span.shape aria-hidden="true" { (mark) } (name) span.said { ", " (class) } }
                dd { @for line in lines { p { (line) } } }
            }
        } }
    }
}

fn processes(status: &ServerStatus) -> Markup {
    html! {
        h2 { "Processes of runs" }
        @if status.processes.is_empty() { p.aside { "No run is at work." } }
        @else {
            table.grid.tree { thead { tr {
                th scope="col" { "Run" } th scope="col" { "State" }
                th.number scope="col" { "Process" } th.number scope="col" { "Memory" }
            } }
            tbody { @for process in status.processes.iter().take(PROCESSES) { tr {
                td { a href={ "/runs/" (process.run) } { (process.run.short()) } }
                td { (word_of(process.state).1) }
                td.number { (process.pid) }
                td.number { (megabytes(process.memory_bytes)) }
            } } } }
            @if status.processes.len() > PROCESSES {
                p.aside { (counted(status.processes.len() - PROCESSES, "further process")) }
            }
        }
    }
}

fn failures(status: &ServerStatus) -> Markup {
    html! {
        h2 { "Last errors" }
        @if status.failures.is_empty() { p.aside { "No command that is remembered failed." } }
        @else {
            div.scrolls tabindex="0" role="group" aria-label="Last errors" { table.grid {
                thead { tr { th scope="col" { "When" } th scope="col" { "Run" } th scope="col" { "Agent" } th scope="col" { "End" } } }
                tbody { @for one in &status.failures { tr {
                    td { (age(one.at_ms)) }
                    td { a href={ "/runs/" (one.run) } { (one.run.short()) } }
                    td { (one.agent) }
                    td.name { (gyrus_text::clip(&one.summary, 300))
                        @match one.code { Some(code) => { " (exit code " (code) ")" }, None => " (ended by a signal)" } }
                } } }
            } }
        }
    }
}

fn hooked(app: &App, hooks: &[HookView]) -> Markup {
    let bus = app.agents.bus();
    let last = bus.last_position().map_or(0, |last| last.0);
    let known: Vec<DurableStatus> = bus.durable_subscribers();
    html! {
        h2 { "Hooks" }
        @if hooks.is_empty() { p.aside { "None is configured." } }
        @else {
            div.scrolls tabindex="0" role="group" aria-label="Hooks" { table.grid {
                thead { tr {
                    th scope="col" { "Hook" } th scope="col" { "Told of" } th scope="col" { "Way" }
                    th.number scope="col" { "Told up to" } th scope="col" { "Last failure" }
                } }
                tbody { @for hook in hooks {
                    @let status = known.iter().find(|one| one.name.strip_prefix(HOOK) == Some(&hook.name));
                    tr {
                        td { b { (hook.name) } }
                        td.name { (hook.events.join(", ")) }
                        td { (hook.tells) }
                        td.number { @match status {
                            Some(status) => { (grouped(status.acknowledged.0)) " of " (grouped(last)) },
                            None => "not yet",
                        } }
                        td.name { @match &hook.last_failure {
                            Some(failure) => { (age(failure.at_ms)) ": " span.bad { (gyrus_text::clip(&failure.why, 300)) } },
                            None => "none since the start",
                        } }
                    }
                } }
            } }
        }
    }
}

fn journals(status: &ServerStatus) -> Markup {
    html! {
        h2 { "Journals" }
        table.grid.tree {
            thead { tr { th scope="col" { "Kind" } th.number scope="col" { "Logs" } } }
            tbody { @for (kind, count) in &status.state.journals {
                tr { td { (kind) } td.number { (grouped(*count as u64)) } }
            } }
        }
        p.aside { (counted(status.state.files, "file")) " in the state folder. " code { "gyrus runs prune" } " removes old runs." }
    }
}
