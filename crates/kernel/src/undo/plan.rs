//! What would be taken back, and what not.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use gyrus_contract::RunId;
use gyrus_journal::{Reader, Store};

use super::{
    Action, Change, Kind, Refused, UndoError,
    look::{self, look},
};
use crate::{
    Entry as Recorded, Snapshot, Stop, log_name, parse,
    snapshot::{
        beneath::{self, Root},
        manifest::{Contents, Entries, Entry, Skip, load_contents},
        name,
    },
};

/// The mode of a folder while an undo fills it.
pub(super) const NEW_FOLDER: u32 = 0o700;

/// What an undo of one run comes to, as things stand now.
#[derive(Debug)]
pub struct Plan {
    /// The run.
    pub run: RunId,
    /// The step after which the workspace was as it will be; 0 is before the run.
    pub to: u32,
    /// Where the run worked.
    pub workspace: PathBuf,
    /// What is taken back, by path.
    pub changes: Vec<Change>,
    /// What the run changed and is left alone, by path.
    pub refused: Vec<Refused>,
    /// What is back already: how many paths.
    pub already: u64,
    /// Folders of build output that no snapshot holds; they stay as they are.
    pub not_kept: Vec<String>,
    /// The run was cut off in this step; what it changed there is in no snapshot.
    pub unfinished: Option<u32>,
    /// The run is over for good, so it cannot be gone on with.
    pub is_over: bool,
    pub(super) before: Contents,
    pub(super) after: Entries,
}

/// Plans to take back what `run` changed after its step `to`.
///
/// # Errors
/// When the run, its snapshots or its workspace cannot be read, or there is no such step.
pub fn plan(store: &Store, run: RunId, to: u32) -> Result<Plan, UndoError> {
    let reader = store.reader(&log_name(run))?;
    let moments = Moments::read(run, &reader, to)?;
    let load = |id: &_| reader.blob(id);
    let before = load_contents(&moments.before, &load)?;
    let after = load_contents(&moments.after, &load)?.entries;
    let root = Root::open(&moments.workspace).map_err(|source| UndoError::Folder {
        path: moments.workspace.clone(),
        source,
    })?;
    let mut looking = Looking::new(&root, &before.entries, &after);
    let paths: BTreeSet<&String> = before.entries.keys().chain(after.keys()).collect();
    for path in paths {
        looking.path(path);
    }
    looking.settle();
    let Looking {
        changes,
        refused,
        already,
        not_kept,
        ..
    } = looking;
    Ok(Plan {
        run,
        to,
        workspace: moments.workspace,
        changes: changes.into_values().collect(),
        refused: refused
            .into_iter()
            .map(|(path, why)| Refused { path, why })
            .collect(),
        already,
        not_kept: not_kept.into_iter().collect(),
        unfinished: moments.unfinished,
        is_over: moments.is_over,
        before,
        after,
    })
}

/// The two moments of a run that are compared.
struct Moments {
    workspace: PathBuf,
    before: gyrus_contract::BlobId,
    after: gyrus_contract::BlobId,
    unfinished: Option<u32>,
    is_over: bool,
}

impl Moments {
    fn read(run: RunId, reader: &Reader, to: u32) -> Result<Self, UndoError> {
        let mut workspace = PathBuf::new();
        let mut before = None;
        // The last snapshot so far, and the step that it was taken after.
        let mut latest = (Snapshot::Missing("the run has no start".to_owned()), 0);
        let (mut last, mut began, mut is_over) = (0, false, false);
        for entry in reader.entries(1)? {
            match parse(&entry?).map_err(Stop::from)? {
                Recorded::RunStarted(started) => {
                    workspace.clone_from(&started.workspace);
                    latest = (started.snapshot.clone(), 0);
                }
                Recorded::CycleEnded(ended) => {
                    if ended.cycle > to {
                        before.get_or_insert_with(|| latest.clone());
                    }
                    (last, began) = (ended.cycle, false);
                    if let Some(snapshot) = ended.snapshot {
                        latest = (snapshot, ended.cycle);
                    }
                }
                Recorded::ToolStarted(_) => began = true,
                Recorded::RunEnded(_) => is_over = true,
                _ => {}
            }
        }
        if to > last {
            return Err(UndoError::NoStep {
                run,
                step: to,
                last,
            });
        }
        let before = before.unwrap_or_else(|| latest.clone());
        Ok(Self {
            workspace,
            before: kept(before)?,
            after: kept(latest)?,
            unfinished: began.then_some(last + 1),
            is_over,
        })
    }
}

