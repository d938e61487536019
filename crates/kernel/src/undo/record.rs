//! The record of undos, as a log of its own beside the run's: a run that has ended gets no entries.
//!
//! Its kind is `undos`, its id the run's. Each undo has an entry before the first change and one
//! after the last; the first without the second means that the undo was interrupted. The process
//! that writes the log holds it, so a run is never undone twice at once.

use std::path::{Path, PathBuf};

use gyrus_contract::{BlobId, RunId};
use gyrus_journal::{LockWait, LogName, NewEntry, Store, Writer};
use gyrus_workspace::{
    layer,
    undo::{UndoChange, UndoRefusal, UndoResult},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{RepositoryUndo, RunUndo, RunUndoError, repositories};
use crate::{contents, log_name};

/// The kind of these logs.
const UNDOS: &str = "undos";
const BEGAN: &str = "undo.began";
const ENDED: &str = "undo.done";

/// A recorded undo of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// The time at which the undo began, in milliseconds since 1970.
    pub at_ms: i64,
    /// The step after which the workspace was as it should become; 0 means before the run.
    pub to: u32,
    /// The folder with copies of the replaced files.
    pub trash: PathBuf,
    /// Number of reverted paths, and of those left alone; `None` if the undo was interrupted.
    pub ended: Option<(u64, u64)>,
}

#[derive(Serialize, Deserialize)]
struct Began {
    to: u32,
    trash: PathBuf,
    /// The planned changes, in a blob because there may be thousands.
    changes: BlobId,
}

#[derive(Serialize, Deserialize)]
struct UndoSummary {
    undone: u64,
    left_alone: u64,
    /// The paths that were reverted and those that were refused.
    paths: BlobId,
}

#[derive(Serialize)]
struct UndonePaths<'a> {
    undone: &'a [UndoChange],
    refused: &'a [UndoRefusal],
}

fn name(run: RunId) -> LogName {
    LogName::new(UNDOS, &run.to_string()).expect("an id has only letters, digits and dashes")
}

impl RunUndo {
    /// Returns all reverted changes: files by path, then repositories.
    #[must_use]
    pub fn changes(&self) -> Vec<UndoChange> {
        let repositories = self.repositories.iter().map(RepositoryUndo::change);
        let files = self.plan.changes.iter().chain(&self.files_back);
        files.cloned().chain(repositories).collect()
    }

    /// Returns the run's changes that still exist unchanged, as a patch that `git apply` takes,
    /// with the paths that are not in it: files of folders that are too large for snapshots, and
    /// repositories.
    ///
    /// # Errors
    /// Returns an error when a content or the workspace cannot be read.
    pub fn patch(&self, store: &Store) -> Result<(String, Vec<String>), RunUndoError> {
        let reader = store.reader(&log_name(self.run))?;
        let patch = self
            .plan
            .patch(&|id: &BlobId| contents::load(&reader, id))?;
        let repositories = self.repositories.iter().map(RepositoryUndo::change);
        let others = self.files_back.iter().cloned().chain(repositories);
        let refused = self.plan.refused.iter().map(|refused| refused.path.clone());
        let left_out = others.map(|change| change.path).chain(refused);
        Ok((patch, left_out.collect()))
    }

