//! Entries of a folder from before a call changed it, kept for an undo.

use std::{
    collections::BTreeMap,
    fs, io,
    ops::Bound,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use gyrus_contract::Digest;
use rustix::{
    fs::{FileType, Mode, RenameFlags, renameat_with},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use super::{
    LayerError,
    stamp::{StampOverrides, stamp, stamp_after},
};
use crate::{
    root::{RootError, RootFolder, failed},
    undo::{EntryKind, UndoAction, UndoChange, UndoRefusal},
};

/// Changes of one call in a folder, in order, with the previous entries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFiles {
    /// Folder with the entries from before, on the file system of the workspace.
    pub folder: PathBuf,
    pub files: Vec<LayerChange>,
}

/// The change of one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerChange {
    /// Path below the workspace.
    #[serde(with = "super::encoded")]
    pub(super) path: PathBuf,
    pub(super) was: Was,
    /// Stamp of the entry after the call; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) now: Option<Digest>,
}

/// State of a path before the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "was", rename_all = "snake_case")]
pub(super) enum Was {
    Nothing,
    /// The former entry is stored at this path below [`KeptFiles::folder`].
    Kept {
        #[serde(with = "super::encoded")]
        path: PathBuf,
        inode: u64,
        /// The stamp of the path in the workspace.
        before: Digest,
    },
    /// A folder whose mode changed.
    Mode {
        before: u32,
        after: u32,
    },
}

/// Result of an undo.
#[derive(Debug, Default)]
pub struct TakenBack {
    /// The changes that were undone.
    pub done: Vec<UndoChange>,
    /// Paths that changed since the call, which are left alone.
    pub refused: Vec<UndoRefusal>,
    /// Number of paths that were undone before.
    pub already: u64,
}

/// Copies of files that a call is about to change without a layer.
#[derive(Debug, Serialize, Deserialize)]
pub struct Copies {
    kept: KeptFiles,
    workspace: PathBuf,
}

/// Name of the list of copies in their folder.
const COPIES: &str = "copies.json";

impl Copies {
    /// Copies the entries at `paths`, which are below the workspace, into `folder`, a new one.
    ///
    /// # Errors
    /// When something cannot be copied.
    pub fn make(folder: &Path, workspace: &Path, paths: &[PathBuf]) -> Result<Self, LayerError> {
        fs::create_dir_all(folder).map_err(|source| LayerError::File {
            path: folder.to_owned(),
            source,
        })?;
        let root = RootFolder::open(workspace)?;
        let mut files = Vec::new();
        for (number, path) in paths.iter().enumerate() {
            let stat = root.stat(path)?;
            let is_file = |stat: rustix::fs::Stat| {
                FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            };
            if stat.is_some_and(|stat| !is_file(stat)) {
                // No call that names a path changes any other kind of entry.
                continue;
            }
            let now = stamp(&root, path)?;
            let was = match now {
                None => Was::Nothing,
                Some(before) => {
                    let kept = PathBuf::from(number.to_string());
                    let inode = copy(&root, path, &folder.join(&kept))?;
                    Was::Kept {
                        path: kept,
                        inode,
                        before,
                    }
                }
            };
            files.push(LayerChange {
                path: path.clone(),
                was,
                now,
            });
        }
        let copies = Self {
            kept: KeptFiles {
                folder: folder.to_owned(),
                files,
            },
            workspace: workspace.to_owned(),
        };
        let list = folder.join(COPIES);
        let written = || {
            let mut file = fs::File::create(&list)?;
            serde_json::to_writer(&mut file, &copies)?;
            file.sync_all()
        };
        written().map_err(|source| LayerError::File { path: list, source })?;
        Ok(copies)
    }

    /// Opens the copies that an earlier process made in `folder`; `None` if it made none, or not
    /// all.
    pub fn find(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(folder.join(COPIES)).ok()?).ok()
    }

    /// Returns the changes of the call, after its end.
    ///
    /// # Errors
    /// When a path cannot be examined.
    pub fn changed(self) -> Result<KeptFiles, LayerError> {
        let root = RootFolder::open(&self.workspace)?;
        let mut kept = self.kept;
        let mut changed = Vec::new();
        for mut one in kept.files {
            let now = stamp(&root, &one.path)?;
            if now != one.now {
                one.now = now;
                changed.push(one);
            }
        }
        kept.files = changed;
        Ok(kept)
    }
}

/// Copies a file. Returns the copy's inode.
fn copy(root: &RootFolder<'_>, path: &Path, to: &Path) -> Result<u64, LayerError> {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
    let opened = root
        .open_at(path, flags)
        .map_err(|error| failed(path, error))?;
    let mut from = fs::File::from(opened);
    let mut copied = || {
        let mut new = fs::File::create_new(to)?;
        io::copy(&mut from, &mut new)?;
        new.set_permissions(from.metadata()?.permissions())?;
        new.sync_all()?;
        Ok(new.metadata()?.ino())
    };
    copied().map_err(|source| LayerError::File {
        path: to.to_owned(),
        source,
    })
}

