//! One step on a page of its own: what was seen before and after it, each effect from intent to
//! outcome, and the exact prompts.

use std::collections::BTreeMap;

use gyrus_contract::{Image, RunId};
use gyrus_journal::LogReader;
use maud::{Markup, html};

use super::{
    item::{ItemDrawer, StepContext},
    markup::shown,
    moment::TimeOrigin,
    picture::PagePictures,
    prompt,
    step::{PageStep, Section, Steps},
    timeline,
};
use crate::projection::{Happening, HappeningPart, HappeningSubject, Projection};

/// Number of entries before the wanted one that are read first; if they hold no end of a step, more
/// are read.
const BEFORE: u64 = 200;

/// Characters of the sentence about the step.
const GIST: usize = 140;

/// A step, drawn whole.
#[derive(Debug)]
pub struct OneStep {
    /// The step's number, counted from 1.
    pub number: u32,
    /// A short description of the step.
    pub gist: String,
    /// Number of the step's first entry, which names it permanently.
    pub first: u64,
    /// Number of the step's last entry.
    pub last: u64,
    /// The step, in which every unseen character is visible.
    pub html: String,
}

/// Number of entries after the step that are searched for a picture.
const AFTER: u64 = 200;

struct StepView {
    step: PageStep,
    before: Option<Image>,
    after: Option<Image>,
}

/// Draws the step of the entry `seq`, as far as it is known at the entry `end`. Reads little more
/// than the step, wherever it is in the run. Returns `None` for an entry after the last step.
pub fn one_step(
    reader: &LogReader,
    run: RunId,
    seq: u64,
    end: u64,
) -> Result<Option<OneStep>, gyrus_journal::Error> {
    let mut back = BEFORE;
    let found = loop {
        let from = seq.saturating_sub(back).max(1);
        match find(reader, seq, from, end)? {
            StepSearch::TooLate if from > 1 => back = back.saturating_mul(4),
            StepSearch::TooLate | StepSearch::Nothing => return Ok(None),
            StepSearch::Found(found) => break *found,
        }
    };
    let began_ms = reader.entry(1)?.map_or(0, |first| first.at_ms);
    let (step, entries) = (&found.step, &found.step.entries);
    let html = draw(&found, reader, run, began_ms);
    Ok(Some(OneStep {
        number: step.number,
        gist: step.gist(GIST),
        first: entries.first().map_or(seq, |entry| entry.seq),
        last: entries.last().map_or(seq, |entry| entry.seq),
        html: shown(&html.0).into_owned(),
    }))
}

enum StepSearch {
    Found(Box<StepView>),
    /// No step contains the entry.
    Nothing,
    /// The step began before the first entry that was read.
    TooLate,
}

fn find(
    reader: &LogReader,
    seq: u64,
    from: u64,
    end: u64,
) -> Result<StepSearch, gyrus_journal::Error> {
    let mut steps = Steps::new(reader);
    let (mut is_aligned, mut before) = (from == 1, None);
    let mut entries = reader.entries(from)?;
    loop {
        let entry = entries.next().transpose()?;
        let entry = entry.filter(|entry| entry.seq <= end);
        let is_last = entry.is_none();
        let sections = match entry {
            Some(entry) => steps.take(&entry),
            None => steps.finish().into_iter().collect(),
        };
        for section in sections {
            match section {
                Section::Between(item) => before = last_picture(&item.happenings).or(before),
                Section::Step(step) if contains(&step, seq) && is_aligned => {
                    let next = entries.take(usize::try_from(AFTER).unwrap_or(0));
                    let next = next.map_while(Result::ok).filter(|entry| entry.seq <= end);
                    let after = || next_picture(next, reader);
                    return Ok(StepSearch::Found(Box::new(StepView {
                        before: seen_before(&step).or(before),
                        after: seen_after(&step).or_else(after),
                        step,
                    })));
                }
                Section::Step(step) if contains(&step, seq) => return Ok(StepSearch::TooLate),
                Section::Step(step) => {
                    is_aligned = true;
                    let of_item = |item: &super::step::StepItem| last_picture(&item.happenings);
                    before = step.items.iter().rev().find_map(of_item).or(before);
                }
            }
        }
        if is_last {
            return Ok(StepSearch::Nothing);
        }
    }
}

