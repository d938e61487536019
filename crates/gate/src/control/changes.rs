//! The changes that are judged together, and questions about them.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use gyrus_contract::{ChangedPath, PathChange};

pub(super) struct CallChanges<'a> {
    pub(super) all: &'a [ChangedPath],
    by_path: HashMap<&'a Path, PathChange>,
    /// Folders that contain changes, at any depth.
    around: HashSet<&'a Path>,
}

impl<'a> CallChanges<'a> {
    pub(super) fn new(all: &'a [ChangedPath]) -> Self {
        let by_path = all.iter().map(|one| (one.path.as_path(), one.change));
        let stay = all.iter().filter(|one| one.change != PathChange::Deleted);
        let around = stay.flat_map(|one| one.path.ancestors().skip(1));
        Self {
            all,
            by_path: by_path.collect(),
            around: around.collect(),
        }
    }

    pub(super) fn at(&self, path: &Path) -> Option<PathChange> {
        self.by_path.get(path).copied()
    }

    /// Whether a file remains below a changed path.
    pub(super) fn below(&self, path: &Path) -> bool {
        self.around.contains(path)
    }

    /// Whether a path existed before the changes.
    pub(super) fn was_there(&self, path: &Path) -> bool {
        self.at(path) != Some(PathChange::Created)
    }

    /// Whether the folder of a path was made by these changes.
    pub(super) fn made_folder_of(&self, path: &Path) -> bool {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        folder.is_some_and(|folder| self.at(folder) == Some(PathChange::Created))
    }
}
