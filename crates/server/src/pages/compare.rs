//! Two or three runs side by side: totals, the first difference, their calls aligned, and the files
//! that they changed.

use std::{collections::BTreeMap, sync::Arc};

use axum::{extract::State, response::Html};
use gyrus_contract::{Microdollars, RunId};
use gyrus_kernel::find_run;
use gyrus_surfaces::{
    compare::{AlignedCalls, CallsWithFork as Calls, ComparedCall, align},
    page::{duration, step_address},
};
use gyrus_text::{counted, grouped};
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    frame::NavigationPlace,
    run::changes,
    runs::{outcome, state},
};
use crate::{
    api::runs::{blocking, overview},
    app::App,
    error::ApiError,
    extract::ApiQuery,
    overview::RunOverview,
};

/// Maximum number of runs in a comparison.
const MAX_RUNS: usize = 3;

/// Number of equal calls beside a difference that are not folded.
const BESIDE: usize = 1;

/// Maximum number of rows, and of files, on a page.
const MAX_ROWS: usize = 2_000;
const MAX_FILES: usize = 300;

const NAMES: [&str; MAX_RUNS] = ["A", "B", "C"];

/// Ids of the runs to compare, separated by commas.
#[derive(Debug, Deserialize)]
pub(super) struct ComparedRuns {
    #[serde(default)]
    runs: String,
}

struct Column {
    run: RunId,
    overview: Arc<RunOverview>,
    calls: Calls,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    ApiQuery(ComparedRuns { runs }): ApiQuery<ComparedRuns>,
) -> Result<Html<String>, ApiError> {
    blocking(move || {
        let given: Vec<&str> = runs
            .split([',', ' '])
            .filter(|one| !one.is_empty())
            .collect();
        if given.len() < 2 {
            return Ok(NavigationPlace::Other.page(&app, "Compare", &choose(&given)));
        }
        if given.len() > MAX_RUNS {
            let error = format!("at most {MAX_RUNS} runs stand side by side");
            return Err(ApiError::bad_request(error));
        }
        let columns: Vec<Column> = given
            .iter()
            .map(|name| column(&app, name))
            .collect::<Result<_, ApiError>>()?;
        let calls: Vec<Calls> = Vec::new();
        let (columns, calls) = columns
            .into_iter()
            .fold((Vec::new(), calls), |mut all, one| {
                all.0.push((one.run, one.overview));
                all.1.push(one.calls);
                all
            });
        let rows = align(&calls);
        let main = html! {
            div.heading { h1 { "Compare" } }
            div #compared data-live data-run=(about(&columns)) {
                (totals(&columns, &calls))
                (first_difference(&rows, &calls))
                (aligned(&rows, &calls))
            }
            (files(&app, &columns))
        };
        Ok(NavigationPlace::Other.page(&app, "Compare", &main))
    })
    .await
}

/// Draws the names of the runs, for the script that follows them.
fn about(columns: &Columns) -> String {
    let runs: Vec<String> = columns.iter().map(|(run, _)| run.to_string()).collect();
    runs.join(",")
}

fn column(app: &App, name: &str) -> Result<Column, ApiError> {
    let run = match name.parse() {
        Ok(run) => run,
        Err(_) => find_run(&app.store, name)?,
    };
    Ok(Column {
        run,
        overview: overview(app, run)?,
        calls: Calls::read(&app.store, run)?,
    })
}

fn choose(given: &[&str]) -> Markup {
    html! {
        div.heading { h1 { "Compare" } }
        form.moment method="get" action="/compare" {
            label { "Two or three runs, with commas between them"
                input name="runs" value=(given.join(",")) required autocomplete="off"; }
            button { "Compare" }
        }
    }
}

type Columns = [(RunId, Arc<RunOverview>)];

/// A line of the totals: its name, the value of a run, and the value in words.
type Total = (
    &'static str,
    fn(&RunOverview, &Calls) -> u64,
    fn(u64) -> String,
);

