//! Changes of references, `HEAD` and indexes that wait for a person's approval.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    changes::StoreChanges,
    names::{ObjectId, RefName},
};

/// Changes of references, `HEAD` and indexes that need a person's approval because of files in
/// their commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithheldHistory {
    /// The real git directory.
    pub repository: PathBuf,
    pub(super) changes: StoreChanges,
    pub files: Vec<HistoryFile>,
}

/// A file of a commit or an index that a person has to approve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryFile {
    /// The newest commit with the new file; `None` if the file is only staged.
    pub commit: Option<ObjectId>,
    /// Path below the workspace, or below the work tree if that is elsewhere.
    pub path: PathBuf,
    /// Reason for withholding the file, in a few words.
    pub reason: String,
    /// The change as a unified diff.
    pub diff: String,
}

impl WithheldHistory {
    /// Returns the names of what is held back: references, `HEAD`, `index`.
    pub fn held(&self) -> Vec<String> {
        let refs = self.changes.refs.iter();
        let mut names: Vec<String> = refs.map(|change| short(&change.name)).collect();
        for change in &self.changes.worktrees {
            if change.head.0 != change.head.1 {
                names.push(change.file("HEAD").display().to_string());
            }
            if !change.index.is_empty() {
                names.push(change.file("index").display().to_string());
            }
        }
        names
    }

    /// Removes the differences, which contain a secret. The changes can still be applied.
    pub fn leave_out_content(&mut self) {
        for file in &mut self.files {
            "(content with a secret, which is not shown)\n".clone_into(&mut file.diff);
        }
    }
}

impl HistoryFile {
    /// Returns the file and its place, for a person.
    pub fn name(&self) -> String {
        let path = self.path.display();
        match &self.commit {
            Some(commit) => format!("{path} in commit {}", &commit.to_string()[..10]),
            None => format!("{path} in the index"),
        }
    }
}

fn short(name: &RefName) -> String {
    let name = name.below_refs();
    name.strip_prefix("heads/").unwrap_or(name).to_owned()
}
