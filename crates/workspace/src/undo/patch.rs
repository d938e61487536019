//! The changes that an undo would take back, as a patch.

use std::collections::{BTreeMap, BTreeSet};

use gyrus_contract::{BlobId, git_mode};

use super::{
    UndoError, UndoPlan,
    look::{self, look},
};
use crate::{
    patch::{self, FileVersion},
    root::RootFolder,
    snapshot::{
        SnapshotError,
        manifest::{SnapshotContents, SnapshotEntry, load_contents},
        name,
        pack::OpenPack,
    },
};

/// Git's mode of a symbolic link.
const LINK: u32 = 0o120_000;

#[derive(PartialEq, Eq)]
struct PatchSide {
    mode: u32,
    content: Vec<u8>,
}

impl PatchSide {
    fn version(&self) -> FileVersion<'_> {
        FileVersion {
            mode: self.mode,
            content: &self.content,
        }
    }

    /// Returns an entry with its content; `None` for an entry that git does not store.
    fn of(entry: &SnapshotEntry, content: Vec<u8>) -> Option<Self> {
        match entry {
            SnapshotEntry::File { executable, .. } => Some(Self {
                mode: git_mode(*executable),
                content,
            }),
            SnapshotEntry::Link { target } => Some(Self {
                mode: LINK,
                content: name::decode(target)?,
            }),
            SnapshotEntry::Folder { .. } | SnapshotEntry::Skipped { .. } => None,
        }
    }
}

type PathSides = BTreeMap<Vec<u8>, (Option<PatchSide>, Option<PatchSide>)>;

impl UndoPlan {
    /// Returns a patch that makes the undone changes again, for `git apply` in the folder as it was
    /// before. Git's own files are left out; `load` reads a blob.
    ///
    /// # Errors
    /// When the workspace or a content cannot be read.
    pub fn patch<E>(
        &self,
        load: &dyn Fn(&BlobId) -> Result<Vec<u8>, E>,
    ) -> Result<String, UndoError<E>> {
        let failed = |source| UndoError::Folder {
            path: self.workspace.clone(),
            source,
        };
        let root = RootFolder::open(&self.workspace).map_err(|error| failed(error.into()))?;
        let opened = OpenPack::default();
        let mut changed = PathSides::new();
        for change in &self.changes {
            let path = name::decode(&change.path).unwrap_or_default();
            let mut parts = name::path(&path).components();
            if parts.any(|part| part.as_os_str() == ".git") {
                continue;
            }
            let old = self.before.entries.get(&change.path);
            let old = side(&self.before, old, &opened, load)?;
            let new = look(&root, &path).map_err(failed)?;
            let new = new.and_then(|look::PresentEntry { entry, content, .. }| {
                PatchSide::of(&entry, content)
            });
            changed.insert(path, (old, new));
        }
        Ok(text(changed))
    }
}

/// Returns the changes between two snapshots as a patch, without looking at any folder; and the paths
/// that are not in it because their contents were kept apart and are not here. Git's own files are left
/// out; `load` reads a blob.
///
/// # Errors
/// When a snapshot or a content cannot be read.
pub fn patch_between<E>(
    before: &BlobId,
    after: &BlobId,
    load: &dyn Fn(&BlobId) -> Result<Vec<u8>, E>,
) -> Result<(String, Vec<String>), UndoError<E>> {
    let (before, after) = (load_contents(before, &load)?, load_contents(after, &load)?);
    let (mut changed, mut left_out) = (PathSides::new(), Vec::new());
    let paths: BTreeSet<&String> = before.entries.keys().chain(after.entries.keys()).collect();
    let (opened_before, opened_after) = (OpenPack::default(), OpenPack::default());
    for path in paths {
        let (old, new) = (before.entries.get(path), after.entries.get(path));
        if old == new || path.split('/').any(|part| part == ".git") {
            continue;
        }
        let is_apart = |entry: Option<&SnapshotEntry>| {
            matches!(entry, Some(SnapshotEntry::File { apart: true, .. }))
        };
        let sides = side(&before, old, &opened_before, load)
            .and_then(|old| Ok((old, side(&after, new, &opened_after, load)?)));
        match sides {
            Ok((old, new)) if old == new => {}
            Ok(sides) => {
                changed.insert(name::decode(path).unwrap_or_default(), sides);
            }
            Err(_) if is_apart(old) || is_apart(new) => left_out.push(path.clone()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok((text(changed), left_out))
}

fn side<E>(
    contents: &SnapshotContents,
    entry: Option<&SnapshotEntry>,
    opened: &OpenPack,
    load: &dyn Fn(&BlobId) -> Result<Vec<u8>, E>,
) -> Result<Option<PatchSide>, SnapshotError<E>> {
    Ok(match entry {
        None => None,
        Some(file @ SnapshotEntry::File { .. }) => {
            PatchSide::of(file, contents.read(file, opened, load)?)
        }
        Some(other) => PatchSide::of(other, Vec::new()),
    })
}

fn text(mut changed: PathSides) -> String {
    let mut text = String::new();
    for (from, to) in renamed(&changed) {
        changed.remove(&from);
        if let Some((_, Some(side))) = changed.remove(&to) {
            text.push_str(&patch::of_renamed(&from, &to, side.mode));
        }
    }
    for (path, (old, new)) in &changed {
        let (old, new) = (old.as_ref(), new.as_ref());
        text.push_str(&patch::of_file(
            path,
            old.map(PatchSide::version),
            new.map(PatchSide::version),
        ));
    }
    text
}

/// Returns the removed files that equal a new file, each once with that file.
fn renamed(changed: &PathSides) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut gone: Vec<_> = changed
        .iter()
        .filter_map(|(path, sides)| match sides {
            (Some(side), None) if !side.content.is_empty() => Some((path, side)),
            _ => None,
        })
        .collect();
    let mut found = Vec::new();
    for (path, sides) in changed {
        let (None, Some(side)) = sides else { continue };
        if let Some(at) = gone.iter().position(|(_, gone)| *gone == side) {
            let (from, _) = gone.remove(at);
            found.push((from.clone(), path.clone()));
        }
    }
    found
}
