//! The standing of a run: running, parked or over, or a record from elsewhere.

use clap::ValueEnum;
use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{Ending, RunState, approvals, record_summary, summary};
use gyrus_surfaces::projection::Tone;

use crate::failure::Failure;

pub(super) struct ListedStanding {
    /// The state in one word, for programs.
    pub(super) state: StateFilter,
    pub(super) words: String,
    pub(super) tone: Tone,
}

/// Values of `--state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum StateFilter {
    /// A process has it.
    Running,
    /// No process holds it, and it can be resumed.
    Parked,
    /// It came to its end.
    Over,
    /// It came from elsewhere, and nobody goes on with it.
    Record,
    /// Its journal cannot be read.
    Unreadable,
}

impl StateFilter {
    pub(super) fn word(self) -> &'static str {
        match self {
            StateFilter::Running => "running",
            StateFilter::Parked => "parked",
            StateFilter::Over => "over",
            StateFilter::Record => "record",
            StateFilter::Unreadable => "unreadable",
        }
    }
}

impl ListedStanding {
    pub(super) fn of(store: &Store, run: RunId) -> Self {
        let (state, tone, words) = Self::read(store, run).unwrap_or_else(|failure| {
            let words = format!("cannot be read: {}", failure.message);
            (StateFilter::Unreadable, Tone::Bad, words)
        });
        Self { state, words, tone }
    }

    fn read(store: &Store, run: RunId) -> Result<(StateFilter, Tone, String), Failure> {
        Ok(match RunState::of(store, run)? {
            RunState::Running(holder) => {
                let (tone, what) = if approvals::open(store, run)?.is_empty() {
                    (Tone::Call, "running")
                } else {
                    (Tone::Ask, "asks a person,")
                };
                let words = format!("{what} in process {}", holder.process.pid);
                (StateFilter::Running, tone, words)
            }
            RunState::Parked(ending) => {
                let why = match &ending {
                    Ending::Waiting { question, .. } => format!("waits for an answer: {question}"),
                    other => summary(other),
                };
                (StateFilter::Parked, tone(&ending), format!("parked: {why}"))
            }
            RunState::CutOff => {
                let words = "parked: its process died".to_owned();
                (StateFilter::Parked, Tone::Bad, words)
            }
            RunState::Over(ending) => (StateFilter::Over, tone(&ending), summary(&ending)),
            RunState::Record(ending) => {
                let words = record_summary(ending.as_ref());
                (StateFilter::Record, Tone::Aside, words)
            }
            RunState::NeverBegan => (StateFilter::Over, Tone::Bad, "never began".to_owned()),
        })
    }
}

/// Returns the tone of an ending: a failure stands out, and so does a run that waits for a person.
fn tone(ending: &Ending) -> Tone {
    match ending {
        Ending::Reached { .. }
        | Ending::Sleeping { .. }
        | Ending::Stopped { .. }
        | Ending::Interrupted => Tone::Plain,
        Ending::Waiting { .. } => Tone::Ask,
        Ending::Failed { .. }
        | Ending::Limit { .. }
        | Ending::Stuck { .. }
        | Ending::ModelUnreachable { .. } => Tone::Bad,
    }
}
