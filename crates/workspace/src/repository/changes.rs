//! Changes that commands made in the private copy of a repository.

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
    withheld::{FileContent, WithheldPath},
};

/// All changes that commands made in the private copy of one repository since its last refresh.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryChanges {
    /// Changes to carry over, those of submodules first.
    pub stores: Vec<StoreChanges>,
    /// Changes that are carried over only after a person's approval.
    pub withheld: Vec<WithheldPath>,
    /// Sentences for the model about changes that are not carried over.
    pub notes: Vec<String>,
}

impl RepositoryChanges {
    /// Whether there are neither changes nor notes.
    pub fn is_empty(&self) -> bool {
        self.stores.is_empty() && self.withheld.is_empty() && self.notes.is_empty()
    }
}

/// The changes of one store: a folder with objects and references of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreChanges {
    /// Path below the git directory: empty for itself, `modules/NAME` for a submodule.
    pub store: PathBuf,
    /// Changes of branches, tags, notes and stashes.
    pub refs: Vec<RefChange>,
    /// Changes of work trees in the workspace.
    pub worktrees: Vec<WorktreeChange>,
    /// Changes of the configuration.
    pub settings: Vec<SettingChange>,
    /// Changes of other files that a person approved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<RepositoryFileChange>,
}

/// Change of a file that a person approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryFileChange {
    /// Path below the git directory.
    pub path: PathBuf,
    /// Old content; `None` for a new file.
    pub before: Option<FileContent>,
    /// New content; `None` for a removed file.
    pub after: Option<FileContent>,
}

/// Change of a reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefChange {
    /// Name of the reference.
    pub name: RefName,
    /// Old value; `None` for a new reference.
    pub before: Option<RefValue>,
    /// New value; `None` for a removed reference.
    pub after: Option<RefValue>,
    pub log: Option<LogChange>,
}

/// Change of a work tree's `HEAD`, index and state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeChange {
    /// The folder of the work tree's own files, below the git directory: the store, or
    /// `worktrees/NAME` in it.
    pub worktree: PathBuf,
    /// `HEAD` before and after.
    pub head: (RefValue, RefValue),
    /// The branches that `HEAD` named before or after, with their values before and after.
    pub branches: Vec<(RefName, Option<ObjectId>, Option<ObjectId>)>,
    /// Paths whose entries in the index changed.
    pub index: Vec<IndexChange>,
    /// Changed files of state. Those of a merge are listed even if they are unchanged.
    pub state: Vec<StateChange>,
    /// Operations in progress before the command that ended during it.
    pub finished: Vec<FinishedOperation>,
    /// Change of the log of `HEAD`.
    pub log: Option<LogChange>,
}

/// Change of a file of state, such as `MERGE_HEAD`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateChange {
    /// Name of the file.
    pub name: String,
    /// Old content; `None` for a new file.
    pub before: Option<String>,
    /// New content; `None` for a removed file.
    pub after: Option<String>,
}

/// A rebase or similar operation of a person that a command finished or aborted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedOperation {
    /// The operation's files and folders beside `HEAD`, which are removed if they are still the
    /// same.
    pub files: Vec<PathBuf>,
    pub(super) digest: Digest,
}

impl StoreChanges {
    /// Whether no change of the store is carried over.
    pub fn is_empty(&self) -> bool {
        self.refs.is_empty()
            && self.worktrees.is_empty()
            && self.settings.is_empty()
            && self.files.is_empty()
    }

    /// Whether only logs changed, apart from the list of stashes.
    pub(super) fn only_logs(&self) -> bool {
        let refs = self.refs.iter().all(|change| {
            let is_list = change.log.as_ref().is_some_and(LogChange::lists_stashes);
            change.before == change.after && !is_list
        });
        let worktrees = self.worktrees.iter().all(|change| {
            let logless = WorktreeChange {
                log: None,
                ..change.clone()
            };
            logless.is_empty()
        });
        refs && worktrees && self.settings.is_empty() && self.files.is_empty()
    }

    /// Returns the objects that must exist before references to them are written.
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
            tips.extend(change.state_objects());
        }
        tips.extend(self.files.iter().flat_map(RepositoryFileChange::objects));
        tips
    }

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

    /// Returns the objects that only logs name.
    pub(super) fn logged(&self) -> BTreeSet<ObjectId> {
        let refs = self.refs.iter().filter_map(|change| change.log.as_ref());
        let heads = self
            .worktrees
            .iter()
            .filter_map(|change| change.log.as_ref());
        refs.chain(heads).flat_map(LogChange::objects).collect()
    }
}

impl StateChange {
    /// Returns the objects named in the new content of the file.
    pub(super) fn objects(&self) -> Vec<ObjectId> {
        let content = self.after.as_deref().unwrap_or_default();
        state::objects_in(&self.name, content.as_bytes())
    }
}

impl RepositoryFileChange {
    /// Returns the objects named in the file, as `HEAD` or the index of a new work tree.
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
    /// Whether nothing changed except perhaps the log of `HEAD`.
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

    /// Returns the objects that the new state of the work tree names.
    pub(super) fn state_objects(&self) -> Vec<ObjectId> {
        self.state.iter().flat_map(StateChange::objects).collect()
    }

    /// Returns the objects that the next commit would have as parents or content.
    pub(super) fn merged_objects(&self) -> Vec<ObjectId> {
        let merged = self.state.iter().filter(|file| file.name != "ORIG_HEAD");
        merged.flat_map(StateChange::objects).collect()
    }

    /// Returns the path of a file beside `HEAD`.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.worktree.join(name)
    }
}

/// Returns the path of a file of a store in a readable form.
pub(super) fn display(directory: &str, path: &Path) -> String {
    if path.as_os_str().is_empty() {
        directory.to_owned()
    } else {
        Path::new(directory).join(path).display().to_string()
    }
}

/// Returns a name chosen by a command, with invisible characters escaped.
pub(super) fn plain(name: &str) -> String {
    gyrus_text::one_line(name).into_owned()
}
