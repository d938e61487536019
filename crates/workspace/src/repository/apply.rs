//! Carries out the staged steps, under the locks. Each step is one system call, so that a kill
//! leaves each file as it was or as it will be.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use super::{
    carried::CarryError,
    changes::StoreChanges,
    folder::{GitFolder, Modes, PathKind},
    locks::{LockResult, Locks},
    stage::StageStep,
};
use crate::root::RootError;

pub(super) fn apply(
    live: &GitFolder,
    todo: Vec<StageStep>,
    locks: &mut Locks<'_>,
    steps: &mut dyn FnMut(&'static str),
) -> Result<(), CarryError> {
    for step in todo {
        match step {
            StageStep::Rename { from, to, what } => {
                locks.release_below(&to)?;
                match put(live, &from, &to, locks.modes) {
                    // Put aside by a process that was killed.
                    Err(failed) if failed.error == Errno::NOENT => {}
                    done => done?,
                }
                steps(what);
            }
            StageStep::Log { from, to } => {
                let in_the_way = [Errno::ISDIR, Errno::NOTDIR, Errno::NOTEMPTY, Errno::EXIST];
                match put(live, &from, &to, locks.modes) {
                    Err(failed) if in_the_way.contains(&failed.error) => {}
                    done => done?,
                }
                steps("log written");
            }
            StageStep::Remove { path, what } => {
                // If the reference was packed, a folder may have its name now.
                if live.kind(&path)? == PathKind::File {
                    live.remove_file(&path)?;
                    steps(what);
                }
            }
            StageStep::RemoveEmpty { path, top } => live.remove_empty(&path, &top),
            StageStep::Lock(path) => {
                if locks.take(&path)? == LockResult::NoFolder {
                    return Err(CarryError::Locked { path });
                }
            }
        }
    }
    Ok(())
}

/// Moves a file to its place and creates missing folders.
fn put(live: &GitFolder, from: &Path, to: &Path, modes: Modes) -> Result<(), RootError> {
    clear(live, to);
    live.make_folder(to.parent().unwrap_or(Path::new("")), modes)?;
    live.replace(from, to)
}

/// Removes empty folders at the place of a file.
fn clear(live: &GitFolder, path: &Path) {
    if !live.kind(path).is_ok_and(|kind| kind == PathKind::Folder) {
        return;
    }
    for name in live.names(path).unwrap_or_default() {
        clear(live, &path.join(OsStr::from_bytes(&name)));
    }
    live.remove_empty(path, path.parent().unwrap_or(Path::new("")));
}

/// Removes empty folders below which references were removed or locked.
pub(super) fn tidy(live: &GitFolder, changes: &StoreChanges) {
    for change in &changes.refs {
        let path = changes.store.join(change.name.as_str());
        let kinds: PathBuf = change.name.as_str().split('/').take(2).collect();
        if let Some(above) = path.parent() {
            live.remove_empty(above, &changes.store.join(kinds));
        }
    }
}