/// Undoes the changes of calls in `workspace`, newest first, at paths that are unchanged since.
/// With `is_done` false, it is only looked at. `stepped` is called after every change on disk.
///
/// # Errors
/// When the workspace or what was kept cannot be opened.
pub fn take_back(
    workspace: &Path,
    calls: &[KeptFiles],
    is_done: bool,
    stepped: &mut dyn FnMut(),
) -> Result<TakenBack, LayerError> {
    let mut taken = TakenBack::default();
    let root = RootFolder::open(workspace)?;
    // States of paths once the later calls are undone: their renames change times.
    let mut states = StampOverrides::new();
    let mut done: BTreeMap<PathBuf, UndoChange> = BTreeMap::new();
    for call in calls.iter().rev() {
        let kept = match RootFolder::open(&call.folder) {
            Err(RootError {
                error: Errno::NOENT,
                ..
            }) => {
                let gone = "what stood there before is no longer kept";
                let files = call.files.iter();
                taken.refused.extend(files.map(|one| refused(one, gone)));
                continue;
            }
            opened => opened?,
        };
        let back = Back {
            root: &root,
            kept: &kept,
        };
        for (number, one) in call.files.iter().enumerate().rev() {
            match back.look(one, &states) {
                Ok(PathState::Before) => {
                    taken.already += 1;
                    one.before_into(&mut states);
                }
                Ok(PathState::After) => {
                    let took = if is_done {
                        back.take(one, number)
                    } else {
                        Ok(())
                    };
                    match took {
                        Ok(()) => {
                            one.before_into(&mut states);
                            done.insert(one.path.clone(), change(&root, one));
                        }
                        Err(error) => taken.refused.push(refused(one, &error.error.to_string())),
                    }
                    stepped();
                }
                Ok(PathState::Otherwise) => {
                    taken.refused.push(refused(one, "it was changed since"));
                }
                Err(error) => taken.refused.push(refused(one, &error.error.to_string())),
            }
        }
    }
    taken.done = done.into_values().collect();
    taken
        .refused
        .sort_by(|one, other| one.path.cmp(&other.path));
    Ok(taken)
}

impl LayerChange {
    /// Records the state of the path before the call.
    fn before_into(&self, states: &mut StampOverrides) {
        let state = match &self.was {
            Was::Nothing => None,
            Was::Kept { before, .. } => Some(*before),
            Was::Mode { .. } => return,
        };
        // Recorded states of entries in a folder that was replaced are no longer valid.
        let within = (Bound::Excluded(self.path.as_path()), Bound::Unbounded);
        let inner = states.range::<Path, _>(within);
        let inner = inner.take_while(|(path, _)| path.starts_with(&self.path));
        let inner: Vec<PathBuf> = inner.map(|(path, _)| path.clone()).collect();
        for path in inner {
            states.remove(&path);
        }
        states.insert(self.path.clone(), state);
    }
}

fn refused(one: &LayerChange, why: &str) -> UndoRefusal {
    UndoRefusal {
        path: one.path.display().to_string(),
        why: why.to_owned(),
    }
}

fn change(root: &RootFolder<'_>, one: &LayerChange) -> UndoChange {
    let action = match (&one.was, &one.now) {
        (Was::Nothing, _) => UndoAction::Delete,
        (Was::Mode { .. }, _) => UndoAction::Mode,
        (Was::Kept { .. }, None) => UndoAction::Create,
        (Was::Kept { .. }, Some(_)) => UndoAction::Restore,
    };
    let stat = root.stat(&one.path).ok().flatten();
    let kind = stat.map(|stat| FileType::from_raw_mode(stat.st_mode));
    UndoChange {
        path: one.path.display().to_string(),
        action,
        kind: match kind {
            Some(FileType::Directory) => EntryKind::Folder,
            Some(FileType::Symlink) => EntryKind::Link,
            _ => EntryKind::File,
        },
        bytes: stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0)),
    }
}

enum PathState {
    Before,
    After,
    Otherwise,
}

struct Back<'a> {
    root: &'a RootFolder<'static>,
    kept: &'a RootFolder<'static>,
}

impl Back<'_> {
    fn look(&self, one: &LayerChange, states: &StampOverrides) -> Result<PathState, RootError> {
        if let Was::Mode { before, after } = one.was {
            let stat = self.root.stat(&one.path)?;
            return Ok(match stat.map(|stat| stat.st_mode & 0o7777) {
                Some(mode) if mode == after => PathState::After,
                Some(mode) if mode == before => PathState::Before,
                _ => PathState::Otherwise,
            });
        }
        if stamp_after(self.root, &one.path, states)? == one.now {
            return Ok(PathState::After);
        }
        // A rename moves times, and not the inode.
        let now = self.root.stat(&one.path)?;
        let is_back = match &one.was {
            Was::Nothing => now.is_none(),
            Was::Kept { inode, .. } => now.is_some_and(|now| now.st_ino == *inode),
            Was::Mode { .. } => false,
        };
        Ok(if is_back {
            PathState::Before
        } else {
            PathState::Otherwise
        })
    }

    /// Undoes one change, made by the call of this number.
    fn take(&self, one: &LayerChange, number: usize) -> Result<(), RootError> {
        match (&one.was, &one.now) {
            (Was::Mode { before, .. }, _) => {
                self.root.set_mode(&one.path, Mode::from_raw_mode(*before))
            }
            // The removed entry is kept in the place of the restored one.
            (Was::Nothing, _) => {
                let trash = PathBuf::from(format!(".taken-back-{number}"));
                self.swing(
                    self.root,
                    &one.path,
                    self.kept,
                    &trash,
                    RenameFlags::NOREPLACE,
                )
            }
            (Was::Kept { path, .. }, None) => self.swing(
                self.kept,
                path,
                self.root,
                &one.path,
                RenameFlags::NOREPLACE,
            ),
            (Was::Kept { path, .. }, Some(_)) => {
                self.swing(self.kept, path, self.root, &one.path, RenameFlags::EXCHANGE)
            }
        }
    }

    fn swing(
        &self,
        from: &RootFolder<'_>,
        old: &Path,
        to: &RootFolder<'_>,
        new: &Path,
        flags: RenameFlags,
    ) -> Result<(), RootError> {
        let moved = || {
            let (source, old) = from.parent(old)?;
            let (target, new) = to.parent(new)?;
            renameat_with(source, old, target, new, flags)
        };
        moved().map_err(|error| failed(new, error))
    }
}
