//! Undoing the changes of commands in repositories: branches, `HEAD`, index and settings become
//! what they were, where nobody changed the same since. Objects stay.

use std::path::{Path, PathBuf};

use gyrus_contract::BlobId;
use gyrus_journal::LogReader;
use gyrus_process::Programs;
use gyrus_workspace::{
    layer::KeptFiles,
    repository::{self, CarryRecord, Restorable},
    undo::{EntryKind, UndoAction, UndoChange, UndoPlan, UndoRefusal},
};

use super::RunUndoError;
use crate::{
    Stop, contents,
    effects::{repositories::copy_folder, to_undo::ToUndo},
};

/// The plan to undo the changes of one repository.
#[derive(Debug)]
pub struct RepositoryUndo {
    /// The path of the git directory, relative if it is in the workspace.
    pub name: String,
    /// The changes of commands in the repository, newest first.
    carried: Vec<CarryRecord>,
}

impl RepositoryUndo {
    /// Returns the plan as one of the changes that an undo lists.
    #[must_use]
    pub fn change(&self) -> UndoChange {
        UndoChange {
            path: self.name.clone(),
            action: UndoAction::Restore,
            kind: EntryKind::Repository,
            bytes: 0,
        }
    }
}

/// Reads the changes of calls, oldest first: in repositories, and of files that no snapshot holds.
pub(super) fn read(
    reader: &LogReader,
    blobs: &[BlobId],
) -> Result<(Vec<CarryRecord>, Vec<KeptFiles>), RunUndoError> {
    let (mut carried, mut files) = (Vec::new(), Vec::new());
    for id in blobs {
        // Pruning drops the blob, and an export leaves it out.
        let bytes = contents::load(reader, id).map_err(|error| RunUndoError::NotKept {
            when: "before its commands".to_owned(),
            why: error.to_string(),
        })?;
        let read: ToUndo = serde_json::from_slice(&bytes)
            .map_err(|error| Stop::Failed(format!("what a command changed: {error}")))?;
        carried.extend(read.repositories);
        files.extend(read.files);
    }
    Ok((carried, files))
}

/// Returns the git directories in the workspace, as relative paths.
pub(super) fn in_folder(carried: &[CarryRecord], workspace: &Path) -> Vec<PathBuf> {
    let below = carried.iter();
    let below = below.filter_map(|one| one.repository.strip_prefix(workspace).ok());
    let mut below: Vec<PathBuf> = below.map(Path::to_path_buf).collect();
    below.sort();
    below.dedup();
    below
}

/// Plans the undo of the repositories. Repositories that the run created are removed with their
/// files.
pub(super) fn plan(carried: Vec<CarryRecord>, plan: &mut UndoPlan) -> Vec<RepositoryUndo> {
    let mut groups: Vec<(PathBuf, Vec<CarryRecord>)> = Vec::new();
    for one in carried.into_iter().rev() {
        match groups.iter_mut().find(|(path, _)| *path == one.repository) {
            Some((_, group)) => group.push(one),
            None => groups.push((one.repository.clone(), vec![one])),
        }
    }
    let mut found = Vec::new();
    for (path, mut carried) in groups {
        let below = path.strip_prefix(&plan.workspace).ok();
        if below.is_some_and(|below| !plan.apart.iter().any(|apart| apart == below)) {
            continue;
        }
        let name = below.unwrap_or(&path).display().to_string();
        match first_to_restore(&carried) {
            Ok(None) => plan.already += 1,
            Ok(Some(first)) => {
                carried.drain(..first);
                found.push(RepositoryUndo { name, carried });
            }
            Err(why) => plan.refused.push(UndoRefusal { path: name, why }),
        }
    }
    found
}

/// Returns the index of the first change to revert, after those that an interrupted undo reverted.
/// Returns `None` if all of them were.
fn first_to_restore(carried: &[CarryRecord]) -> Result<Option<usize>, String> {
    let look = |one: &CarryRecord| {
        repository::look_at_restoring(one).unwrap_or_else(|error| Restorable::No(error.to_string()))
    };
    let Some(oldest) = carried.last() else {
        return Ok(None);
    };
    if look(oldest) == Restorable::Done {
        return Ok(None);
    }
    let looked: Vec<Restorable> = carried.iter().map(look).collect();
    match (
        looked.iter().position(|one| *one == Restorable::Yes),
        looked.into_iter().next(),
    ) {
        (Some(first), _) => Ok(Some(first)),
        (None, Some(Restorable::No(why))) => Err(why),
        (None, _) => Ok(None),
    }
}

/// Reverts the planned changes of the repositories of a run, whose folder is `run`. Returns those
/// that were reverted, and those left alone.
pub(super) fn restore_all(
    repositories: &[RepositoryUndo],
    workspace: &Path,
    run: &Path,
    step: &mut dyn FnMut(),
) -> (Vec<UndoChange>, Vec<UndoRefusal>) {
    let programs = Programs::of_this_process();
    programs.keep_out_of(workspace);
    let git = programs.find("git").map(|program| program.path);
    let (mut done, mut refused) = (Vec::new(), Vec::new());
    for one in repositories {
        let restored = git
            .as_ref()
            .map_err(ToString::to_string)
            .and_then(|git| restore(one, run, git, step));
        match restored {
            Ok(()) => done.push(one.change()),
            Err(why) => refused.push(UndoRefusal {
                path: one.name.clone(),
                why,
            }),
        }
    }
    (done, refused)
}

fn restore(
    one: &RepositoryUndo,
    run: &Path,
    git: &Path,
    step: &mut dyn FnMut(),
) -> Result<(), String> {
    for carried in &one.carried {
        let folder = copy_folder(run, &carried.repository).map_err(|error| error.to_string())?;
        let mut stepped = |_: &'static str| step();
        repository::recover(&folder, git, None, &mut stepped).map_err(|error| error.to_string())?;
        repository::restore(carried, &folder, git, &mut stepped)
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}
