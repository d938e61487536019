//! The steps of a run, put together one at a time from what happened, so that a page takes no more
//! memory for a million steps than for the largest of them.

use gyrus_contract::{BlobId, EffectId};
use gyrus_journal::{LogReader, Payload};
use gyrus_kernel::{Charge, Entry};
use serde_json::Value;

use super::excerpt::Excerpt;
use crate::projection::{
    Happening, HappeningPart, HappeningSubject, Projection, Prominence, TextForm, step_of,
};

/// Maximum size of JSON that is indented, in bytes: indenting what is deeply nested would make it
/// many times longer.
const LAYOUT_LIMIT: usize = 64 << 10;

/// Number of bytes of an entry's payload that the page shows, at its start and its end.
const RAW: (usize, usize) = (4 << 10, 512);

/// Maximum number of an entry's blobs that the page names.
const BLOBS: usize = 20;

#[derive(Debug)]
pub(super) struct PageStep {
    /// The step's number, counted from 1.
    pub(super) number: u32,
    /// The time of the step's first entry, in UTC milliseconds.
    pub(super) began_ms: i64,
    /// The time of the step's last entry, in UTC milliseconds.
    pub(super) ended_ms: i64,
    pub(super) fate: StepFate,
    /// Whether the step is the last that the run shares with the one that it was forked from.
    pub(super) is_shared: bool,
    /// The events of the step; those of one effect stand together, in order of the first.
    pub(super) items: Vec<StepItem>,
    /// The step's entries as the journal contains them, with those since the previous step.
    pub(super) entries: Vec<RawEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepFate {
    /// The state of the step was kept.
    Done,
    /// The step was abandoned, and its state is never used.
    Dropped,
    Open,
}

/// The events of one effect, or one event that belongs to none. Never empty.
#[derive(Debug)]
pub(super) struct StepItem {
    pub(super) effect: Option<EffectId>,
    pub(super) happenings: Vec<Happening>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawEntry {
    pub(super) seq: u64,
    /// The time at which the entry was appended, in UTC milliseconds.
    pub(super) at_ms: i64,
    pub(super) kind: String,
    /// The entry's payload as JSON, or the reason why there is none.
    pub(super) payload: Excerpt,
    pub(super) blobs: Vec<BlobId>,
}

#[derive(Debug)]
pub(super) enum Section {
    Step(PageStep),
    Between(StepItem),
}

pub(super) struct Steps<'a> {
    reader: &'a LogReader,
    projection: Projection,
    step: Option<PageStep>,
    entries: Vec<RawEntry>,
    is_fork: bool,
}

impl<'a> Steps<'a> {
    /// Starts with the first entry of the run that `reader` reads.
    pub(super) fn new(reader: &'a LogReader) -> Self {
        Self {
            reader,
            projection: Projection::new(),
            step: None,
            entries: Vec::new(),
            is_fork: false,
        }
    }

    /// Adds the next entry and returns the sections that are complete now.
    pub(super) fn take(&mut self, entry: &gyrus_journal::LogEntry) -> Vec<Section> {
        let mut sections = Vec::new();
        let happenings = self.projection.take(entry, self.reader);
        let number = happenings
            .iter()
            .find_map(|one| one.step.or(step_of(one.effect.as_ref())));
        if let Some(number) = number {
            if self.step.as_ref().is_some_and(|step| step.number != number) {
                sections.extend(self.finish());
            }
            let step = self
                .step
                .get_or_insert_with(|| PageStep::new(number, entry.at_ms));
            step.ended_ms = entry.at_ms;
        }
        if entry.kind == "run.started"
            && let Ok(Entry::RunStarted(started)) = gyrus_kernel::parse(entry)
        {
            self.is_fork = started.forked_from.is_some();
        }
        self.entries.push(RawEntry::of(entry));
        for happening in happenings {
            if matches!(
                happening.subject,
                HappeningSubject::Goal | HappeningSubject::Value
            ) {
                // The page's head says it; a value means nothing to a reader.
                continue;
            }
            // The line of the step says that it is complete, a result that the call was started.
            let is_said = matches!(
                happening.subject,
                HappeningSubject::StepEnded | HappeningSubject::Started
            ) && happening.weight == Prominence::Detail;
            let is_end = happening.step.is_some();
            let is_dropped = happening.subject == HappeningSubject::StepDropped;
            match &mut self.step {
                Some(_) if is_said => {}
                Some(step) => step.add(happening),
                None => sections.push(Section::Between(StepItem::of(happening))),
            }
            if is_end && let Some(step) = &mut self.step {
                step.fate = if is_dropped {
                    StepFate::Dropped
                } else {
                    StepFate::Done
                };
                sections.extend(self.finish());
            }
        }
        sections
    }

    pub(super) fn finish(&mut self) -> Option<Section> {
        let mut step = self.step.take()?;
        step.entries = std::mem::take(&mut self.entries);
        step.is_shared = std::mem::take(&mut self.is_fork) && step.items.is_empty();
        step.drop_repeated_words();
        Some(Section::Step(step))
    }