fn kept((snapshot, step): (Snapshot, u32)) -> Result<gyrus_contract::BlobId, UndoError> {
    match snapshot {
        Snapshot::Blob(id) => Ok(id),
        Snapshot::Missing(why) => {
            let when = match step {
                0 => "before the run".to_owned(),
                step => format!("after step {step}"),
            };
            Err(UndoError::NotKept { when, why })
        }
    }
}

struct Looking<'a> {
    root: &'a Root,
    before: &'a Entries,
    after: &'a Entries,
    changes: BTreeMap<String, Change>,
    refused: BTreeMap<String, String>,
    already: u64,
    not_kept: BTreeSet<String>,
}

impl<'a> Looking<'a> {
    fn new(root: &'a Root, before: &'a Entries, after: &'a Entries) -> Self {
        let rebuildable = Entry::Skipped {
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
        let skipped = |entry: Option<&Entry>| matches!(entry, Some(Entry::Skipped { .. }));
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
        let is = |wanted: Option<&Entry>| match (wanted, &now) {
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

    fn refuse(&mut self, path: &str, why: &str) {
        self.changes.remove(path);
        self.refused.insert(path.to_owned(), why.to_owned());
    }

    /// Refuses what cannot be done because of what is refused, until nothing more follows.
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

    /// Folders that would go, but hold what does not.
    fn full_folders(&self) -> Vec<(String, String)> {
        let goes = |change: &&Change| {
            let was_folder = matches!(self.after.get(&change.path), Some(Entry::Folder { .. }));
            let stays = matches!(self.before.get(&change.path), Some(Entry::Folder { .. }));
            was_folder && !stays
        };
        let keeps = |change: &Change| {
            let decoded = name::decode(&change.path).expect("checked when it was loaded");
            let names = self
                .root
                .folder(&decoded)
                .and_then(|folder| beneath::names(&folder)?.collect::<Result<Vec<_>, _>>());
            names.unwrap_or_default().into_iter().find_map(|inside| {
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

    /// What would come back to a folder that is not there.
    fn without_a_folder(&self) -> Vec<(String, String)> {
        let is_there = |folder: &str| {
            if self.changes.contains_key(folder) {
                return matches!(self.before.get(folder), Some(Entry::Folder { .. }));
            }
            let decoded = name::decode(folder).expect("checked when it was loaded");
            self.root.folder(&decoded).is_ok()
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

    /// Git's own files of a repository of which something is refused: half of them would be a
    /// damaged repository.
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

/// Whether a folder that an earlier undo made has not got its mode back: it is our own alone until
/// everything is in it.
fn was_cut_off(before: Option<&Entry>, after: Option<&Entry>, now: Option<&Entry>) -> bool {
    let is_folder = |entry: Option<&Entry>| matches!(entry, Some(Entry::Folder { .. }));
    let is_new = matches!(
        now,
        Some(Entry::Folder {
            mode: Some(NEW_FOLDER)
        })
    );
    is_folder(before) && !is_folder(after) && is_new
}

/// The path itself and all folders that it lies in.
fn above(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/').map(|(at, _)| at);
    ends.chain([path.len()]).map(|end| &path[..end])
}

/// The `.git` that a path lies in.
fn repository(path: &str) -> Option<&str> {
    above(path).find(|part| {
        Path::new(part)
            .file_name()
            .is_some_and(|name| name == ".git")
    })
}

fn change(path: &str, before: Option<&Entry>, after: Option<&Entry>) -> Change {
    let action = match (before, after) {
        (None, _) => Action::Delete,
        (Some(_), None) => Action::Create,
        (Some(Entry::File { blob, .. }), Some(Entry::File { blob: other, .. }))
            if blob == other =>
        {
            Action::Mode
        }
        (Some(Entry::Folder { .. }), Some(Entry::Folder { .. })) => Action::Mode,
        (Some(_), Some(_)) => Action::Restore,
    };
    let (kind, bytes) = match before.or(after) {
        Some(Entry::File { bytes, .. }) => (Kind::File, *bytes),
        Some(Entry::Link { .. }) => (Kind::Link, 0),
        Some(Entry::Folder { .. } | Entry::Skipped { .. }) | None => (Kind::Folder, 0),
    };
    Change {
        path: path.to_owned(),
        action,
        kind,
        bytes,
    }
}

/// Whether a path's own kind of thing stands there now, for what is looked at again.
pub(super) fn is_as(root: &Root, path: &[u8], wanted: Option<&Entry>) -> Option<look::Now> {
    let now = look(root, path).ok().flatten()?;
    wanted
        .is_some_and(|wanted| wanted.agrees(&now.entry))
        .then_some(now)
}
