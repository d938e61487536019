//! Access of a private copy to the real objects: the list of alternates in `objects/info`.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use rustix::fs::Mode;
use serde::{Deserialize, Serialize};

use super::{
    RepositoryError, copying,
    folder::{GitFolder, PathKind},
    stamps::REAL_OBJECTS,
};

/// Maximum size of a list of alternates that is read, in bytes.
const MAX_LIST: u64 = 64 << 10;

/// Place at which commands find the real objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RealObjects {
    /// Bound read-only beside the private objects, at the path among the copy's binds. The copy is
    /// bound over the real git directory, whose own objects are then out of sight.
    Bound,
    /// The objects are at their usual place. The copy is used by its path (`GIT_DIR`), without any
    /// mount.
    InPlace,
}

/// Returns the file of a store that lists its alternates.
pub(super) fn path(store: &Path) -> PathBuf {
    store.join("objects/info/alternates")
}

/// Returns the list of alternates of a private store.
pub(super) fn list(
    live: &GitFolder,
    store: &Path,
    real: RealObjects,
) -> Result<Vec<u8>, RepositoryError> {
    use std::os::unix::ffi::OsStrExt as _;

    let objects = live.path().join(store).join("objects");
    let own = match real {
        RealObjects::Bound => live.path().join(store).join(REAL_OBJECTS),
        RealObjects::InPlace => objects.clone(),
    };
    let mut list = own.as_os_str().as_bytes().to_vec();
    list.push(b'\n');
    // Git would take those of the real store relative to where they are bound.
    let others = live.read(&path(store), MAX_LIST)?.unwrap_or_default();
    for line in others.split(|byte| *byte == b'\n') {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        if !line.starts_with(b"/") && !line.starts_with(b"\"") {
            list.extend(objects.as_os_str().as_bytes());
            list.push(b'/');
        }
        list.extend(line);
        list.push(b'\n');
    }
    Ok(list)
}

/// Ensures that a private store has a folder for its own objects, and finds the real ones.
pub(super) fn restore(
    private: &GitFolder,
    store: &Path,
    list: &[u8],
) -> Result<(), RepositoryError> {
    for folder in ["objects/info", "objects/pack", REAL_OBJECTS] {
        if private.kind(&store.join(folder))? != PathKind::Folder {
            copying::make_folder(private, &store.join(folder))?;
        }
    }
    if is_intact(private, store, list) {
        return Ok(());
    }
    let path = path(store);
    private.remove_tree(&path)?;
    let mode = Mode::from_raw_mode(0o644);
    Ok(private.write_new(&path, list, mode)?)
}

/// Completes a store that was copied out of a private copy: the real objects that stood beside its
/// own, and were copied with it, become its own.
pub(super) fn make_whole(git: &GitFolder, store: &Path) -> Result<(), RepositoryError> {
    let real = store.join(REAL_OBJECTS);
    if git.kind(&real)? != PathKind::Folder {
        return Ok(());
    }
    let modes = git.modes()?;
    for folder in names(git, &real)? {
        let from = real.join(&folder);
        // Lists of alternates are not objects.
        if folder == "info" || git.kind(&from)? != PathKind::Folder {
            continue;
        }
        let to = store.join("objects").join(&folder);
        git.make_folder(&to, modes)?;
        for name in names(git, &from)? {
            let (from, to) = (from.join(&name), to.join(&name));
            if git.kind(&from)? == PathKind::File && git.kind(&to)? == PathKind::Missing {
                git.replace(&from, &to)?;
            }
        }
    }
    git.remove_tree(&real)?;
    let list = path(store);
    let Some(text) = git.read(&list, MAX_LIST)? else {
        return Ok(());
    };
    let is_ours = |line: &[u8]| line.ends_with(format!("/{REAL_OBJECTS}").as_bytes());
    let lines = text.split(|byte| *byte == b'\n');
    let rest: Vec<&[u8]> = lines
        .filter(|line| !line.is_empty() && !is_ours(line))
        .collect();
    git.remove_tree(&list)?;
    if !rest.is_empty() {
        let mode = Mode::from_raw_mode(0o644);
        git.write_new(&list, &rest.join(&b'\n'), mode)?;
    }
    Ok(())
}

fn names(git: &GitFolder, folder: &Path) -> Result<Vec<OsString>, RepositoryError> {
    let names = git.names(folder)?.into_iter();
    Ok(names.map(OsString::from_vec).collect())
}

/// Whether a private store's list is as it should be.
pub(super) fn is_intact(private: &GitFolder, store: &Path, list: &[u8]) -> bool {
    private
        .read(&path(store), MAX_LIST)
        .is_ok_and(|found| found.as_deref() == Some(list))
}
