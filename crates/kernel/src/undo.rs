//! Taking back what a run changed in its workspace.
//!
//! [`plan()`] finds the two snapshots of the run that are compared, the one to go back to and its
//! last; how that is taken back is [`gyrus_workspace::undo`]. What was undone is recorded in a log
//! of its own.

mod plan;
mod record;
mod repositories;

use std::{fs, io, os::unix::fs::PermissionsExt, path::Path};

use gyrus_contract::RunId;
use gyrus_journal::Store;

use crate::{
    Stop,
    effects::{layers, repositories as repositories_of_run, withheld},
    log_name,
};

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

/// Removes what a run kept of its workspace and of repositories outside of its journal. Nothing that
/// its calls changed there can be taken back afterwards. Returns how many bytes that were.
///
/// # Errors
/// When a folder cannot be read or removed.
pub fn drop_kept(store: &Store, run: RunId) -> io::Result<u64> {
    let folder = store.folder(&log_name(run));
    let mut dropped = 0;
    for name in [
        layers::FOLDER,
        repositories_of_run::FOLDER,
        withheld::FOLDER,
    ] {
        let kept = folder.join(name);
        if kept.exists() {
            dropped += remove(&kept)?;
        }
    }
    Ok(dropped)
}

/// Removes a folder, links in it not followed. Returns the bytes of its files.
fn remove(folder: &Path) -> io::Result<u64> {
    // The operating system leaves folders in layers that nobody may look into.
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let data = entry.metadata()?;
        if data.is_dir() {
            bytes += remove(&entry.path())?;
        } else {
            bytes += data.len();
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir(folder)?;
    Ok(bytes)
}

impl From<Stop> for RunUndoError {
    fn from(stop: Stop) -> Self {
        Self::Stop(Box::new(stop))
    }
}
