//! Projection of a run: every entry of its journal as [`Happening`]s, which all surfaces render.
//!
//! The match over the kinds of entries is exhaustive and stands in this folder alone. `run` covers
//! the run and its steps, `model` what a model is asked and says, `call` tool calls from intent to
//! result, `effects` the remaining effects, and `facts` what loops record under kinds of their own.

mod happening;
mod patch;
mod stored;
mod run;
mod model;
mod call;
mod effects;
mod facts;
mod changeset;

use std::collections::BTreeSet;

use gyrus_contract::EffectId;
use gyrus_journal::{LogReader, Payload};
use gyrus_kernel::Entry;

use self::changeset::ChangesetFold;
pub use self::effects::limits;
pub use self::happening::{Happening, HappeningPart, HappeningSubject, Prominence, TextForm, Tone};
pub use self::patch::{is_patch, patch_lines};
pub use self::stored::{given_lessons, goal, loaded_skills, notes_given, stored};

/// Folds the entries of one run, in order, into events for people.
#[derive(Debug, Default)]
pub struct Projection {
    /// Ids of the calls of the current step that became effects. A result for another call was
    /// written by the loop, which did not execute the call.
    called: BTreeSet<String>,
    /// A person changed the plan that comes into force next.
    is_edited: bool,
    changeset: ChangesetFold,
}

impl Projection {
    /// Creates the projection of a run that starts, or is resumed, with the next entry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles the next entry and returns its events, in order. Large values are read from the
    /// blobs of `reader`; one that cannot be read is replaced by words that say so. An entry that
    /// this version does not understand is shown as it stands.
    pub fn take(&mut self, entry: &gyrus_journal::LogEntry, reader: &LogReader) -> Vec<Happening> {
        let parsed = match gyrus_kernel::parse(entry) {
            Ok(parsed) => parsed,
            Err(error) => return vec![unreadable(entry, &error.to_string()).at(entry)],
        };
        let effect = parsed.effect().cloned();
        let ends_step = matches!(parsed, Entry::CycleEnded(_) | Entry::CycleDropped(_));
        self.changeset.prepare(entry, reader);
        let mut happenings = self.known(parsed, entry.at_ms, reader);
        for happening in &mut happenings {
            happening.seq = entry.seq;
            happening.at_ms = entry.at_ms;
            // What a step appends to the memory belongs to no effect.
            if happening.subject != HappeningSubject::Told && happening.effect.is_none() {
                happening.effect.clone_from(&effect);
            }
        }
        if ends_step {
            self.called.clear();
        }
        happenings
    }

    fn known(&mut self, entry: Entry, at_ms: i64, reader: &LogReader) -> Vec<Happening> {
        match entry {
            Entry::RunStarted(started) => vec![run::started(&started, reader)],
            // It serves undoing and forking, and tells a reader nothing.
            Entry::WorkspaceRecorded(_) => Vec::new(),
            Entry::RunResumed(resumed) => {
                let told = [Some(run::resumed(&resumed)), self.changeset.resumed()];
                told.into_iter().flatten().collect()
            }
            Entry::RunHandedOver(handed) => vec![run::handed_over(handed)],
            Entry::RunParked(parked) => {
                let state = self.changeset.stopped(&parked.ending);
                state.into_iter().chain([run::parked(&parked)]).collect()
            }
            Entry::RunEnded(ended) => {
                let state = self.changeset.stopped(&ended.ending);
                state.into_iter().chain([run::ended(&ended)]).collect()
            }
            Entry::CycleEnded(ended) => {
                let mut happenings = model::told(&ended.appended, &self.called);
                happenings.push(run::step_ended(&ended));
                happenings
            }
            Entry::CycleDropped(dropped) => vec![run::step_dropped(dropped)],
            Entry::BudgetWarning(warning) => vec![run::warning(&warning)],
            Entry::Steered(steered) => vec![run::steered(steered)],
            Entry::ToolsAdded(added) => vec![run::tools_added(&added)],
            Entry::MandateSet(set) => vec![run::mandate_set(set)],
            Entry::TakeoverStarted(takeover) => vec![run::takeover_started(&takeover)],
            Entry::TakeoverEnded(takeover) => vec![run::takeover_ended(takeover)],
            Entry::ModelCall(asked) => {
                let mut happenings = model::told(&asked.appended, &self.called);
                happenings.push(model::request(asked));
                happenings
            }
            Entry::ModelReply(reply) => vec![model::reply(reply, at_ms, reader)],
            Entry::ToolCalled(called) => {
                self.called.insert(called.call.id.clone());
                vec![call::called(called)]
            }
            Entry::GateVerdict(judged) => vec![call::judged(judged)],
            Entry::ApprovalAsked(asked) => vec![call::asked(asked)],
            Entry::ApprovalAnswered(answered) => vec![call::answered(answered)],
            Entry::ToolStarted(started) => vec![call::started(&started)],
            Entry::ToolResulted(result) => vec![call::resulted(result, reader)],
            Entry::ScreenViewed(viewed) => vec![effects::viewed(viewed, reader)],
            Entry::ValueTaken(taken) => vec![effects::value(&taken)],
            Entry::WaitStarted(wait) => vec![effects::wait_started(&wait)],
            Entry::WaitEnded(wait) => vec![effects::wait_ended(wait)],
            Entry::BranchesStarted(started) => vec![effects::branches(&started)],
            Entry::RaceWon(race) => vec![effects::race_won(&race)],
            Entry::ChildStarted(child) => vec![effects::child_started(child)],
            Entry::ChildEnded(child) => vec![effects::child_ended(&child)],
            Entry::Noted { kind, fact, .. } => {
                let mut happening = facts::fact(&kind, &fact.fact);
                if kind == "changeset.state" {
                    self.changeset.recorded(&fact.fact);
                } else if kind == "plan.edited" {
                    self.is_edited = true;
                } else if kind == "task.plan" && std::mem::take(&mut self.is_edited) {
                    happening.subject = HappeningSubject::Person;
                    happening.tone = Tone::Ask;
                }
                vec![happening]
            }
        }
    }
}

fn unreadable(entry: &gyrus_journal::LogEntry, why: &str) -> Happening {
    match &entry.payload {
        Payload::Json(payload) => Happening::detail(
            HappeningSubject::Unreadable,
            format!("{}: {why}", entry.kind),
        )
        .with(HappeningPart::code(payload.get())),
        Payload::Erased(hash) => Happening::detail(
            HappeningSubject::Unreadable,
            format!("{}: erased; its hash was {hash}", entry.kind),
        ),
    }
}

pub(crate) fn step_of(effect: Option<&EffectId>) -> Option<u32> {
    effect.map(EffectId::cycle_number)
}
