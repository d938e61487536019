//! Plans an undo: the paths that are undone, and those that are not.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use gyrus_contract::BlobId;

use super::{
    EntryKind, UndoAction, UndoChange, UndoError, UndoRefusal,
    look::{self, look},
};
use crate::{
    root::{self, RootFolder},
    snapshot::{
        manifest::{Skip, SnapshotContents, SnapshotEntries, SnapshotEntry, load_contents},
        name,
        pack::OpenPack,
    },
};

/// The mode of a folder while an undo fills it.
pub(super) const NEW_FOLDER: u32 = 0o700;

/// Plan of the undo of a folder, for its present state.
#[derive(Debug)]
pub struct UndoPlan {
    pub workspace: PathBuf,
    /// The changes to undo, by path.
    pub changes: Vec<UndoChange>,
    /// The changed paths that cannot be undone, by path.
    pub refused: Vec<UndoRefusal>,
    /// Number of paths that are in the old state already.
    pub already: u64,
    /// Folders of build output that no snapshot contains; they stay as they are.
    pub not_kept: Vec<String>,
    /// Repositories whose files are left out of the plan.
    pub apart: Vec<PathBuf>,
    pub(super) before: SnapshotContents,
    pub(super) after: SnapshotEntries,
}

impl UndoPlan {
    /// Plans to undo the changes between two snapshots of `workspace`; `load` reads a blob.
    /// `repositories` are git directories that are taken back otherwise, below the folder: their
    /// files are left out, but for those of a repository that is to go. `restored` are snapshots to
    /// which earlier undos went back since `after`: a path that is as in one of them is as it was
    /// left.
    ///
    /// # Errors
    /// When a snapshot or the workspace cannot be read.
    pub fn new<E>(
        workspace: PathBuf,
        before: &BlobId,
        after: &BlobId,
        repositories: &[PathBuf],
        restored: &[BlobId],
        load: impl Fn(&BlobId) -> Result<Vec<u8>, E>,
    ) -> Result<Self, UndoError<E>> {
        let mut before = load_contents(before, &load)?;
        let mut after = load_contents(after, &load)?.entries;
        for restored in restored {
            let restored = load_contents(restored, &load)?.entries;
            as_restored(&workspace, &mut after, restored)?;
        }
        let mut apart = Vec::new();
        for git in repositories {
            let encoded = name::encode(git.as_os_str().as_bytes());
            if !before.entries.contains_key(&encoded) {
                continue;
            }
            let inner = format!("{encoded}/");
            before.entries.retain(|path, _| !path.starts_with(&inner));
            after.retain(|path, _| !path.starts_with(&inner));
            apart.push(git.clone());
        }
        let mut plan = Self::between(&workspace, before, after, &load)?;
        plan.apart = apart;
        Ok(plan)
    }

    /// Plans an undo without files of the folder. `apart` are the git directories that are undone
    /// separately.
    pub fn of_nothing(workspace: PathBuf, apart: &[PathBuf]) -> Self {
        Self {
            workspace,
            changes: Vec::new(),
            refused: Vec::new(),
            already: 0,
            not_kept: Vec::new(),
            apart: apart.to_vec(),
            before: SnapshotContents::of_single_blobs(BlobId::of(b""), SnapshotEntries::new()),
            after: SnapshotEntries::new(),
        }
    }

    /// Plans to restore the entries of `before` where paths are as in `after`; both may have some
    /// paths only. `load` reads a blob.
    pub(crate) fn between<E>(
        workspace: &Path,
        before: SnapshotContents,
        after: SnapshotEntries,
        load: &dyn Fn(&BlobId) -> Result<Vec<u8>, E>,
    ) -> Result<Self, UndoError<E>> {
        let workspace = workspace.to_owned();
        let root = open(&workspace)?;
        let mut looking = UndoPlanner::new(&root, &before.entries, &after);
        let paths: BTreeSet<&String> = before.entries.keys().chain(after.keys()).collect();
        for path in paths {
            looking.path(path);
        }
        let opened = OpenPack::default();
        looking.without_contents(|file| before.read(file, &opened, load).is_ok());
        looking.settle();
        let UndoPlanner {
            changes,
            refused,
            already,
            not_kept,
            ..
        } = looking;
        Ok(Self {
            workspace,
            changes: changes.into_values().collect(),
            refused: refused
                .into_iter()
                .map(|(path, why)| UndoRefusal { path, why })
                .collect(),
            already,
            not_kept: not_kept.into_iter().collect(),
            apart: Vec::new(),
            before,
            after,
        })
    }
}

