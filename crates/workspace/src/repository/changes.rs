//! What commands changed in the private copy of a repository.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use gyrus_contract::Digest;
use serde::{Deserialize, Serialize};

use super::{
    index::{self, IndexChange},
    names::{ObjectId, RefName, RefValue},
    reflog::LogChange,
    settings::SettingChange,
    state,
    withheld::{FileContent, Withheld},
};

/// Everything that commands changed in the private copy of one repository since it was last
/// brought up to date.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryChanges {
    /// What is carried over, those of submodules first.
    pub stores: Vec<StoreChanges>,
    /// What is carried over only after a person's yes.
    pub withheld: Vec<Withheld>,
    /// What is not carried over, in sentences for the model.
    pub notes: Vec<String>,
}

impl RepositoryChanges {
    /// Whether there is nothing to do and nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stores.is_empty() && self.withheld.is_empty() && self.notes.is_empty()
    }
}

/// The changes of one store: a folder with objects and references of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreChanges {
    /// Below the git directory: empty for itself, `modules/NAME` for a submodule.
    pub store: PathBuf,
    /// Of branches, tags, notes, stashes.
    pub refs: Vec<RefChange>,
    /// Of work trees in the workspace.
    pub worktrees: Vec<WorktreeChange>,
    /// Of the configuration.
    pub settings: Vec<SettingChange>,
    /// Of other files. A person has approved them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileChange>,
}

/// How a file changes that a person has approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Below the git directory.
    pub path: PathBuf,
    /// `None` if there is none.
    pub before: Option<FileContent>,
    /// `None` if it is removed.
    pub after: Option<FileContent>,
}

/// How a reference changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefChange {
    /// Which.
    pub name: RefName,
    /// `None` if it is new.
    pub before: Option<RefValue>,
    /// `None` if it is gone.
    pub after: Option<RefValue>,
    /// How its log changed.
    pub log: Option<LogChange>,
}

/// How a work tree's `HEAD`, index and state changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeChange {
    /// The folder of its own files, below the git directory: the store, or `worktrees/NAME` in it.
    pub worktree: PathBuf,
    /// `HEAD` before and after.
    pub head: (RefValue, RefValue),
    /// The branches that `HEAD` named before or after, with what they stood for before and after.
    pub branches: Vec<(RefName, Option<ObjectId>, Option<ObjectId>)>,
    /// Paths whose entries in the index changed.
    pub index: Vec<IndexChange>,
    /// Files of state. Those of a merge are listed even if they are as before.
    pub state: Vec<StateChange>,
    /// Operations that were in progress, and no longer are.
    pub finished: Vec<FinishedOperation>,
    /// How the log of `HEAD` changed.
    pub log: Option<LogChange>,
}

/// How a file of state changed, such as `MERGE_HEAD`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateChange {
    /// Its name.
    pub name: String,
    /// `None` if it was not there.
    pub before: Option<String>,
    /// `None` if it is gone.
    pub after: Option<String>,
}

/// A rebase or the like that a person had begun, and a command has finished or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedOperation {
    /// Its files and folders beside `HEAD`, which are removed if they are still the same.
    pub files: Vec<PathBuf>,
    pub(super) digest: Digest,
}

impl StoreChanges {
    /// Whether nothing of the store is carried over.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.refs.is_empty()
            && self.worktrees.is_empty()
            && self.settings.is_empty()
            && self.files.is_empty()
    }

    /// The objects that have to be there before anything names them.
    pub(super) fn tips(&self) -> BTreeSet<ObjectId> {
        let mut tips = BTreeSet::new();
        tips.extend(
            self.refs
                .iter()
                .filter_map(|change| change.after.as_ref()?.object()),
        );
        for change in &self.worktrees {
            tips.extend(change.head.1.object());
            let entries = change.index.iter().flat_map(|path| &path.after);
            // The commit of a submodule lies in the submodule's own store.
            let entries = entries.filter(|entry| entry.mode != 0o160_000);
            tips.extend(entries.map(|entry| entry.object));
            for file in &change.state {
                let content = file.after.as_deref().unwrap_or_default();
                tips.extend(state::objects_in(&file.name, content.as_bytes()));
            }
        }
        tips.extend(self.files.iter().flat_map(FileChange::objects));
        tips
    }

    /// The logs that change.
    pub(super) fn logs_mut(&mut self) -> impl Iterator<Item = &mut LogChange> {
        let refs = self
            .refs
            .iter_mut()
            .filter_map(|change| change.log.as_mut());
        let heads = self
            .worktrees
            .iter_mut()
            .filter_map(|change| change.log.as_mut());
        refs.chain(heads)
    }

    /// The objects that only logs name.
    pub(super) fn logged(&self) -> BTreeSet<ObjectId> {
        let refs = self.refs.iter().filter_map(|change| change.log.as_ref());
        let heads = self
            .worktrees
            .iter()
            .filter_map(|change| change.log.as_ref());
        refs.chain(heads).flat_map(LogChange::objects).collect()
    }
}

impl FileChange {
    /// The objects that it names, as `HEAD` or the index of a new work tree.
    fn objects(&self) -> Vec<ObjectId> {
        let bytes = self.after.as_ref().and_then(FileContent::bytes);
        let (Some((bytes, _)), true) = (bytes, self.path.iter().any(|part| part == "worktrees"))
        else {
            return Vec::new();
        };
        if self.path.ends_with("HEAD") {
            let value = RefValue::parse(&bytes).ok();
            return value.and_then(|value| value.object()).into_iter().collect();
        }
        if !self.path.ends_with("index") {
            return Vec::new();
        }
        let entries = index::parse(&bytes).unwrap_or_default();
        let contents = entries.values().flatten().map(|entry| entry.content);
        contents
            .filter(|entry| entry.mode != 0o160_000)
            .map(|entry| entry.object)
            .collect()
    }
}

impl WorktreeChange {
    /// Whether nothing but its log could have changed.
    pub(super) fn is_empty(&self) -> bool {
        let moved = self
            .branches
            .iter()
            .any(|(_, before, after)| before != after);
        let state = self.state.iter().any(|file| file.before != file.after);
        self.head.0 == self.head.1
            && !moved
            && self.index.is_empty()
            && !state
            && self.finished.is_empty()
            && self.log.is_none()
    }

    /// The path of a file beside `HEAD`.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.worktree.join(name)
    }
}

/// The path of a file of a store, as a person would write it.
pub(super) fn display(directory: &str, path: &Path) -> String {
    match path.as_os_str().is_empty() {
        true => directory.to_owned(),
        false => Path::new(directory).join(path).display().to_string(),
    }
}

/// A name that a command chose, with every unseen character named.
pub(super) fn plain(name: &str) -> String {
    gyrus_text::one_line(name).into_owned()
}