fn totals(columns: &Columns, calls: &[Calls]) -> Markup {
    let lines: [Total; 5] = [
        (
            "Steps",
            |run, calls| run.steps + u64::from(calls.shared_steps),
            grouped_of,
        ),
        (
            "Calls",
            |_, calls| {
                calls
                    .calls
                    .iter()
                    .filter(|call| !call.tool.is_empty())
                    .count() as u64
            },
            grouped_of,
        ),
        ("Tokens", |run, _| run.tokens, grouped_of),
        (
            "Cost",
            |run, _| run.cost_microdollars,
            |cost| Microdollars(cost).to_string(),
        ),
        (
            "Time",
            |run, _| u64::try_from(run.last_ms - run.started_ms).unwrap_or(0),
            duration,
        ),
    ];
    html! {
        div.scrolls tabindex="0" role="group" aria-label="Totals" { table.totals {
            thead { tr {
                td {}
                @for ((run, overview), name) in columns.iter().zip(NAMES) {
                    th scope="col" { span.letter { (name) } " " a href={ "/runs/" (run) } { (overview.name) } }
                }
            } }
            tbody {
                tr { th scope="row" { "Goal" } @for (_, run) in columns { td.goal-cell { (run.goal) } } }
                tr { th scope="row" { "State" } @for (_, run) in columns { td { (state(run)) } } }
                tr { th scope="row" { "Outcome" } @for (_, run) in columns { td { (outcome(run)) @if let Some(ending) = &run.ending { p.aside { (ending) } } } } }
                tr { th scope="row" { "Model" } @for (_, run) in columns { td { (run.model) } } }
                tr { th scope="row" { "Folder" } @for (_, run) in columns { td { code { (run.workdir.display()) } } } }
                @for (name, value, words) in lines {
                    @let first = value(&columns[0].1, &calls[0]);
                    tr {
                        th scope="row" { (name) }
                        @for ((number, (_, run)), calls) in columns.iter().enumerate().zip(calls) {
                            @let own = value(run, calls);
                            td.n { (words(own)) @if number > 0 { (delta(first, own, words)) } }
                        }
                    }
                }
            }
        } }
        @if calls.iter().any(|calls| calls.shared_steps > 0) {
            p.aside { "Tokens, cost and time of a fork are its own: the steps that it shares were paid for by the run that it was forked from." }
        }
        @if calls.iter().any(|calls| calls.is_cut) {
            p.aside { "A run has more calls than are compared here." }
        }
    }
}

fn grouped_of(number: u64) -> String {
    grouped(number)
}

fn delta(first: u64, own: u64, words: fn(u64) -> String) -> Markup {
    html! {
        @if own > first { span.delta { " +" (words(own - first)) } }
        @else if own < first { span.delta { " −" (words(first - own)) } }
        @else { span.delta { " =" } }
    }
}

/// Whether all runs made the same call, or came to the same end.
fn is_equal(row: &AlignedCalls, calls: &[Calls]) -> bool {
    let made = row.iter().zip(calls);
    let made: Option<Vec<&ComparedCall>> = made
        .map(|(place, calls)| calls.calls.get((*place)?))
        .collect();
    made.is_some_and(|made| {
        let is_same = |one: &ComparedCall| !one.tool.is_empty() || one.gist == made[0].gist;
        made.iter().all(|one| is_same(one))
    })
}

fn first_difference(rows: &[AlignedCalls], calls: &[Calls]) -> Markup {
    let shared = calls
        .iter()
        .map(|calls| calls.shared_steps)
        .max()
        .unwrap_or(0);
    let first = rows.iter().position(|row| !is_equal(row, calls));
    html! {
        p.first-difference {
            @if shared > 0 { b { (counted(shared, "step")) " shared by the fork. " } }
            @match first {
                None => { "Every call is the same in all of them." },
                Some(at) => {
                    @match at {
                        0 if shared > 0 => "The calls after them differ. ",
                        0 => "They differ from the first call on. ",
                        1 => "The first call is the same. ",
                        at => { "The first " (counted(at, "call")) " are the same. " },
                    }
                    a href="#difference" { "The first difference" }
                },
            }
        }
    }
}

/// Consecutive rows that are all equal, or all different.
struct RowGroup<'a> {
    is_equal: bool,
    rows: &'a [AlignedCalls],
}

fn groups<'a>(rows: &'a [AlignedCalls], calls: &[Calls]) -> Vec<RowGroup<'a>> {
    let chunks = rows.chunk_by(|one, next| is_equal(one, calls) == is_equal(next, calls));
    chunks
        .map(|rows| RowGroup {
            is_equal: is_equal(&rows[0], calls),
            rows,
        })
        .collect()
}