/// Adjusts the entries of `after` that an undo restored and that nobody changed since.
fn as_restored<E>(
    workspace: &Path,
    after: &mut SnapshotEntries,
    mut restored: SnapshotEntries,
) -> Result<(), UndoError<E>> {
    let root = open(workspace)?;
    let paths: BTreeSet<String> = after.keys().chain(restored.keys()).cloned().collect();
    for path in paths {
        let (was, to) = (after.get(&path), restored.remove(&path));
        let is_kept =
            |entry: Option<&SnapshotEntry>| !matches!(entry, Some(SnapshotEntry::Skipped { .. }));
        if was == to.as_ref() || !is_kept(was) || !is_kept(to.as_ref()) {
            continue;
        }
        let decoded = name::decode(&path).expect("the entries were checked when they were loaded");
        // What cannot be looked at is refused later, with the reason.
        let Ok(now) = look(&root, &decoded) else {
            continue;
        };
        match (to, now) {
            (Some(to), Some(now)) if to.agrees(&now.entry) => {
                after.insert(path, to);
            }
            (None, None) => {
                after.remove(&path);
            }
            _ => {}
        }
    }
    Ok(())
}

fn open<E>(workspace: &Path) -> Result<RootFolder<'_>, UndoError<E>> {
    RootFolder::open(workspace).map_err(|error| UndoError::Folder {
        path: workspace.to_owned(),
        source: error.into(),
    })
}

struct UndoPlanner<'a> {
    root: &'a RootFolder<'a>,
    before: &'a SnapshotEntries,
    after: &'a SnapshotEntries,
    changes: BTreeMap<String, UndoChange>,
    refused: BTreeMap<String, String>,
    already: u64,
    not_kept: BTreeSet<String>,
}

impl<'a> UndoPlanner<'a> {
    fn new(
        root: &'a RootFolder<'a>,
        before: &'a SnapshotEntries,
        after: &'a SnapshotEntries,
    ) -> Self {
        let rebuildable = SnapshotEntry::Skipped {
            why: Skip::Rebuildable,
        };
        let not_kept = before
            .iter()
            .chain(after)
            .filter(|(_, entry)| **entry == rebuildable)
            .map(|(path, _)| path.clone())
            .collect();
        Self {
            root,
            before,
            after,
            changes: BTreeMap::new(),
            refused: BTreeMap::new(),
            already: 0,
            not_kept,
        }
    }

    fn path(&mut self, path: &str) {
        let (before, after) = (self.before.get(path), self.after.get(path));
        let same = match (before, after) {
            (Some(before), Some(after)) => before.agrees(after),
            (before, after) => before == after,
        };
        if same || above(path).any(|part| self.not_kept.contains(part)) {
            return;
        }
        let skipped =
            |entry: Option<&SnapshotEntry>| matches!(entry, Some(SnapshotEntry::Skipped { .. }));
        if skipped(before) || skipped(after) {
            self.refuse(path, "its content could not be read while the run went on");
            return;
        }
        let decoded = name::decode(path).expect("the entries were checked when they were loaded");
        let now = match look(self.root, &decoded) {
            Ok(now) => now.map(|now| now.entry),
            Err(error) => {
                self.refuse(path, &format!("it cannot be looked at: {error}"));
                return;
            }
        };
        let is = |wanted: Option<&SnapshotEntry>| match (wanted, &now) {
            (Some(wanted), Some(now)) => wanted.agrees(now),
            (None, None) => true,
            (None, Some(_)) | (Some(_), None) => false,
        };
        if is(before) {
            self.already += 1;
        } else if was_cut_off(before, after, now.as_ref()) {
            let change = change(path, before, before);
            self.changes.insert(path.to_owned(), change);
        } else if !is(after) {
            let why = match (&now, after) {
                (None, _) => "it is gone since",
                (Some(_), None) => "something new is there since",
                (Some(_), Some(_)) => "it was changed since",
            };
            self.refuse(path, why);
        } else {
            let change = change(path, before, after);
            self.changes.insert(path.to_owned(), change);
        }
    }

    /// Refuses changes whose content was stored separately and is gone.
    fn without_contents(&mut self, is_here: impl Fn(&SnapshotEntry) -> bool) {
        let gone = self.changes.values().filter(|change| {
            let before = self.before.get(&change.path);
            let comes = matches!(change.action, UndoAction::Restore | UndoAction::Create);
            let file =
                before.filter(|file| matches!(file, SnapshotEntry::File { apart: true, .. }));
            comes && file.is_some_and(|file| !is_here(file))
        });
        let gone: Vec<String> = gone.map(|change| change.path.clone()).collect();
        for path in gone {
            let why = "it is or holds a secret, so its content was kept apart, and is not here";
            self.refuse(&path, why);
        }
    }

    fn refuse(&mut self, path: &str, why: &str) {
        self.changes.remove(path);
        self.refused.insert(path.to_owned(), why.to_owned());
    }

    /// Refuses changes that depend on refused ones, repeatedly until no more follow.
    fn settle(&mut self) {
        loop {
            let mut more = self.full_folders();
            more.extend(self.without_a_folder());
            more.extend(self.of_one_repository());
            if more.is_empty() {
                return;
            }
            for (path, why) in more {
                self.refuse(&path, &why);
            }
        }
    }

