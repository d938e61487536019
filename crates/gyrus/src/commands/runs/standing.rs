//! The standing of a run: running, parked or over, or a record from elsewhere.

use clap::ValueEnum;
use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{Ending, RunState, approvals, record_summary, summary};
use gyrus_surfaces::projection::Tone;

use crate::failure::Failure;

/// Standing of a run.
pub(super) struct Standing {
    /// The standing in one word, for programs.
    pub(super) state: State,
    /// The standing in a few words.
    pub(super) words: String,
    /// The colour of these words.
    pub(super) tone: Tone,
}

/// Values of `--state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum State {
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

impl State {
    /// Returns the word for it.
    pub(super) fn word(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Parked => "parked",
            State::Over => "over",
            State::Record => "record",
            State::Unreadable => "unreadable",
        }
    }
}

impl Standing {
    pub(super) fn of(store: &Store, run: RunId) -> Self {
        let (state, tone, words) = Self::read(store, run).unwrap_or_else(|failure| {
            let words = format!("cannot be read: {}", failure.message);
            (State::Unreadable, Tone::Bad, words)
        });
        Self { state, words, tone }
    }

    fn read(store: &Store, run: RunId) -> Result<(State, Tone, String), Failure> {
        Ok(match RunState::of(store, run)? {
            RunState::Running(holder) => {
                let (tone, what) = if approvals::open(store, run)?.is_empty() {
                    (Tone::Call, "running")
                } else {
                    (Tone::Ask, "asks a person,")
                };
                let words = format!("{what} in process {}", holder.process.pid);
                (State::Running, tone, words)
            }
            RunState::Parked(ending) => {
                let why = match &ending {
                    Ending::Waiting { question, .. } => format!("waits for an answer: {question}"),
                    other => summary(other),
                };
                (State::Parked, tone(&ending), format!("parked: {why}"))
            }
            RunState::CutOff => {
                let words = "parked: its process died".to_owned();
                (State::Parked, Tone::Bad, words)
            }
            RunState::Over(ending) => (State::Over, tone(&ending), summary(&ending)),
            RunState::Record(ending) => {
                let words = record_summary(ending.as_ref());
                (State::Record, Tone::Aside, words)
            }
            RunState::NeverBegan => (State::Over, Tone::Bad, "never began".to_owned()),
        })
    }
}

/// A failure stands out, and so does a run that waits for a person.
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