    /// Returns the number of the first entry that belongs to no complete step yet.
    pub(super) fn pending_since(&self) -> Option<u64> {
        self.entries.first().map(|entry| entry.seq)
    }

    /// Returns the entries that belong to no step: those after the last one.
    pub(super) fn rest(self) -> Vec<RawEntry> {
        self.entries
    }
}

impl PageStep {
    fn new(number: u32, at_ms: i64) -> Self {
        Self {
            number,
            began_ms: at_ms,
            ended_ms: at_ms,
            fate: StepFate::Open,
            is_shared: false,
            items: Vec::new(),
            entries: Vec::new(),
        }
    }

    fn add(&mut self, happening: Happening) {
        let effect = happening.effect.as_ref();
        let same = |item: &&mut StepItem| effect.is_some() && item.effect.as_ref() == effect;
        match self.items.iter_mut().rev().find(same) {
            Some(item) => item.happenings.push(happening),
            None => self.items.push(StepItem::of(happening)),
        }
    }

    /// Returns all events of the step.
    pub(super) fn happenings(&self) -> impl Iterator<Item = &Happening> {
        self.items.iter().flat_map(|item| &item.happenings)
    }

    pub(super) fn charged(&self) -> Charge {
        let mut sum = Charge::default();
        for happening in self.happenings() {
            sum += happening.charged;
        }
        sum
    }

    pub(super) fn gist(&self, characters: usize) -> String {
        if self.is_shared {
            return "this and what is before it is shared with the run that it was forked from"
                .to_owned();
        }
        let thought = self.happenings().find_map(|one| {
            let text = one
                .text(TextForm::Prose)
                .filter(|text| !text.trim().is_empty());
            text.filter(|_| one.subject == HappeningSubject::Thought)
        });
        let argument = || {
            let calls = self
                .happenings()
                .filter(|one| one.subject == HappeningSubject::Call);
            calls.flat_map(|call| &call.parts).find_map(|part| {
                let HappeningPart::Arguments(arguments) = part else {
                    return None;
                };
                first_argument(arguments)
            })
        };
        let text = thought.map(str::to_owned).or_else(argument);
        Excerpt::of(&text.unwrap_or_default()).gist(characters)
    }

    /// Removes words from a reply that the loop also recorded as a thought.
    fn drop_repeated_words(&mut self) {
        let thoughts = self.happenings().filter(|one| {
            matches!(
                one.subject,
                HappeningSubject::Thought | HappeningSubject::Reflection
            )
        });
        let thoughts: Vec<String> = thoughts
            .filter_map(|one| Some(one.text(TextForm::Prose)?.trim().to_owned()))
            .collect();
        for happening in self.items.iter_mut().flat_map(|item| &mut item.happenings) {
            if happening.subject == HappeningSubject::Reply {
                let is_thought = |text: &str| thoughts.iter().any(|one| one == text.trim());
                happening.parts.retain(
                    |part| !matches!(part, HappeningPart::Text(TextForm::Prose, text) if is_thought(text)),
                );
            }
        }
    }
}

impl StepItem {
    pub(super) fn of(happening: Happening) -> Self {
        Self {
            effect: happening.effect.clone(),
            happenings: vec![happening],
        }
    }
}

/// Returns what a call is about: its path, or else the first of its arguments.
pub(crate) fn first_argument(arguments: &Value) -> Option<String> {
    let arguments = arguments.as_object()?;
    let value = arguments.get("path").or(arguments.values().next())?;
    Some(
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned),
    )
}

impl RawEntry {
    pub(super) fn of(entry: &gyrus_journal::LogEntry) -> Self {
        let mut blobs = Vec::new();
        let text = match &entry.payload {
            Payload::Json(json) => match serde_json::from_str::<Value>(json.get()) {
                Ok(value) => {
                    named_blobs(&value, &mut blobs);
                    layout(&value)
                }
                // What is nested too deep for us is still text.
                Err(_) => json.get().to_owned(),
            },
            Payload::Erased(hash) => format!("erased; its hash was {hash}"),
        };
        Self {
            seq: entry.seq,
            at_ms: entry.at_ms,
            kind: entry.kind.clone(),
            payload: Excerpt::within(&text, RAW),
            blobs,
        }
    }
}

/// Collects the ids of blobs in a value, up to the page's limit.
fn named_blobs(value: &Value, found: &mut Vec<BlobId>) {
    match value {
        Value::String(text) => {
            let id = text.parse().ok();
            let is_new = |id: &BlobId| !found.contains(id);
            if found.len() < BLOBS
                && let Some(id) = id.filter(is_new)
            {
                found.push(id);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| named_blobs(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| named_blobs(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Formats a value as JSON, indented unless that makes it much longer.
pub(super) fn layout(value: &Value) -> String {
    let compact = value.to_string();
    if compact.len() <= LAYOUT_LIMIT
        && let Ok(pretty) = serde_json::to_string_pretty(value)
    {
        return pretty;
    }
    compact
}
