//! Taking back what a run changed in its workspace.
//!
//! [`plan()`] finds the two snapshots of the run that are compared, the one to go back to and its
//! last; how that is taken back is [`gyrus_workspace::undo`]. What was undone is recorded in a log
//! of its own.

mod plan;
mod record;
mod repositories;

use gyrus_contract::RunId;

use crate::Stop;

pub use self::{
    plan::{RunUndo, plan},
    record::{Undone, forget, undone},
    repositories::RepositoryUndo,
};

/// Why nothing of a run could be taken back.
#[derive(Debug, thiserror::Error)]
pub enum RunUndoError {
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] gyrus_journal::Error),
    /// The run cannot be read.
    #[error(transparent)]
    Stop(Box<Stop>),
    /// There is no such step.
    #[error("run {run} has no complete step {step}; the last one is {last}")]
    NoStep {
        /// The run.
        run: RunId,
        /// What was asked for.
        step: u32,
        /// The last complete step.
        last: u32,
    },
    /// The workspace was not kept at one of the two moments.
    #[error("nobody knows how the folder looked {when}: {why}")]
    NotKept {
        /// `before step 1`, `after step 3`.
        when: String,
        /// As the journal says it.
        why: String,
    },
    /// The snapshots, the workspace or the trash cannot be used.
    #[error(transparent)]
    Workspace(#[from] gyrus_workspace::undo::UndoError<gyrus_journal::Error>),
}

impl From<Stop> for RunUndoError {
    fn from(stop: Stop) -> Self {
        Self::Stop(Box::new(stop))
    }
}
