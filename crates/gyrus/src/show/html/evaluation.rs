//! An evaluation as one page: its figures, a line an attempt with a link to the film of its run,
//! and of each failure why it failed and what was on its screen last.

use std::io::Write;

use gyrus_contract::{Image, Microdollars, Strength};
use gyrus_journal::Store;
use gyrus_kernel::log_name;
use gyrus_lab::eval::{Attempt, Report};
use gyrus_text::counted;

use super::{
    OPENING, STYLE, document_head,
    markup::{Element, Markup},
    picture::{Pictures, Shown},
};
use crate::failure::Failure;

const MORE_STYLE: &str = include_str!("evaluation.css");

/// Writes the page; `frames` are the last pictures of the attempts.
///
/// # Errors
/// When `out` cannot be written.
pub(crate) fn write(
    store: &Store,
    report: &Report,
    frames: &[Option<Image>],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let suites = report.suites.join(", ");
    let head = document_head(&format!("{suites} · evaluation"), &[STYLE, MORE_STYLE]);
    let mut html = Markup::ours(OPENING);
    html.push(Element::new("html").set("lang", "en").begin());
    html.push(head);
    html.push(Element::new("body").begin());
    html.push(header(report, &suites));
    html.push(tiles(report));
    html.push(Element::new("main").begin());
    html.push(Element::new("h2").text("Attempts"));
    html.push(table(report));
    let failures = failures(store, report, frames);
    if !failures.is_empty() {
        html.push(Element::new("h2").text("What failed"));
        html.push(failures);
    }
    for end in ["main", "body", "html"] {
        html.push(Element::end(end));
    }
    Ok(out.write_all(html.as_str().as_bytes())?)
}

fn header(report: &Report, suites: &str) -> Element {
    let totals = &report.totals;
    let (low, high) = totals.interval;
    let title = format!("{} of {} passed", totals.passed, totals.attempts);
    let rate = format!(
        "{:.1} %, between {:.1} and {:.1} % with 95 % certainty",
        totals.rate * 100.0,
        low * 100.0,
        high * 100.0
    );
    let outcome = match totals.passed == report.planned {
        true => "good",
        false => "bad",
    };
    let mut verdict = Element::new("p")
        .class("verdict")
        .with(Element::new("span").class("badge").text(&report.required))
        .with(Element::new("span").text(&rate));
    if report.attempts.len() < report.planned {
        let missing = report.planned - report.attempts.len();
        let words = format!("{} not made", counted(missing, "attempt"));
        verdict = verdict.with(Element::new("span").text(&words));
    }
    let brand = Element::new("p")
        .class("brand")
        .with(Element::new("b").text("gyrus"))
        .with(Element::new("span").text(&format!("evaluation of {suites} by {}", report.model)))
        .with(Element::new("span").text(&report.began));
    Element::new("header")
        .with(brand)
        .with(Element::new("h1").text(&title))
        .with(
            Element::new("div")
                .class("outcome")
                .class(outcome)
                .with(verdict),
        )
}

fn tiles(report: &Report) -> Element {
    let totals = &report.totals;
    let tile = |what: &str, value: String| {
        Element::new("div")
            .with(Element::new("dd").text(&value))
            .with(Element::new("dt").text(what))
            .into()
    };
    let tiles: Markup = [
        tile("steps, median", totals.median_steps.to_string()),
        tile("time, median", gyrus_text::span(totals.median_wall_ms)),
        tile(
            "fresh tokens a prompt",
            format!("{:.0}", totals.fresh_a_prompt),
        ),
        tile("cost", Microdollars(totals.cost).to_string()),
        tile("changed", totals.changed.to_string()),
        tile(
            "no effect, cannot tell",
            format!("{}, {}", totals.no_effect, totals.cannot_tell),
        ),
        tile("refused", totals.refused.to_string()),
        tile(
            "asked, denied",
            format!("{}, {}", totals.questions, totals.denied),
        ),
    ]
    .into_iter()
    .collect();
    Element::new("aside").with(Element::new("dl").class("tiles").with(tiles))
}

fn table(report: &Report) -> Element {
    let heads: Markup = ["task", "", "steps", "tokens", "asked", "time", "run"]
        .into_iter()
        .map(|name| {
            let head = Element::new("th").text(name);
            match name {
                "steps" | "tokens" | "asked" | "time" => head.class("count").into(),
                _ => Markup::from(head),
            }
        })
        .collect();
    let rows: Markup = (1..)
        .zip(&report.attempts)
        .map(|(number, one)| row(number, one))
        .collect();
    Element::new("table")
        .class("attempts")
        .with(Element::new("thead").with(Element::new("tr").with(heads)))
        .with(Element::new("tbody").with(rows))
}

fn row(number: u32, attempt: &Attempt) -> Markup {
    let count = |value: u64| Element::new("td").class("count").text(&value.to_string());
    let how = match (attempt.passed, attempt.strength) {
        (true, strength) => Element::new("td")
            .class("passed")
            .text(strength.map_or("passed", Strength::word)),
        (false, _) => Element::new("td").class("failed").text("failed"),
    };
    let run = match attempt.run {
        Some(run) => Element::new("a").film(number).text(&run.short()).into(),
        None => Markup::text("none"),
    };
    let tokens = attempt.tokens;
    Element::new("tr")
        .with(Element::new("td").text(&named(attempt)))
        .with(how)
        .with(count(attempt.steps))
        .with(count(tokens.fresh + tokens.cached + tokens.output))
        .with(count(attempt.questions.asked))
        .with(
            Element::new("td")
                .class("count")
                .text(&gyrus_text::span(attempt.wall_ms)),
        )
        .with(Element::new("td").with(run))
        .into()
}

fn named(attempt: &Attempt) -> String {
    match attempt.repeat {
        1 => attempt.task.clone(),
        repeat => format!("{}, attempt {repeat}", attempt.task),
    }
}

fn failures(store: &Store, report: &Report, frames: &[Option<Image>]) -> Markup {
    let mut pictures = Pictures::default();
    let failed = (1..)
        .zip(report.attempts.iter().zip(frames))
        .filter(|(_, (attempt, _))| !attempt.passed);
    let mut html = Markup::default();
    for (number, (attempt, frame)) in failed {
        let why = attempt.why.as_deref().unwrap_or("nobody can tell why");
        let mut name = Element::new("p").with(Element::new("b").text(&named(attempt)));
        if attempt.run.is_some() {
            name = name
                .text(" ")
                .with(Element::new("a").film(number).text("its film"));
        }
        let section = Element::new("div").class("failure");
        let mut section = section
            .with(name)
            .with(Element::new("p").class("prose").text(why));
        if let (Some(frame), Some(run)) = (frame, attempt.run) {
            let shown = match store.reader(&log_name(run)) {
                Ok(reader) => pictures.take(frame, &reader),
                Err(error) => Shown::Not(format!("it cannot be read: {error}")),
            };
            section = section.with(match shown {
                Shown::Here(picture, _) => Element::new("img")
                    .source(&picture)
                    .set("alt", "the screen at the end"),
                Shown::Before(_) => Element::new("p")
                    .class("aside")
                    .text("the same picture as above"),
                Shown::Not(why) => Element::new("p").class("aside").text(&why),
            });
        }
        html.push(section);
    }
    html
}
