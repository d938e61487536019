//! Making the changes between two snapshots in another folder that is as in the first of them: an undo
//! with the two exchanged.

use std::path::Path;

use gyrus_contract::BlobId;

use super::{UndoAction, UndoError, UndoPlan, UndoRefusal};
use crate::snapshot::manifest::{SnapshotEntries, SnapshotEntry, load_contents};

impl UndoPlan {
    /// Plans to make the changes from the snapshot `from` to the snapshot `to` in `folder`: only paths
    /// that are there as in `from` are changed. Git's own files are left out, and no file goes that is
    /// or holds a secret; `load` reads a blob.
    ///
    /// # Errors
    /// When a snapshot or the folder cannot be read.
    pub fn carry_over<E>(
        folder: &Path,
        from: &BlobId,
        to: &BlobId,
        load: &dyn Fn(&BlobId) -> Result<Vec<u8>, E>,
    ) -> Result<Self, UndoError<E>> {
        let mut from = load_contents(from, &load)?.entries;
        let mut to = load_contents(to, &load)?;
        let git = differing_repositories(&from, &to.entries);
        from.retain(|path, _| repository_of(path).is_none());
        to.entries.retain(|path, _| repository_of(path).is_none());
        let mut plan = Self::between(folder, to, from, load)?;
        plan.apart = git.into_iter().map(Into::into).collect();
        let is_secret = |path: &str| {
            matches!(
                plan.after.get(path),
                Some(SnapshotEntry::File { apart: true, .. })
            )
        };
        let goes = |change: &&super::UndoChange| {
            change.action == UndoAction::Delete && is_secret(&change.path)
        };
        let kept: Vec<String> = plan
            .changes
            .iter()
            .filter(goes)
            .map(|change| change.path.clone())
            .collect();
        for path in kept {
            plan.leave_alone(
                &path,
                "it is or holds a secret, and was not where the run worked",
            );
        }
        Ok(plan)
    }

    /// Excludes a path from the undo, for this reason.
    pub fn leave_alone(&mut self, path: &str, why: &str) {
        self.changes.retain(|change| change.path != path);
        self.refused.push(UndoRefusal {
            path: path.to_owned(),
            why: why.to_owned(),
        });
        self.refused.sort_by(|one, two| one.path.cmp(&two.path));
    }
}

/// Returns the `.git` in which a path lies, or that it is.
fn repository_of(path: &str) -> Option<&str> {
    let at = path.split('/').scan(0, |end, part| {
        *end += part.len() + 1;
        Some((*end - 1, part))
    });
    let mut at = at.filter(|(_, part)| *part == ".git");
    at.next().map(|(end, _)| &path[..end])
}

/// Returns the repositories whose git directories differ.
fn differing_repositories(from: &SnapshotEntries, to: &SnapshotEntries) -> Vec<String> {
    let paths = from.keys().chain(to.keys());
    let differ = paths.filter(|path| from.get(*path) != to.get(*path));
    let mut found: Vec<String> = differ
        .filter_map(|path| repository_of(path).map(str::to_owned))
        .collect();
    found.sort();
    found.dedup();
    found
}
