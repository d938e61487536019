//! Undoing the changes that a run made in its workspace.
//!
//! [`plan()`] finds the two snapshots of the run that are compared: the one to return to, and the
//! last; [`gyrus_workspace::undo`] reverts the difference. Each undo is recorded in a log of its
//! own.

mod error;
mod plan;
mod record;
mod repositories;

use std::{fs, io, os::unix::fs::PermissionsExt, path::Path};

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_workspace::undo::{UndoPlan, UndoResult};

use crate::{
    effects::{layers, repositories as repositories_of_run, withheld},
    log_name,
    runs::check_not_record,
};

pub use gyrus_workspace::undo::{EntryKind, UndoAction, UndoChange};

pub use self::{
    error::RunUndoError,
    plan::RunUndo,
    record::{Undone, forget, undone},
    repositories::RepositoryUndo,
};

/// Plans to revert the changes of `run` after its step `to`, as far as they still exist: what an
/// earlier undo of fewer steps restored is as the run left it.
///
/// # Errors
/// Returns an error when the run is a record, when it, its snapshots or its workspace cannot be read,
/// or when the step does not exist.
pub fn plan(store: &Store, run: RunId, to: u32) -> Result<RunUndo, RunUndoError> {
    check_not_record(store, run)?;
    let undone = undone(store, run)?;
    let fewer = undone.iter().map(|undone| undone.to);
    let fewer: Vec<u32> = fewer.filter(|step| *step > to).collect();
    plan::plan(store, run, to, &fewer)
}

/// Plans to make the changes of `run` in another folder, which must be in the state that the run's
/// own had at the start.
///
/// # Errors
/// Returns an error when the run, its snapshots or the folder cannot be read.
pub fn plan_in(store: &Store, run: RunId, folder: &Path) -> Result<UndoPlan, RunUndoError> {
    plan::plan_in(store, run, folder)
}

/// Returns the changes of `run` after its step `since`, as a patch that `git apply` takes, from the
/// journal alone; and the paths that are not in it because they are or hold secrets.
///
/// # Errors
/// Returns an error when the run or its snapshots cannot be read, or when the step does not exist.
pub fn recorded_patch(
    store: &Store,
    run: RunId,
    since: u32,
) -> Result<(String, Vec<String>), RunUndoError> {
    plan::recorded_patch(store, run, since)
}

/// Makes the changes of a plan of [`plan_in`]. Removed or overwritten files are copied below
/// `trash`, a new folder.
///
/// # Errors
/// Returns an error before anything was changed. Later failures are among the refused.
pub fn make(
    store: &Store,
    run: RunId,
    plan: &UndoPlan,
    trash: &Path,
) -> Result<UndoResult, RunUndoError> {
    let reader = store.reader(&log_name(run))?;
    let load = |id: &gyrus_contract::BlobId| crate::contents::load(&reader, id);
    Ok(plan.apply(&load, trash, &mut || {})?)
}

/// Removes the copies of workspace files and repositories that a run stored outside of its journal.
/// The changes that its calls made there cannot be undone afterwards. Returns the number of bytes
/// freed.
///
/// # Errors
/// Returns an error when a folder cannot be read or removed.
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

/// Removes a folder without following links in it. Returns the size of its files in bytes.
fn remove(folder: &Path) -> io::Result<u64> {
    // The operating system leaves folders in layers that deny all access.
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
