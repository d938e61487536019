//! Lays a snapshot out as a new folder.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use gyrus_contract::BlobId;
use rustix::fs::{Mode, OFlags};

use super::{
    SnapshotError,
    manifest::{SnapshotContents, SnapshotEntry, load_contents},
    name,
    pack::OpenPack,
};
use crate::root::RootFolder;

/// Lays a snapshot out in `into`, which must be new (its parent must exist) or an empty folder.
/// What the snapshot skipped is not there, nor are files whose contents were kept apart and cannot
/// be loaded: their paths are returned. If anything else fails, `into` is as empty as it was; after
/// a crash it may hold a part, and is then refused the next time.
///
/// # Errors
/// The store's error, a refused snapshot, or a folder that cannot be used.
pub fn materialise<E>(
    id: &BlobId,
    load: impl Fn(&BlobId) -> Result<Vec<u8>, E>,
    into: &Path,
) -> Result<Vec<String>, SnapshotError<E>> {
    let contents = load_contents(id, &load)?;
    let failed = |source| SnapshotError::Folder {
        path: into.to_owned(),
        source,
    };
    let created = match fs::create_dir(into) {
        Ok(()) => true,
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            let empty = fs::read_dir(into).is_ok_and(|mut inside| inside.next().is_none());
            if !empty {
                return Err(SnapshotError::NotEmpty {
                    path: into.to_owned(),
                });
            }
            false
        }
        Err(e) => return Err(failed(e)),
    };
    let done = RootFolder::open(into)
        .map_err(|error| failed(error.into()))
        .and_then(|root| lay_out(&root, &contents, &load, into));
    if done.is_err() {
        // The first error is the one to report; leftovers are reported by the next attempt.
        let _ = clear(into, created);
    }
    done
}

/// Writes all entries. Parents sort before their contents, so one pass makes every folder in time.
/// Links come last: nothing is written while one exists.
fn lay_out<E>(
    root: &RootFolder<'_>,
    contents: &SnapshotContents,
    load: &impl Fn(&BlobId) -> Result<Vec<u8>, E>,
    into: &Path,
) -> Result<Vec<String>, SnapshotError<E>> {
    let mut left_out = Vec::new();
    let mut links = Vec::new();
    let mut folders = Vec::new();
    let opened = OpenPack::default();
    for (path, entry) in &contents.entries {
        let decoded = name::decode(path).expect("the entries were checked when they were loaded");
        let at = |source| SnapshotError::Folder {
            path: into.join(name::path(&decoded)),
            source,
        };
        match entry {
            SnapshotEntry::Folder { mode } => {
                make_folder(root, &decoded).map_err(at)?;
                folders.push((decoded, *mode));
            }
            SnapshotEntry::File {
                executable,
                mode,
                apart,
                ..
            } => {
                let content = match contents.read(entry, &opened, load) {
                    Err(_) if *apart => {
                        left_out.push(path.clone());
                        continue;
                    }
                    content => content?,
                };
                make_file(root, &decoded, &content, *executable, *mode).map_err(at)?;
            }
            SnapshotEntry::Link { target } => links.push((decoded, target)),
            SnapshotEntry::Skipped { .. } => {}
        }
    }
    for (path, target) in links {
        let target = name::decode(target).expect("the entries were checked when they were loaded");
        let path = name::path(&path);
        let (folder, name) = root.parent(path).map_err(|e| SnapshotError::Folder {
            path: into.to_owned(),
            source: e.into(),
        })?;
        rustix::fs::symlinkat(&target[..], &folder, name).map_err(|e| SnapshotError::Folder {
            path: into.join(path),
            source: e.into(),
        })?;
    }
    // Last, and from the deepest: a folder's mode may forbid adding files.
    for (path, mode) in folders.into_iter().rev() {
        let Some(mode) = mode else { continue };
        let path = name::path(&path);
        let set = || -> io::Result<()> {
            let folder = root.folder(path)?;
            Ok(rustix::fs::fchmod(folder, Mode::from_raw_mode(mode))?)
        };
        set().map_err(|source| SnapshotError::Folder {
            path: into.join(path),
            source,
        })?;
    }
    Ok(left_out)
}

fn make_folder(root: &RootFolder<'_>, path: &[u8]) -> io::Result<()> {
    let (folder, name) = root.parent(name::path(path))?;
    Ok(rustix::fs::mkdirat(
        folder,
        name,
        Mode::from_raw_mode(0o777),
    )?)
}

fn make_file(
    root: &RootFolder<'_>,
    path: &[u8],
    content: &[u8],
    executable: bool,
    exactly: Option<u32>,
) -> io::Result<()> {
    let (folder, name) = root.parent(name::path(path))?;
    let mode = if executable { 0o777 } else { 0o666 };
    // Never open to more people than it was, not even for a moment.
    let mode = Mode::from_raw_mode(exactly.map_or(mode, |exactly| mode & exactly));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, mode)?;
    if let Some(exactly) = exactly {
        rustix::fs::fchmod(&file, Mode::from_raw_mode(exactly))?;
    }
    File::from(file).write_all(content)
}

/// Removes everything that was written.
fn clear(into: &Path, created: bool) -> io::Result<()> {
    if created {
        return fs::remove_dir_all(into);
    }
    for inside in fs::read_dir(into)? {
        let inside = inside?;
        if inside.file_type()?.is_dir() {
            fs::remove_dir_all(inside.path())?;
        } else {
            fs::remove_file(inside.path())?;
        }
    }
    Ok(())
}
