//! Stamps that show whether an entry was changed after it was moved.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    ops::Bound,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use gyrus_contract::Digest;
use rustix::{fs::FileType, io::Errno};

use crate::root::{RootError, RootFolder, failed};

/// Maximum depth of examined folders.
const MAX_DEPTH: usize = 2_000;

/// Stamps that override the present state of paths; `None` for a path that does not exist.
pub(super) type StampOverrides = BTreeMap<PathBuf, Option<Digest>>;

/// Returns a digest of a file's inode, size, mode and times, or of the contents of a folder; `None`
/// if the path does not exist.
pub(super) fn stamp(root: &RootFolder<'_>, path: &Path) -> Result<Option<Digest>, RootError> {
    stamp_after(root, path, &StampOverrides::new())
}

/// Like [`stamp`], but `states` overrides the present state of paths.
pub(super) fn stamp_after(
    root: &RootFolder<'_>,
    path: &Path,
    states: &StampOverrides,
) -> Result<Option<Digest>, RootError> {
    of(root, path, states, 0)
}

fn of(
    root: &RootFolder<'_>,
    path: &Path,
    states: &StampOverrides,
    depth: usize,
) -> Result<Option<Digest>, RootError> {
    if let Some(state) = states.get(path) {
        return Ok(*state);
    }
    let Some(stat) = root.stat(path)? else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    bytes.extend(stat.st_ino.to_le_bytes());
    bytes.extend(stat.st_mode.to_le_bytes());
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        bytes.extend(stat.st_size.to_le_bytes());
        for (seconds, rest) in [
            (stat.st_mtime, stat.st_mtime_nsec),
            (stat.st_ctime, stat.st_ctime_nsec),
        ] {
            bytes.extend(seconds.to_le_bytes());
            bytes.extend(rest.to_le_bytes());
        }
        return Ok(Some(Digest::of(&bytes)));
    }
    if depth > MAX_DEPTH {
        return Err(failed(path, Errno::NAMETOOLONG));
    }
    let mut names: BTreeSet<OsString> = root.names(path)?.into_iter().collect();
    let within = (Bound::Excluded(path), Bound::Unbounded);
    let noted = states.range::<Path, _>(within);
    let noted = noted.take_while(|(inner, _)| inner.starts_with(path));
    names.extend(
        noted
            .filter(|(inner, _)| inner.parent() == Some(path))
            .filter_map(|(inner, _)| inner.file_name().map(OsString::from)),
    );
    for name in names {
        let Some(digest) = of(root, &path.join(&name), states, depth + 1)? else {
            continue;
        };
        bytes.extend(name.as_bytes());
        bytes.push(0);
        bytes.extend(digest.to_string().as_bytes());
    }
    Ok(Some(Digest::of(&bytes)))
}