fn aligned(rows: &[AlignedCalls], calls: &[Calls]) -> Markup {
    let groups = groups(&rows[..rows.len().min(MAX_ROWS)], calls);
    let first = groups.iter().position(|group| !group.is_equal);
    html! {
        div class={ "aligned of-" (calls.len()) } {
            div.names { @for name in NAMES.iter().take(calls.len()) { b { (name) } } }
            @for (number, group) in groups.iter().enumerate() {
                @if group.is_equal { (folded(group.rows, calls, number)) } @else {
                    div id=[(first == Some(number)).then_some("difference")] {
                        @for row in group.rows { (pair(row, calls, "different")) }
                    }
                }
            }
            @if rows.len() > MAX_ROWS { p.aside { (counted(rows.len() - MAX_ROWS, "more row")) " not shown" } }
        }
    }
}

/// Draws the equal rows of a group: those beside a difference show, the others are folded.
fn folded(rows: &[AlignedCalls], calls: &[Calls], group: usize) -> Markup {
    let begin = if group == 0 {
        0
    } else {
        BESIDE.min(rows.len())
    };
    let end = rows.len().saturating_sub(BESIDE).max(begin);
    let hidden = &rows[begin..end];
    html! {
        @for row in &rows[..begin] { (pair(row, calls, "same")) }
        @if hidden.len() > 1 {
            details.equal {
                summary { (counted(hidden.len(), "equal call")) }
                @for row in hidden { (pair(row, calls, "same")) }
            }
        } @else {
            @for row in hidden { (pair(row, calls, "same")) }
        }
        @for row in &rows[end..] { (pair(row, calls, "same")) }
    }
}

fn pair(row: &AlignedCalls, calls: &[Calls], class: &str) -> Markup {
    html! {
        div class={ "pair " (class) } {
            @for ((place, calls), name) in row.iter().zip(calls).zip(NAMES) {
                @match place.and_then(|place| calls.calls.get(place)) {
                    Some(call) => { (cell(call)) },
                    None => { div.cell.never { (name) " never did this" } },
                }
            }
        }
    }
}

fn cell(call: &ComparedCall) -> Markup {
    let words = if call.tool.is_empty() {
        "the end"
    } else {
        &call.tool
    };
    html! {
        div.cell {
            p.call-line {
                a.tool href=(step_address(call.run, call.seq)) { (gyrus_text::shorten(words, 60)) }
                @if call.step > 0 { span.effect { "step " (call.step) } }
                @if !call.decision.is_empty() && call.decision != "allowed" { span.flag.ask { (call.decision) } }
                @if call.failed { span.flag.bad { "error" } }
                @if call.took_ms > 0 { span.took { (duration(call.took_ms)) } }
            }
            p.gist-cell { (call.gist) }
            @if !call.result.is_empty() { p.result-cell { "← " (call.result) } }
        }
    }
}

/// Draws the paths that the runs changed, with the change by each run.
fn files(app: &App, columns: &Columns) -> Markup {
    let mut paths: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    let mut unknown = Vec::new();
    for (number, (run, overview)) in columns.iter().enumerate() {
        match changes::planned(app, *run, 0) {
            Ok(found) => {
                for change in found.changes() {
                    let done = changes::done(&change);
                    let line = paths.entry(change.path);
                    line.or_insert_with(|| vec![""; columns.len()])[number] = done;
                }
            }
            Err(why) => unknown.push(format!("{}: {why}", overview.name)),
        }
    }
    html! {
        h2 { "Changed files" }
        @for why in &unknown { p.aside { "It is not known what it changed: " (why) } }
        @if paths.is_empty() { p.aside { "No change of these runs is still in place." } } @else {
            div.scrolls tabindex="0" role="group" aria-label="Changed files" { table.totals {
                thead { tr { td {} @for name in NAMES.iter().take(columns.len()) { th scope="col" { (name) } } } }
                tbody { @for (path, done) in paths.iter().take(MAX_FILES) { tr {
                    th scope="row" { code { (path) } }
                    @for word in done { td { @if word.is_empty() { span.never { "not touched" } } @else { (word) } } }
                } } }
            } }
        }
    }
}
