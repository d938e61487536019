//! The changes of a changeset, and why they cannot be applied.

use std::path::{Path, PathBuf};

use gyrus_contract::Digest;
use rustix::io::Errno;

use super::intent::HOME;
use crate::root::RootError;

/// Mode bits of executable files.
pub const EXECUTE: u32 = 0o111;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Path below the workspace.
    pub path: PathBuf,
    /// Digest of the file for which the changeset was made; `None` if the file must not exist.
    pub before: Option<Digest>,
    /// New state; `None` to delete the file.
    pub after: Option<After>,
}

/// New state of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct After {
    /// The whole content.
    pub content: Vec<u8>,
    /// Whether the file is executable; `None` keeps the old setting, and makes a new file not
    /// executable.
    pub executable: Option<bool>,
}

/// Reason why no change was applied.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("nothing was changed, because files are not as the changeset expects: {}", .0.join("; "))]
    Conflicts(Vec<String>),
    /// The folder of slots is locked.
    #[error("another changeset is being applied here; nothing was changed, try again later")]
    Busy,
    /// A system call failed; all files are as before.
    #[error("{}; nothing was changed{}", .0, room(.0))]
    Failed(#[from] RootError),
    /// Applying failed half way, and so did the undo.
    #[error(
        "{why}, and then what was done so far could not be taken back: {then}. The old files are \
         in `{HOME}`; the next changeset takes them back before it begins"
    )]
    Stranded {
        /// Reason why the changes were not applied.
        why: String,
        /// Reason why the changes were not undone.
        then: RootError,
    },
}

impl ApplyError {
    /// Combines this error with the one that made the undo fail.
    pub(super) fn stranded(self, then: RootError) -> Self {
        let why = match self {
            Self::Conflicts(files) => files.join("; "),
            Self::Failed(failed) => failed.to_string(),
            Self::Busy | Self::Stranded { .. } => self.to_string(),
        };
        Self::Stranded { why, then }
    }
}

fn room(failed: &RootError) -> &'static str {
    match failed.error {
        Errno::NOSPC | Errno::DQUOT => ", make room first",
        _ => "",
    }
}

pub(super) fn conflict(path: &Path, what: &str) -> ApplyError {
    ApplyError::Conflicts(vec![format!("`{}` {what}", path.display())])
}