    /// Returns folders to be removed that contain entries which stay.
    fn full_folders(&self) -> Vec<(String, String)> {
        let goes = |change: &&UndoChange| {
            let was_folder = matches!(
                self.after.get(&change.path),
                Some(SnapshotEntry::Folder { .. })
            );
            let stays = matches!(
                self.before.get(&change.path),
                Some(SnapshotEntry::Folder { .. })
            );
            was_folder && !stays
        };
        let keeps = |change: &UndoChange| {
            let decoded = name::decode(&change.path).expect("checked when it was loaded");
            let names = || -> io::Result<Vec<_>> {
                let folder = self.root.folder(name::path(&decoded))?;
                Ok(root::names(&folder)?.collect::<Result<_, _>>()?)
            };
            names().unwrap_or_default().into_iter().find_map(|inside| {
                let inside = name::encode(&inside);
                let path = format!("{}/{inside}", change.path);
                let goes = self
                    .changes
                    .get(&path)
                    .is_some_and(|_| !self.before.contains_key(&path));
                (!goes).then(|| format!("`{inside}` stays in it"))
            })
        };
        self.changes
            .values()
            .filter(goes)
            .filter_map(|change| Some((change.path.clone(), keeps(change)?)))
            .collect()
    }

    /// Returns entries to be restored in a folder that does not exist.
    fn without_a_folder(&self) -> Vec<(String, String)> {
        let is_there = |folder: &str| {
            if self.changes.contains_key(folder) {
                return matches!(self.before.get(folder), Some(SnapshotEntry::Folder { .. }));
            }
            let decoded = name::decode(folder).expect("checked when it was loaded");
            self.root.folder(name::path(&decoded)).is_ok()
        };
        self.changes
            .values()
            .filter(|change| self.before.contains_key(&change.path))
            .filter(|change| {
                let folder = change.path.rsplit_once('/').map(|(folder, _)| folder);
                folder.is_some_and(|folder| !is_there(folder))
            })
            .map(|change| {
                let why = "the folder that it lay in is not there".to_owned();
                (change.path.clone(), why)
            })
            .collect()
    }

    /// Returns git's own files of a repository with a refused file: half of them would be a damaged
    /// repository.
    fn of_one_repository(&self) -> Vec<(String, String)> {
        let broken: BTreeSet<&str> = self
            .refused
            .keys()
            .filter_map(|path| repository(path))
            .collect();
        self.changes
            .keys()
            .filter(|path| repository(path).is_some_and(|git| broken.contains(git)))
            .map(|path| {
                let why = "something else of this repository is left alone".to_owned();
                (path.clone(), why)
            })
            .collect()
    }
}

/// Whether an earlier undo was interrupted before it set the mode of a folder that it created: only
/// the owner has access until everything is in it.
fn was_cut_off(
    before: Option<&SnapshotEntry>,
    after: Option<&SnapshotEntry>,
    now: Option<&SnapshotEntry>,
) -> bool {
    let is_folder =
        |entry: Option<&SnapshotEntry>| matches!(entry, Some(SnapshotEntry::Folder { .. }));
    let is_new = matches!(
        now,
        Some(SnapshotEntry::Folder {
            mode: Some(NEW_FOLDER)
        })
    );
    is_folder(before) && !is_folder(after) && is_new
}

/// Returns the path itself and all its ancestors.
fn above(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/').map(|(at, _)| at);
    ends.chain([path.len()]).map(|end| &path[..end])
}

/// Returns the `.git` that contains a path.
fn repository(path: &str) -> Option<&str> {
    above(path).find(|part| {
        Path::new(part)
            .file_name()
            .is_some_and(|name| name == ".git")
    })
}

fn change(path: &str, before: Option<&SnapshotEntry>, after: Option<&SnapshotEntry>) -> UndoChange {
    let action = match (before, after) {
        (None, _) => UndoAction::Delete,
        (Some(_), None) => UndoAction::Create,
        (Some(SnapshotEntry::File { blob, .. }), Some(SnapshotEntry::File { blob: other, .. }))
            if blob == other =>
        {
            UndoAction::Mode
        }
        (Some(SnapshotEntry::Folder { .. }), Some(SnapshotEntry::Folder { .. })) => {
            UndoAction::Mode
        }
        (Some(_), Some(_)) => UndoAction::Restore,
    };
    let (kind, bytes) = match before.or(after) {
        Some(SnapshotEntry::File { bytes, .. }) => (EntryKind::File, *bytes),
        Some(SnapshotEntry::Link { .. }) => (EntryKind::Link, 0),
        Some(SnapshotEntry::Folder { .. } | SnapshotEntry::Skipped { .. }) | None => {
            (EntryKind::Folder, 0)
        }
    };
    UndoChange {
        path: path.to_owned(),
        action,
        kind,
        bytes,
    }
}

/// Whether the path has the expected kind of entry at a second examination.
pub(super) fn is_as(
    root: &RootFolder<'_>,
    path: &[u8],
    wanted: Option<&SnapshotEntry>,
) -> Option<look::PresentEntry> {
    let now = look(root, path).ok().flatten()?;
    wanted
        .is_some_and(|wanted| wanted.agrees(&now.entry))
        .then_some(now)
}
