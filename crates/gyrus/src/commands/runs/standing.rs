//! The standing of a run: running, parked or over, or a record from elsewhere.

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{Ending, RunState, approvals, record_summary, summary};

use crate::failure::Failure;

/// Standing of a run.
pub(super) enum Standing {
    /// A process has it.
    Running {
        /// The process.
        pid: u32,
        /// It waits for an answer.
        asks: bool,
    },
    /// No process holds it, and it can be resumed.
    Parked(String),
    /// It came to its end.
    Over(String),
    /// It came from elsewhere, and nobody goes on with it.
    Record(String),
    /// Its journal cannot be read.
    Unreadable(String),
}

impl Standing {
    pub(super) fn of(store: &Store, run: RunId) -> Self {
        Self::read(store, run).unwrap_or_else(|failure| Standing::Unreadable(failure.message))
    }

    fn read(store: &Store, run: RunId) -> Result<Self, Failure> {
        Ok(match RunState::of(store, run)? {
            RunState::Running(holder) => Standing::Running {
                pid: holder.process.pid,
                asks: !approvals::open(store, run)?.is_empty(),
            },
            RunState::Parked(Ending::Waiting { question, .. }) => {
                Standing::Parked(format!("waits for an answer: {question}"))
            }
            RunState::Parked(ending) => Standing::Parked(summary(&ending)),
            RunState::CutOff => Standing::Parked("its process died".to_owned()),
            RunState::Over(ending) => Standing::Over(summary(&ending)),
            RunState::Record(ending) => Standing::Record(record_summary(ending.as_ref())),
            RunState::NeverBegan => Standing::Over("never began".to_owned()),
        })
    }

    /// Returns the standing in one word, for programs.
    pub(super) fn state(&self) -> &'static str {
        match self {
            Standing::Running { .. } => "running",
            Standing::Parked(_) => "parked",
            Standing::Over(_) => "over",
            Standing::Record(_) => "record",
            Standing::Unreadable(_) => "unreadable",
        }
    }

    /// Returns the standing in a few words.
    pub(super) fn words(&self) -> String {
        match self {
            Standing::Running { pid, asks: false } => format!("running in process {pid}"),
            Standing::Running { pid, asks: true } => format!("asks a person, in process {pid}"),
            Standing::Parked(why) => format!("parked: {why}"),
            Standing::Over(how) | Standing::Record(how) => how.clone(),
            Standing::Unreadable(why) => format!("cannot be read: {why}"),
        }
    }
}
