//! A step on the page: one line when it is folded, everything when it is open.

use gyrus_contract::RunId;
use gyrus_journal::LogReader;
use gyrus_text::counted;
use maud::{Markup, html};

use super::{
    excerpt::ExcerptKind,
    item::{ItemDrawer, StepContext},
    markup::{PageAnchor, step_address},
    moment::{TimeOrigin, duration},
    picture::PagePictures,
    step::{PageStep, RawEntry, StepFate},
};
use crate::projection::{HappeningSubject, Prominence};

/// Maximum number of characters of a step's one line.
const GIST: usize = 140;

/// Maximum number of tool names in a step's one line.
const NAMED_TOOLS: usize = 2;

pub(super) fn step(
    step: &PageStep,
    context: &StepContext<'_>,
    reader: &LogReader,
    pictures: &mut PagePictures,
    is_open: bool,
) -> Markup {
    let name = context.run.short();
    let rest = format!(
        "the whole text is in `gyrus trace {name}`, step {}",
        step.number
    );
    let drawing = ItemDrawer {
        context,
        reader,
        rest: &rest,
    };
    let anchor = PageAnchor::Step {
        run: context.number,
        step: step.number,
    };
    let class = if step.fate == StepFate::Done {
        "step"
    } else {
        "step unkept"
    };
    html! {
        details class=(class) id=(anchor) open[is_open] {
            summary { (head(step, context.start)) }
            div.items {
                @for item in &step.items { (drawing.item(item, pictures)) }
            }
            @if pictures.are_served() {
                // Its page has the entries too.
                p.alone { a href=(address(context, step)) { "This step on a page of its own" } }
            } @else {
                (entries(&step.entries, context.start))
            }
        }
    }
}

fn address(context: &StepContext<'_>, step: &PageStep) -> String {
    let seq = step.entries.first().map_or(0, |entry| entry.seq);
    step_address(context.run, seq)
}

pub(super) fn sentence(step: &PageStep, context: &StepContext<'_>) -> Markup {
    let class = if step.fate == StepFate::Done {
        "step sentence"
    } else {
        "step sentence unkept"
    };
    html! { a class=(class) href=(address(context, step)) { (head(step, context.start)) } }
}

/// Returns a step for reading: what a person who watches the run would see, with nothing folded.
pub(super) fn reading(
    step: &PageStep,
    context: &StepContext<'_>,
    reader: &LogReader,
    pictures: &mut PagePictures,
) -> Markup {
    let drawing = ItemDrawer {
        context,
        reader,
        rest: "the whole text is in the journal",
    };
    let is_seen = |item: &&super::step::StepItem| {
        let mut happenings = item.happenings.iter();
        happenings.any(|one| one.weight == Prominence::Main)
    };
    html! {
        section.reading {
            h2 { a href=(address(context, step)) { "Step " (step.number) } }
            div.items {
                @for item in step.items.iter().filter(is_seen) { (drawing.item(item, pictures)) }
            }
        }
    }
}

fn head(step: &PageStep, start: TimeOrigin) -> Markup {
    html! {
        span.number { (step.number) }
        (tools(step))
        span.gist { (step.gist(GIST)) }
        span.flags {
            @for (class, word) in flags(step) { span class={ "flag " (class) } { (word) } }
        }
        (figures(step))
        span.when { (start.moment_and_hour(step.began_ms)) }
    }
}

pub(super) fn figures(step: &PageStep) -> Markup {
    let charged = step.charged();
    let lasted = step.ended_ms.saturating_sub(step.began_ms).max(0);
    html! {
        span.figures {
            @if charged.tokens > 0 { span { (counted(charged.tokens, "token")) } }
            @if charged.cost.0 > 0 { span { (charged.cost) } }
            span { (duration(lasted.unsigned_abs())) }
        }
    }
}

fn tools(step: &PageStep) -> Markup {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for call in step
        .happenings()
        .filter(|one| one.subject == HappeningSubject::Call)
    {
        match names.iter_mut().find(|(name, _)| *name == call.headline) {
            Some((_, times)) => *times += 1,
            None => names.push((&call.headline, 1)),
        }
    }
    html! {
        span.tools {
            @for (name, times) in names.iter().take(NAMED_TOOLS) {
                span.tool {
                    (super::excerpt::brief(name))
                    @if *times > 1 { " ×" (times) }
                }
            }
            @if names.len() > NAMED_TOOLS { span.tool { "+" (names.len() - NAMED_TOOLS) } }
        }
    }
}

/// Returns the flags of a step, each with its class: events that a reader looks for.
fn flags(step: &PageStep) -> impl Iterator<Item = (&'static str, &'static str)> {
    let has = |wanted: HappeningSubject| step.happenings().any(|one| one.subject == wanted);
    let flags = [
        (has(HappeningSubject::Question), "ask", "asked"),
        (has(HappeningSubject::Person), "ask", "steered"),
        (has(HappeningSubject::Child), "child", "child run"),
        (has(HappeningSubject::ReplyFailed), "bad", "retried"),
        (
            has(HappeningSubject::Result { failed: true }),
            "bad",
            "error",
        ),
        (step.fate == StepFate::Dropped, "bad", "abandoned"),
        (step.fate == StepFate::Open, "bad", "unfinished"),
    ];
    let set = flags.into_iter().filter(|(is_set, _, _)| *is_set);
    set.map(|(_, class, word)| (class, word))
}

/// Draws entries as the journal contains them, folded.
pub(super) fn entries(entries: &[RawEntry], start: TimeOrigin) -> Markup {
    if entries.is_empty() {
        return html! {};
    }
    html! {
        details.raw {
            summary { (counted(entries.len(), "entry")) " of the journal" }
            @for one in entries { div.entry { (entry(one, None, start)) } }
        }
    }
}

/// Draws an entry as the journal contains it. A server, which gives out the blobs of `served`, has
/// links to those that the entry names.
pub(super) fn entry(entry: &RawEntry, served: Option<RunId>, start: TimeOrigin) -> Markup {
    let rest = format!("the whole payload is in entry {} of the journal", entry.seq);
    html! {
        p.label {
            span.effect { (entry.seq) }
            span.name { (entry.kind) }
            @if let Some(run) = served {
                @for blob in &entry.blobs {
                    a href={ "/api/runs/" (run) "/blobs/" (blob) } { "blob " (&blob.to_string()[..8]) }
                }
            }
            (start.moment(entry.at_ms))
        }
        (entry.payload.render(ExcerptKind::Code, &rest))
    }
}
