//! The folder of a run that goes from machine to machine: what its journal has of it.

use std::{collections::BTreeSet, path::Path};

use gyrus_contract::{BlobId, RunId};
use gyrus_journal::Store;
use gyrus_workspace::snapshot::materialise;

use crate::{
    Entry, KernelError, Snapshot, Stop, contents,
    effects::folder::{self, FOLDER_RECORDED},
    log_name, parse,
};

/// The run's folder, as recorded up to the last entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedFolder {
    /// The run has not recorded the folder yet.
    NotYet,
    Known {
        /// The run whose journal has the entry that names the snapshot: this one, or one below it.
        run: RunId,
        snapshot: BlobId,
    },
    /// The folder was not stored, for this reason.
    Missing(String),
}

impl RecordedFolder {
    /// Reads the newest record of the folder in the journals of a run and of those below it.
    pub fn of(store: &Store, run: RunId) -> Result<Self, KernelError> {
        Ok(FolderState::last(store, run)?.folder)
    }

    /// Lays the folder out in `into`, which is new or empty. Returns the files that are not there,
    /// because they are or hold secrets and stayed where the run worked before; `None` if the folder is
    /// not known.
    ///
    /// # Errors
    /// A content is missing, or the folder cannot be written.
    pub fn lay_out(&self, store: &Store, into: &Path) -> Result<Option<Vec<String>>, KernelError> {
        let RecordedFolder::Known { run, snapshot } = self else {
            return Ok(None);
        };
        let reader = store.reader(&log_name(*run))?;
        let load = |id: &BlobId| contents::load(&reader, id);
        let left_out = materialise(snapshot, load, into);
        left_out
            .map(Some)
            .map_err(|error| Stop::Failed(format!("the run's folder: {error}")).into())
    }
}

/// The folder at the newest entry that records it.
struct FolderState {
    folder: RecordedFolder,
    at_ms: i64,
}

impl FolderState {
    fn last(store: &Store, run: RunId) -> Result<Self, KernelError> {
        let mut last = Self {
            folder: RecordedFolder::NotYet,
            at_ms: 0,
        };
        let mut seen = BTreeSet::new();
        // Whether `last` is of a child: children work at the same time, and the newest of them counts.
        let mut of_child = false;
        for entry in store.reader(&log_name(run))?.entries(1)? {
            let entry = entry?;
            let snapshot = match parse(&entry).map_err(Stop::from)? {
                Entry::RunStarted(started) => started.snapshot,
                Entry::WorkspaceRecorded(recorded) => Some(recorded.snapshot),
                Entry::CycleEnded(ended) => ended.snapshot,
                Entry::Noted { kind, fact, .. } if kind == FOLDER_RECORDED => {
                    folder::recorded(&fact)
                }
                // Calls at the same time are compared with what was there before all of them: one
                // that was named before is not the newest.
                Entry::ToolStarted(started) => started
                    .before
                    .filter(|id| !seen.contains(id))
                    .map(Snapshot::Blob),
                Entry::ChildStarted(child) if store.exists(&log_name(child.child)) => {
                    let below = Self::last(store, child.child)?;
                    let counts = below.folder != RecordedFolder::NotYet;
                    if counts && (!of_child || below.at_ms >= last.at_ms) {
                        last = below;
                        of_child = true;
                    }
                    None
                }
                _ => None,
            };
            let folder = match snapshot {
                None => continue,
                Some(Snapshot::Blob(snapshot)) => {
                    seen.insert(snapshot);
                    RecordedFolder::Known { run, snapshot }
                }
                Some(Snapshot::Missing(why)) => RecordedFolder::Missing(why),
            };
            last = Self {
                folder,
                at_ms: entry.at_ms,
            };
            of_child = false;
        }
        Ok(last)
    }
}
