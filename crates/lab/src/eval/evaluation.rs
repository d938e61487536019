//! An evaluation as one page: its figures, a line an attempt with a link to the page of its run,
//! and of each failure the reason and what was on its screen last.

use gyrus_contract::{Image, Microdollars};
use gyrus_journal::Store;
use gyrus_kernel::log_name;
use gyrus_surfaces::page::{self, PagePictures};
use gyrus_text::counted;
use maud::{Markup, html};

use super::{AttemptOutcome, EvaluationReport, film_name};

/// Figures of an attempt, in the order of their columns.
const COUNTS: [&str; 7] = [
    "steps", "requests", "prompt", "output", "asked", "cost", "time",
];

const STYLE: &str = include_str!("evaluation.css");

/// Returns the page about an evaluation; `frames` are the last pictures of the attempts.
pub(super) fn page(store: &Store, report: &EvaluationReport, frames: &[Option<Image>]) -> String {
    let suites = report.suites.join(", ");
    let has_failures = report.attempts.iter().any(is_failure);
    let body = html! {
        (header(report, &suites))
        (tiles(report))
        main {
            @if !report.settings.is_empty() {
                h2 { "Options" }
                (settings(report))
            }
            h2 { "Attempts" }
            (table(report))
            @if has_failures {
                h2 { "What failed" }
                (failures(store, report, frames))
            }
        }
    };
    page::whole(&format!("{suites} · evaluation"), STYLE, &body)
}

fn header(report: &EvaluationReport, suites: &str) -> Markup {
    let totals = &report.totals;
    let (low, high) = totals.interval;
    let rate = format!(
        "{:.1} %, between {:.1} and {:.1} % with 95 % certainty",
        totals.rate * 100.0,
        low * 100.0,
        high * 100.0
    );
    let outcome = if totals.passed + totals.skipped == report.planned {
        "good"
    } else {
        "bad"
    };
    let missing = report.planned.saturating_sub(report.attempts.len());
    html! {
        header {
            p.brand {
                b { "gyrus" }
                span { "evaluation of " (suites) " by " (report.model) }
                span { (report.began) }
            }
            h1 { (totals.passed) " of " (totals.attempts) " passed" }
            div class={ "outcome " (outcome) } {
                p.verdict {
                    span.badge { "at least " (report.required) }
                    span { (rate) }
                    @if totals.skipped > 0 { span { (totals.skipped) " skipped" } }
                    @if missing > 0 { span { (counted(missing, "attempt")) " not made" } }
                }
            }
        }
    }
}

fn tiles(report: &EvaluationReport) -> Markup {
    let totals = &report.totals;
    let tiles = [
        ("outcomes", totals.outcomes_in_words()),
        ("false claims", totals.false_claims.to_string()),
        ("requests", totals.requests.to_string()),
        ("steps, median", totals.median_steps.to_string()),
        ("time, median", gyrus_text::span(totals.median_wall_ms)),
        (
            "fresh tokens a prompt",
            format!("{:.0}", totals.fresh_a_prompt),
        ),
        ("cost", totals.cost_in_words()),
        ("changed", totals.changed.to_string()),
        (
            "no effect, cannot tell",
            format!("{}, {}", totals.no_effect, totals.cannot_tell),
        ),
        ("refused", totals.refused.to_string()),
        (
            "asked, denied",
            format!("{}, {}", totals.questions, totals.denied),
        ),
    ];
    html! {
        aside {
            dl.tiles { @for (name, value) in tiles { div { dd { (value) } dt { (name) } } } }
        }
    }
}

/// The figures for each combination of the options that vary.
fn settings(report: &EvaluationReport) -> Markup {
    let counts = [
        "passed",
        "%",
        "false claims",
        "requests",
        "tokens",
        "cost",
        "time, median",
    ];
    html! {
        table.attempts {
            thead { tr { th { "options" } @for name in counts { th.count { (name) } } } }
            tbody {
                @for (name, totals) in &report.settings {
                    tr {
                        td { (name) }
                        td.count { (totals.passed) " of " (totals.attempts) }
                        td.count { (format!("{:.1}", totals.rate * 100.0)) }
                        td.count { (totals.false_claims) }
                        td.count { (totals.requests) }
                        td.count { (totals.tokens()) }
                        td.count { (totals.cost_in_words()) }
                        td.count { (gyrus_text::span(totals.median_wall_ms)) }
                    }
                }
            }
        }
    }
}

fn table(report: &EvaluationReport) -> Markup {
    html! {
        table.attempts {
            thead {
                tr {
                    @for name in ["task", "outcome", "claim"] { th { (name) } }
                    @for name in COUNTS { th.count { (name) } }
                    th { "run" }
                }
            }
            tbody { @for (number, one) in (1..).zip(&report.attempts) { (row(number, one)) } }
        }
    }
}

fn row(number: u32, attempt: &AttemptOutcome) -> Markup {
    let tokens = attempt.tokens;
    let cost = match attempt.cost {
        0 => String::new(),
        cost => Microdollars(cost).to_string(),
    };
    let counts = [
        attempt.steps.to_string(),
        tokens.prompts.to_string(),
        (tokens.fresh + tokens.cached).to_string(),
        tokens.output.to_string(),
        attempt.questions.asked.to_string(),
        cost,
        gyrus_text::span(attempt.wall_ms),
    ];
    let class = match (attempt.passed, attempt.skipped) {
        (true, _) => "passed",
        (false, true) => "skipped",
        (false, false) => "failed",
    };
    html! {
        tr {
            td { (named(attempt)) }
            td class=(class) {
                @if attempt.passed || attempt.skipped {
                    (attempt.outcome())
                } @else if attempt.strength.is_some() {
                    "unsolved: " (attempt.outcome())
                } @else {
                    "failed"
                }
            }
            td { (attempt.truth()) @if attempt.claims_without_work() { " without work" } }
            @for count in counts { td.count { (count) } }
            td {
                @if let Some(run) = attempt.run {
                    a href=(film_name(number)) { (run.short()) }
                } @else {
                    "none"
                }
            }
        }
    }
}

fn is_failure(attempt: &AttemptOutcome) -> bool {
    !attempt.passed && !attempt.skipped
}

fn named(attempt: &AttemptOutcome) -> String {
    match attempt.repeat {
        1 => attempt.name(),
        repeat => format!("{}, attempt {repeat}", attempt.name()),
    }
}

fn failures(store: &Store, report: &EvaluationReport, frames: &[Option<Image>]) -> Markup {
    let mut pictures = PagePictures::default();
    let failed = (1..)
        .zip(report.attempts.iter().zip(frames))
        .filter(|(_, (attempt, _))| is_failure(attempt));
    let failed = failed.map(|(number, (attempt, frame))| {
        let last = frame.as_ref().zip(attempt.run).map(|(frame, run)| {
            match store.reader(&log_name(run)) {
                Ok(reader) => pictures.figure(frame, &reader),
                Err(error) => html! { p.aside { "the last picture cannot be read: " (error) } },
            }
        });
        html! {
            div.failure {
                p {
                    b { (named(attempt)) }
                    @if attempt.run.is_some() { " " a href=(film_name(number)) { "its run" } }
                }
                p.prose { (attempt.why.as_deref().unwrap_or("the reason is not known")) }
                @if let Some(last) = last { (last) }
            }
        }
    });
    html! { @for one in failed { (one) } }
}