    /// Carries out the plan, with copies in a new folder below `trash` and a record of it.
    ///
    /// # Errors
    /// Returns the errors of [`gyrus_workspace::undo::Plan::apply`], or one when the record cannot
    /// be written or another process undoes this run.
    pub fn carry_out(
        &self,
        store: &Store,
        trash: &Path,
        step: &mut dyn FnMut(),
    ) -> Result<(UndoResult, PathBuf), RunUndoError> {
        let log = name(self.run);
        let writer = if store.exists(&log) {
            store.take(&log, LockWait::IfFree)?.0
        } else {
            store.create(&log)?
        };
        let trash = trash
            .join(self.run.to_string())
            .join(writer.next_seq().to_string());
        let began = Began {
            to: self.to,
            trash: trash.clone(),
            changes: blob(&writer, &self.changes())?,
        };
        append(&writer, BEGAN, &began)?;
        step();
        let reader = store.reader(&log_name(self.run))?;
        let (workspace, run) = (&self.plan.workspace, store.folder(&log_name(self.run)));
        let (restored, refused) =
            repositories::restore_all(&self.repositories, workspace, &run, step);
        let files = layer::take_back(workspace, &self.files, true, step);
        let files = files.map_err(|error| crate::Stop::Failed(error.to_string()))?;
        let load = |id: &BlobId| contents::load(&reader, id);
        let mut done = self.plan.apply(&load, &trash, step)?;
        done.undone.extend(files.done);
        for refused in files.refused {
            if !done.refused.contains(&refused) {
                done.refused.push(refused);
            }
        }
        done.undone.extend(restored);
        done.refused.extend(refused);
        let ended = UndoSummary {
            undone: done.undone.len() as u64,
            left_alone: done.refused.len() as u64,
            paths: blob(
                &writer,
                &UndonePaths {
                    undone: &done.undone,
                    refused: &done.refused,
                },
            )?,
        };
        append(&writer, ENDED, &ended)?;
        Ok((done, trash))
    }

    /// Removes the files that an interrupted undo left in the workspace.
    pub fn clean(&self) -> Result<(), RunUndoError> {
        Ok(self.plan.clean()?)
    }
}

fn blob(writer: &Writer, value: &impl Serialize) -> Result<BlobId, RunUndoError> {
    let bytes = serde_json::to_vec(value).expect("paths and words are plain JSON");
    Ok(writer.put_blob(&bytes)?)
}

fn append(writer: &Writer, kind: &str, value: &impl Serialize) -> Result<(), RunUndoError> {
    let payload = serde_json::value::to_raw_value(value).expect("numbers and paths are plain JSON");
    writer.append(&[NewEntry {
        kind,
        version: 1,
        payload,
    }])?;
    writer.barrier_blocking()?;
    Ok(())
}

/// Returns the undos of a run, oldest first.
///
/// # Errors
/// Returns an error when the record is damaged.
pub fn undone(store: &Store, run: RunId) -> Result<Vec<Undone>, RunUndoError> {
    let log = name(run);
    let mut found: Vec<Undone> = Vec::new();
    if !store.exists(&log) {
        return Ok(found);
    }
    for entry in store.reader(&log)?.entries(1)? {
        let entry = entry?;
        match entry.kind.as_str() {
            BEGAN => found.extend(payload::<Began>(&entry).map(|began| Undone {
                at_ms: entry.at_ms,
                to: began.to,
                trash: began.trash,
                ended: None,
            })),
            ENDED => {
                if let (Some(last), Some(ended)) =
                    (found.last_mut(), payload::<UndoSummary>(&entry))
                {
                    last.ended = Some((ended.undone, ended.left_alone));
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Removes the record of the undos of a run. Returns the trash folders that it named, which stay:
/// their content belongs to the person.
///
/// # Errors
/// Returns an error when the record is damaged, or another process undoes this run.
pub fn forget(store: &Store, run: RunId) -> Result<Vec<PathBuf>, RunUndoError> {
    let trash = undone(store, run)?.into_iter().map(|undone| undone.trash);
    let trash = trash.filter(|trash| trash.exists()).collect();
    let log = name(run);
    if store.exists(&log) {
        store.remove(&log)?;
    }
    Ok(trash)
}

/// Parses a payload; returns `None` if a newer version wrote it, or if it was erased.
fn payload<T: DeserializeOwned>(entry: &gyrus_journal::LogEntry) -> Option<T> {
    match &entry.payload {
        gyrus_journal::Payload::Json(json) => serde_json::from_str(json.get()).ok(),
        _ => None,
    }
}
