//! Differences between a folder and a snapshot.

use std::{io, path::Path};

use gyrus_contract::BlobId;
use serde::{Deserialize, Serialize};

use super::{
    MAX_FILE_BYTES, SnapshotError,
    manifest::{SnapshotEntries, SnapshotEntry, load_contents},
    name,
    rebuildable::{FolderDecisions, RebuildableRule},
    take::{FolderListing, Scope, UnreadEntry, list},
};
use crate::root::{self, RootFolder};

/// One path at which a folder differs from a snapshot. Ordered by path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Difference {
    /// Path relative to the folder. `\` is written `\\`, and a byte that is not UTF-8 as `\x` and
    /// two digits.
    pub path: String,
    /// The change since the snapshot.
    pub change: ChangeSinceSnapshot,
}

/// Change of a path since a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeSinceSnapshot {
    /// The entry exists in the folder only.
    Added,
    /// Content, kind, target or mode differ, or it cannot be read.
    Changed,
    /// The entry exists in the snapshot only.
    Removed,
}

/// Returns the differences between `workspace` and a snapshot, sorted by path. Both are read,
/// neither is changed.
///
/// # Errors
/// The store's error, a refused snapshot, or a folder that cannot be read or is over the limits.
pub fn differences<E>(
    id: &BlobId,
    load: impl Fn(&BlobId) -> Result<Vec<u8>, E>,
    workspace: &Path,
) -> Result<Vec<Difference>, SnapshotError<E>> {
    let mut before = load_contents(id, &load)?.entries;
    let failed = |source| SnapshotError::Folder {
        path: workspace.to_owned(),
        source,
    };
    let root = RootFolder::open(workspace).map_err(|error| failed(error.into()))?;
    let mut rule = RebuildableRule::new(workspace.to_owned(), FolderDecisions::by(&before));
    let listed = match list(&root, &mut rule, Scope::Snapshot).map_err(failed)? {
        FolderListing::Within(listed) => listed,
        FolderListing::TooLarge {
            files: entries,
            bytes,
        } => {
            return Err(SnapshotError::TooLarge {
                path: workspace.to_owned(),
                entries,
                bytes,
            });
        }
    };
    let mut found = Vec::new();
    for (path, now) in listed {
        let encoded = name::encode(&path);
        let change = match before.remove(&encoded) {
            None => Some(ChangeSinceSnapshot::Added),
            Some(entry) => {
                (!is_same(&root, &path, &entry, &now)).then_some(ChangeSinceSnapshot::Changed)
            }
        };
        found.extend(change.map(|change| Difference {
            path: encoded,
            change,
        }));
    }
    found.extend(removed(before));
    found.sort();
    Ok(found)
}

fn removed(left: SnapshotEntries) -> impl Iterator<Item = Difference> {
    left.into_keys().map(|path| Difference {
        path,
        change: ChangeSinceSnapshot::Removed,
    })
}

/// Whether the entry at `path` equals the one in the snapshot. Contents are compared, because times
/// may be wrong.
fn is_same(root: &RootFolder<'_>, path: &[u8], before: &SnapshotEntry, now: &UnreadEntry) -> bool {
    let stamp = match now {
        UnreadEntry::Other(entry) => return entry.agrees(before),
        UnreadEntry::File(stamp) => stamp,
    };
    let SnapshotEntry::File {
        blob,
        bytes,
        executable,
        mode,
        ..
    } = before
    else {
        return false;
    };
    if mode.is_some_and(|mode| mode != stamp.mode & 0o777) {
        return false;
    }
    if stamp.bytes != *bytes || (stamp.mode & 0o100 != 0) != *executable {
        return false;
    }
    let content = || -> io::Result<_> {
        let (folder, name) = root.parent(name::path(path))?;
        let file = root::open_file(&folder, name)?;
        file.map(|file| root::read(&file, MAX_FILE_BYTES))
            .transpose()
    };
    content().is_ok_and(|content| content.is_some_and(|content| BlobId::of(&content) == *blob))
}