fn contains(step: &PageStep, seq: u64) -> bool {
    step.entries.iter().any(|entry| entry.seq == seq)
}

fn last_picture(happenings: &[Happening]) -> Option<Image> {
    happenings.iter().rev().find_map(picture)
}

fn seen_before(step: &PageStep) -> Option<Image> {
    let until_call = step
        .happenings()
        .take_while(|one| one.subject != HappeningSubject::Call);
    until_call.filter_map(picture).last()
}

fn seen_after(step: &PageStep) -> Option<Image> {
    let all: Vec<&Happening> = step.happenings().collect();
    let after_call = all
        .rsplit(|one| one.subject == HappeningSubject::Call)
        .next()?;
    let has_call = after_call.len() < all.len();
    let mut last = after_call.iter().rev().filter(|_| has_call);
    last.find_map(|one| picture(one))
}

fn next_picture(
    mut entries: impl Iterator<Item = gyrus_journal::LogEntry>,
    reader: &LogReader,
) -> Option<Image> {
    let mut projection = Projection::new();
    entries.find_map(|entry| projection.take(&entry, reader).iter().find_map(picture))
}

fn picture(happening: &Happening) -> Option<Image> {
    let mut pictures = happening.parts.iter().rev().filter_map(|part| match part {
        HappeningPart::Picture(image) => Some(image.clone()),
        HappeningPart::Badge(..)
        | HappeningPart::Text(..)
        | HappeningPart::Arguments(_)
        | HappeningPart::Card(_)
        | HappeningPart::Files(_)
        | HappeningPart::Run(_) => None,
    });
    pictures.next()
}

fn draw(found: &StepView, reader: &LogReader, run: RunId, began_ms: i64) -> Markup {
    let step = &found.step;
    let start = TimeOrigin { at_ms: began_ms };
    let context = StepContext {
        number: 0,
        run,
        start,
        children: &BTreeMap::new(),
    };
    let drawing = ItemDrawer {
        context: &context,
        reader,
        rest: "the whole text is in the journal",
    };
    let mut pictures = PagePictures::served(run);
    let requests = step
        .happenings()
        .filter(|one| one.subject == HappeningSubject::Request);
    let requests: Vec<&Happening> = requests.collect();
    html! {
        p.step-figures { (timeline::figures(step)) (start.moment_and_hour(step.began_ms)) }
        @if found.before.is_some() || found.after.is_some() {
            div.before-after {
                (seen("Before", found.before.as_ref(), reader, &mut pictures))
                (seen("After", found.after.as_ref(), reader, &mut pictures))
            }
        }
        div.items { @for item in &step.items { (drawing.item(item, &mut pictures)) } }
        @for request in requests {
            details.more.prompt {
                summary { "The exact prompt of entry " (request.seq) ": " (request.headline) }
                @match gyrus_kernel::prompt_of(reader, request.seq) {
                    Ok(sent) => { (prompt::prompt(&sent, reader, run)) },
                    Err(error) => { p.error { "It cannot be shown: " (error) } },
                }
            }
        }
        details.more {
            summary { "The entries of the journal" }
            @for entry in &step.entries {
                div.entry { (timeline::entry(entry, Some(run), start)) }
            }
        }
    }
}

fn seen(
    when: &str,
    image: Option<&Image>,
    reader: &LogReader,
    pictures: &mut PagePictures,
) -> Markup {
    html! {
        section {
            h2 { (when) }
            @match image {
                Some(image) => { (pictures.figure(image, reader)) },
                None => { p.aside { "There is no picture." } },
            }
        }
    }
}
