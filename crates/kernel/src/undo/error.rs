//! The error of planning or making an undo.

use gyrus_contract::RunId;

use crate::{Stop, runs::WorkspaceMoved};

/// The reason why a run could not be undone.
#[derive(Debug, thiserror::Error)]
pub enum RunUndoError {
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] gyrus_journal::Error),
    /// The run cannot be read.
    #[error(transparent)]
    Stop(Box<Stop>),
    /// The workspace is no longer where it was.
    #[error(transparent)]
    Moved(#[from] WorkspaceMoved),
    /// The step does not exist.
    #[error("run {run} has no complete step {step}; the last one is {last}")]
    NoStep {
        run: RunId,
        /// The number of the step that was requested.
        step: u32,
        /// The last complete step.
        last: u32,
    },
    /// The workspace has no snapshot at one of the two moments.
    #[error("there is no record of the folder {when}: {why}")]
    NotKept {
        /// The moment: `before step 1`, `after step 3`.
        when: String,
        /// The reason, from the journal.
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
