//! Exact changes of a folder, which can be undone and redone.
//!
//! A [`ChangeSet`] says of each of its paths what stood there before and what stands there after.
//! Taking back and applying are one act in two directions: both happen only where the path is
//! still as the other side says, and both keep a copy of what goes.

use std::{
    collections::BTreeSet,
    fmt, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use gyrus_contract::{BlobId, ChangedPath, PathChange};
use gyrus_text::counted;
use rustix::{
    fs::{AtFlags, CWD, FileType},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::{
    contents::{ContentStore, ContentToKeep},
    layer::CallLayer,
    root::{self, RootFolder},
    snapshot::{
        Snapshots,
        manifest::{SnapshotContents, SnapshotEntries, SnapshotEntry},
        name,
    },
    undo::{UndoError, UndoPlan, UndoResult, look},
};

/// Maximum bytes of a file's content that is included in a diff.
const MAX_DIFF_BYTES: usize = 64 << 10;

/// Changes of some paths of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSet {
    /// The snapshot with the contents of `before`; without one they are in blobs of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    snapshot: Option<BlobId>,
    /// Entries at the paths before; a missing path did not exist.
    before: SnapshotEntries,
    /// Entries at the paths now. Contents are in blobs of their own.
    after: SnapshotEntries,
}

/// Result of recording the changes of some paths.
#[derive(Debug)]
pub struct ChangeRecord {
    /// The paths that really differ from the snapshot.
    pub changes: ChangeSet,
    /// Paths whose content cannot be stored: pipes, sockets, devices, files that are too large, and
    /// paths that are too long.
    pub not_kept: Vec<PathBuf>,
}

/// Maximum bytes of a path that can be undone by itself: the system takes no more than 4,096 at
/// once, and copies lie deeper.
const MAX_PATH_BYTES: usize = 2_048;

impl ChangeSet {
    /// Records the entries at `paths` now and in the last snapshot. What cannot be recorded is moved
    /// into the folder `trash`.
    ///
    /// # Errors
    /// The store's error, or a folder that cannot be read.
    pub fn record<S: ContentStore<Error: From<io::Error>>>(
        snapshots: &Snapshots,
        paths: &[&ChangedPath],
        store: &mut S,
        trash: &Path,
    ) -> Result<Option<ChangeRecord>, S::Error> {
        let Some(last) = snapshots.last_contents() else {
            return Ok(None);
        };
        let root = RootFolder::open(snapshots.workspace()).map_err(io::Error::from)?;
        let mut changes = ChangeSet {
            snapshot: Some(last.id()),
            before: SnapshotEntries::new(),
            after: SnapshotEntries::new(),
        };
        let mut not_kept = Vec::new();
        for changed in paths {
            let bytes = changed.path.as_os_str().as_bytes();
            let encoded = name::encode(bytes);
            let before = last.entries.get(&encoded);
            let now = match look::look(&root, bytes) {
                Ok(now) if now.as_ref().is_none_or(is_whole) && bytes.len() <= MAX_PATH_BYTES => {
                    now
                }
                Ok(_) | Err(_) => {
                    let number = not_kept.len();
                    not_kept.push(changed.path.clone());
                    set_apart(&root, &changed.path, trash, number)?;
                    None
                }
            };
            let same = match (before, &now) {
                (Some(before), Some(now)) => before.agrees(&now.entry),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            if same {
                continue;
            }
            if let Some(now) = now {
                let entry = keep(store, &changed.path, now)?;
                changes.after.insert(encoded.clone(), entry);
            }
            if let Some(before) = before {
                changes.before.insert(encoded.clone(), before.clone());
                changes.restore_folders(&encoded, &last.entries, &root);
            }
        }
        Ok(Some(ChangeRecord { changes, not_kept }))
    }

    /// Records how paths of a layer differ from the folder below it, with the contents of both.
    ///
    /// # Errors
    /// The store's error, or a folder that cannot be read.
    pub fn record_layer<S: ContentStore<Error: From<io::Error>>>(
        layer: &CallLayer,
        paths: &[&ChangedPath],
        store: &mut S,
    ) -> Result<ChangeRecord, S::Error> {
        let (upper, lower) = layer.roots().map_err(io::Error::from)?;
        let mut recorded = ChangeRecord {
            changes: ChangeSet {
                snapshot: None,
                before: SnapshotEntries::new(),
                after: SnapshotEntries::new(),
            },
            not_kept: Vec::new(),
        };
        let mut look_at = |root: &RootFolder<'_>, path: &Path| -> Result<_, S::Error> {
            match look::look(root, path.as_os_str().as_bytes()) {
                Ok(None) => Ok(Some(None)),
                Ok(Some(now)) if is_whole(&now) => Ok(Some(Some(keep(store, path, now)?))),
                Ok(_) | Err(_) => Ok(None),
            }
        };
        for changed in paths {
            let path = &changed.path;
            let before = look_at(&lower, path)?;
            let after = match changed.change {
                PathChange::Deleted => Some(None),
                PathChange::Special => None,
                PathChange::Created | PathChange::Changed => look_at(&upper, path)?,
            };
            let (Some(before), Some(after)) = (before, after) else {
                recorded.not_kept.push(path.clone());
                continue;
            };
            let encoded = name::encode(path.as_os_str().as_bytes());
            let changes = &mut recorded.changes;
            changes
                .before
                .extend(before.map(|before| (encoded.clone(), before)));
            changes.after.extend(after.map(|after| (encoded, after)));
        }
        Ok(recorded)
    }

    /// Returns the entries before the change, with the places of their contents.
    fn before<E>(
        &self,
        load: &dyn Fn(&BlobId) -> Result<Vec<u8>, E>,
    ) -> Result<SnapshotContents, UndoError<E>> {
        let Some(snapshot) = &self.snapshot else {
            return Ok(self.single_blobs(&self.before));
        };
        let mut whole = crate::snapshot::manifest::load_contents(snapshot, &load)?;
        whole.entries.clone_from(&self.before);
        Ok(whole)
    }

    fn single_blobs(&self, entries: &SnapshotEntries) -> SnapshotContents {
        let id = self.snapshot.unwrap_or_else(|| BlobId::of(b""));
        SnapshotContents::of_single_blobs(id, entries.clone())
    }

    /// Adds the folders around a path, which must exist before its entry can be restored.
    fn restore_folders(&mut self, path: &str, snapshot: &SnapshotEntries, root: &RootFolder<'_>) {
        let ends = path.match_indices('/').map(|(at, _)| at);
        for folder in ends.map(|end| &path[..end]) {
            let Some(before) = snapshot.get(folder) else {
                return;
            };
            let decoded = name::decode(folder).unwrap_or_default();
            let now = look::look(root, &decoded)
                .ok()
                .flatten()
                .map(|now| now.entry);
            if matches!(now, Some(SnapshotEntry::Folder { .. })) {
                continue;
            }
            self.before.insert(folder.to_owned(), before.clone());
            self.after.extend(now.map(|now| (folder.to_owned(), now)));
        }
    }

    /// Returns the same changes without those of some paths.
    #[must_use]
    pub fn without(&self, paths: &[PathBuf]) -> Self {
        let mut rest = self.clone();
        for path in paths {
            let encoded = name::encode(path.as_os_str().as_bytes());
            rest.before.remove(&encoded);
            rest.after.remove(&encoded);
        }
        rest
    }

    /// Returns the paths as text, each once.
    pub fn paths(&self) -> Vec<&str> {
        let paths: BTreeSet<&str> = self
            .before
            .keys()
            .chain(self.after.keys())
            .map(String::as_str)
            .collect();
        paths.into_iter().collect()
    }

    /// Returns the paths below the folder, each once.
    pub fn below(&self) -> Vec<PathBuf> {
        let decoded = self.paths().into_iter().filter_map(name::decode);
        decoded.map(|path| name::path(&path).to_owned()).collect()
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    /// Restores the entries from before; `load` reads a blob. Removed entries are copied below
    /// `trash`. What has changed since is left alone and reported.
    ///
    /// # Errors
    /// Before anything was changed: content that cannot be read, a trash that cannot be written.
    pub fn take_back<E: fmt::Display>(
        &self,
        workspace: &Path,
        load: &dyn Fn(&BlobId) -> Result<Vec<u8>, E>,
        trash: &Path,
    ) -> Result<UndoResult, UndoError<E>> {
        UndoPlan::between(workspace, self.before(load)?, self.after.clone(), load)?.apply(
            load,
            trash,
            &mut || {},
        )
    }

    /// Applies the changes again after an undo; `load` reads a blob. Entries that changed since are
    /// left alone and reported.
    ///
    /// # Errors
    /// As [`Self::take_back`].
    pub fn apply<E: fmt::Display>(
        &self,
        workspace: &Path,
        load: &dyn Fn(&BlobId) -> Result<Vec<u8>, E>,
        trash: &Path,
    ) -> Result<UndoResult, UndoError<E>> {
        let after = self.single_blobs(&self.after);
        UndoPlan::between(workspace, after, self.before.clone(), load)?.apply(
            load,
            trash,
            &mut || {},
        )
    }

    /// Returns the changes as text for a person: a unified diff of text files, a line for each
    /// other change. `load` reads a blob.
    ///
    /// # Errors
    /// Content that cannot be read.
    pub fn diff<E>(
        &self,
        load: &dyn Fn(&BlobId) -> Result<Vec<u8>, E>,
    ) -> Result<String, UndoError<E>> {
        let whole = self.before(load)?;
        let after = self.single_blobs(&self.after);
        let paths: BTreeSet<&String> = self.before.keys().chain(self.after.keys()).collect();
        let mut text = String::new();
        for path in paths {
            let (old, new) = (whole.describe(path, load)?, after.describe(path, load)?);
            text.push_str(&diff_of(path, &old, &new));
        }
        Ok(text)
    }
}

pub(crate) enum DiffSide {
    Nothing,
    Text(String),
    /// The description of an entry that is neither a file nor a link.
    Other(String),
}

/// Returns the difference of two texts of a file as a unified diff.
pub fn text_diff(path: &str, old: &str, new: &str) -> String {
    let side = |text: &str| DiffSide::Text(text.to_owned());
    diff_of(path, &side(old), &side(new))
}

/// Returns the difference of two sides of a path, as a unified diff.
pub(crate) fn diff_of(path: &str, old: &DiffSide, new: &DiffSide) -> String {
    let header = |side: &DiffSide, prefix: &str| match side {
        DiffSide::Nothing => "/dev/null".to_owned(),
        DiffSide::Text(_) | DiffSide::Other(_) => format!("{prefix}/{path}"),
    };
    let text = |side: &DiffSide| match side {
        DiffSide::Nothing => String::new(),
        DiffSide::Text(text) => text.clone(),
        DiffSide::Other(what) => format!("({what})\n"),
    };
    let (before, after) = (text(old), text(new));
    let diff = similar::TextDiff::from_lines(&before, &after);
    let mut unified = diff.unified_diff();
    let header = (header(old, "a"), header(new, "b"));
    let unified = unified
        .context_radius(3)
        .header(&header.0, &header.1)
        .to_string();
    if unified.is_empty() {
        format!("--- {}\n+++ {}\n", header.0, header.1)
    } else {
        unified
    }
}

impl SnapshotContents {
    fn describe<E>(
        &self,
        path: &str,
        load: &dyn Fn(&BlobId) -> Result<Vec<u8>, E>,
    ) -> Result<DiffSide, UndoError<E>> {
        let mode =
            |mode: &Option<u32>| mode.map_or(String::new(), |mode| format!(", mode {mode:o}"));
        Ok(match self.entries.get(path) {
            None => DiffSide::Nothing,
            Some(SnapshotEntry::Folder { mode: bits }) => {
                DiffSide::Other(format!("a folder{}", mode(bits)))
            }
            Some(SnapshotEntry::Link { target }) => DiffSide::Other(format!("a link to {target}")),
            Some(SnapshotEntry::Skipped { .. }) => {
                DiffSide::Other("content that was not kept".to_owned())
            }
            Some(
                file @ SnapshotEntry::File {
                    bytes, mode: bits, ..
                },
            ) => {
                let content = self.read(file, &Default::default(), load)?;
                let text = std::str::from_utf8(&content).ok();
                match text.filter(|text| text.len() <= MAX_DIFF_BYTES && !text.contains('\0')) {
                    Some(text) => DiffSide::Text(text.to_owned()),
                    None => DiffSide::Other(format!(
                        "a file of {}{}",
                        counted(*bytes, "byte"),
                        mode(bits)
                    )),
                }
            }
        })
    }
}

/// Stores the content of the entry at a path, if it is a file.
fn keep<S: ContentStore>(
    store: &mut S,
    path: &Path,
    now: look::PresentEntry,
) -> Result<SnapshotEntry, S::Error> {
    let look::PresentEntry {
        mut entry, content, ..
    } = now;
    if let SnapshotEntry::File { apart, .. } = &mut entry {
        let judged = ContentToKeep::new(store.secrecy(), path, &content);
        judged.put(store)?;
        *apart = judged.is_apart();
    }
    Ok(entry)
}

/// Whether a file was read to its end.
fn is_whole(now: &look::PresentEntry) -> bool {
    let read = now.content.len() as u64;
    let is_file = matches!(now.entry, SnapshotEntry::File { .. });
    !is_file || u64::try_from(now.stat.st_size).is_ok_and(|size| size == read)
}

/// Moves an entry whose content cannot be stored into the folder `trash`, as the file of this
/// number; a pipe or socket that cannot be moved there is removed.
fn set_apart(root: &RootFolder<'_>, path: &Path, trash: &Path, number: usize) -> io::Result<()> {
    let found = root.parent(path).and_then(|(folder, name)| {
        let found = root::stat(&folder, name)?;
        Ok((folder, name, found))
    });
    let (folder, name, found) = match found {
        // It went with the folder around it.
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        found => found?,
    };
    std::fs::create_dir_all(trash)?;
    let place = trash.join(format!("apart-{number}"));
    match rustix::fs::renameat(&folder, name, CWD, &place) {
        Err(Errno::XDEV)
            if !matches!(
                FileType::from_raw_mode(found.st_mode),
                FileType::Directory | FileType::RegularFile
            ) =>
        {
            Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
        }
        moved => Ok(moved?),
    }
}
