//! Brings a private copy, and the state it is compared with, up to date with the real git
//! directory.

use std::{
    ops::Bound,
    path::{Path, PathBuf},
};

use super::{
    RepositoryError, copying,
    find::GitDirectory,
    folder::{GitFolder, PathKind},
    refs,
    stamps::Stamps,
    state, worktree,
};

/// Maximum number of times that the real git directory is examined again because it changed
/// meanwhile.
const ROUNDS: usize = 5;

/// The three folders, and the known stamps of two of them.
pub(super) struct Sync<'a> {
    pub(super) directory: &'a GitDirectory,
    pub(super) live: &'a GitFolder,
    pub(super) base: &'a GitFolder,
    pub(super) private: &'a GitFolder,
    pub(super) live_stamps: Option<&'a Stamps>,
    pub(super) private_stamps: Option<&'a Stamps>,
    /// Whether a command's unfinished operation may stay. It may not after an interrupted
    /// synchronisation, because the state from which it began is unknown.
    pub(super) may_retain: bool,
}

pub(super) struct SyncResult {
    /// Stamps of the real git directory at the time of copying.
    pub(super) live: Stamps,
    pub(super) copied: usize,
    /// Dropped changes, in sentences for the model.
    pub(super) dropped: Vec<String>,
}

impl Sync<'_> {
    pub(super) fn run(&self) -> Result<SyncResult, RepositoryError> {
        let mut dropped = Vec::new();
        let mut now = Stamps::take(self.live)?;
        let private = Stamps::take(self.private)?;
        let retained = self.retained(&now, &mut dropped)?;
        let mut copied = self.copy(&now, self.live_stamps, &private, &retained)?;
        // Another process may be changing it: all files must be from the same moment.
        for _ in 0..ROUNDS {
            let again = Stamps::take(self.live)?;
            if again.entries == now.entries {
                break;
            }
            let private = Stamps::take(self.private)?;
            copied += self.copy(&again, Some(&now), &private, &retained)?;
            now = again;
        }
        Ok(SyncResult {
            live: now,
            copied,
            dropped,
        })
    }

    /// Returns the work trees with a command's unfinished operation that can still continue.
    fn retained(
        &self,
        now: &Stamps,
        dropped: &mut Vec<String>,
    ) -> Result<Vec<PathBuf>, RepositoryError> {
        let mut retained = Vec::new();
        for store in &now.stores {
            for own in worktree::in_workspace(self.live, store, self.directory)? {
                // An operation that cannot be read is not worth keeping.
                let Ok(unfinished) = state::operations(self.private, &own) else {
                    continue;
                };
                let begun = state::operations(self.base, &own)?;
                let Some(new) = unfinished
                    .iter()
                    .find(|operation| !begun.contains(operation))
                else {
                    continue;
                };
                let standing = |git: &GitFolder| {
                    let refs = refs::read_all(git, store)?;
                    worktree::standing(git, &own, &refs)
                };
                let unmoved = self.may_retain
                    && standing(self.live)? == standing(self.base)?
                    && state::operations(self.live, &own)? == begun;
                if unmoved {
                    retained.push(own);
                } else {
                    let (name, path) = (new.name, self.directory.name());
                    dropped.push(format!(
                        "the unfinished {name} in `{path}` was dropped: somebody else moved `HEAD` or the index meanwhile"
                    ));
                }
            }
        }
        Ok(retained)
    }

    fn copy(
        &self,
        now: &Stamps,
        before: Option<&Stamps>,
        private: &Stamps,
        retained: &[PathBuf],
    ) -> Result<usize, RepositoryError> {
        let mut copied = 0;
        for lock in &private.locks {
            // The process that held it is gone.
            self.private.remove_tree(lock)?;
        }
        self.remove(now, private, retained)?;
        for (path, stamp) in &now.entries {
            let same = before.is_some_and(|before| now.is_as_in(before, path));
            if !same {
                copying::copy(self.live, self.base, path, stamp)?;
                copied += usize::from(stamp.kind == PathKind::File);
            }
            let untouched = self
                .private_stamps
                .is_some_and(|known| private.is_as_in(known, path));
            let is_up_to_date = same && untouched
                || is_retained(path, retained)
                || !same && self.is_same_index(path, private);
            if !is_up_to_date {
                // Not from the real one, which others may be changing: whatever differs between these
                // two counts as a command's.
                copying::copy(self.base, self.private, path, stamp)?;
            }
        }
        for store in &now.stores {
            // A store is recognised by it.
            copying::make_folder(self.base, &store.join("objects"))?;
        }
        Ok(copied)
    }

    /// Removes files from both copies that are not in the real git directory.
    fn remove(
        &self,
        now: &Stamps,
        private: &Stamps,
        retained: &[PathBuf],
    ) -> Result<(), RepositoryError> {
        let base = Stamps::take(self.base)?;
        for path in base
            .entries
            .keys()
            .filter(|path| !now.entries.contains_key(*path))
        {
            self.base.remove_tree(path)?;
        }
        let mut removed: Option<&Path> = None;
        for path in private.entries.keys() {
            let is_gone = removed.is_some_and(|above| path.starts_with(above));
            if is_gone || now.entries.contains_key(path) || is_retained(path, retained) {
                continue;
            }
            // The folder of something that stays is needed too.
            let below = private
                .entries
                .range::<Path, _>((Bound::Included(path.as_path()), Bound::Unbounded));
            let mut below = below
                .map(|(path, _)| path)
                .take_while(|below| below.starts_with(path));
            let is_needed = retained.iter().any(|own| own.starts_with(path))
                || below.any(|below| is_retained(below, retained));
            if !is_needed {
                self.private.remove_tree(path)?;
                removed = Some(path);
            }
        }
        Ok(())
    }

    /// Whether the copy's own index has the same entries as another. It then stays, because it
    /// still has what git remembers beside the entries.
    fn is_same_index(&self, path: &Path, private: &Stamps) -> bool {
        let is_file = private
            .entries
            .get(path)
            .is_some_and(|stamp| stamp.kind == PathKind::File);
        let own = path.parent().filter(|_| path.ends_with("index") && is_file);
        let Some(own) = own.filter(|_| !path.starts_with("refs") && !path.starts_with("logs"))
        else {
            return false;
        };
        let entries = |git: &GitFolder| worktree::entries(git, own).ok();
        entries(self.base).is_some_and(|base| entries(self.private) == Some(base))
    }
}

/// Whether a file belongs to an unfinished operation of one of these work trees.
fn is_retained(path: &Path, retained: &[PathBuf]) -> bool {
    let below = retained
        .iter()
        .filter_map(|own| path.strip_prefix(own).ok());
    below.into_iter().any(state::is_private)
}
