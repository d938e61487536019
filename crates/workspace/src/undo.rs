//! Undoes the changes between two snapshots of a folder.
//!
//! [`UndoPlan::new`] compares the snapshot to go back to with the last one, and with the present state:
//! only paths that are still as in the last one are undone. [`UndoPlan::apply`] first copies all
//! entries that will be removed into a trash folder, then changes one path after the other, each by
//! one system call: after a crash a path is either in its old or its new state, and planning again
//! finds the rest. The files of a repository's `.git` belong together: if one of them cannot be
//! undone, none is.
//!
//! Times, owners, attributes and hard links are not restored. The author of a change between two
//! snapshots is not known: a person's edit during the run counts as the run's.

mod apply;
mod carry_over;
pub(crate) mod look;
mod patch;
mod plan;

use std::{io, path::PathBuf};

use gyrus_contract::BlobId;
use serde::{Deserialize, Serialize};

use crate::snapshot::SnapshotError;

pub use self::{apply::UndoResult, patch::patch_between, plan::UndoPlan};

/// Action of an undo on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoAction {
    /// The run created the path: it is moved to the trash.
    Delete,
    /// The run changed the path: it is restored.
    Restore,
    /// The run removed the path: it is created again.
    Create,
    /// Only the permissions are restored.
    Mode,
}

/// One path that is undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoChange {
    /// The path, as in [`crate::snapshot::Difference`].
    pub path: String,
    pub action: UndoAction,
    /// Kind of the entry: what it will be, or was.
    pub kind: EntryKind,
    /// Size of the restored file, or of the removed one.
    pub bytes: u64,
}

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    Folder,
    /// A repository, with its references, `HEAD`, index and settings.
    Repository,
}

/// One path that the run changed and that is not undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoRefusal {
    /// The path, as in [`Change::path`].
    pub path: String,
    /// The reason, in a few words.
    pub why: String,
}

/// Reason why nothing could be undone. `E` is the blob store's own error.
#[derive(Debug, thiserror::Error)]
pub enum UndoError<E> {
    /// A snapshot is damaged, or was dropped.
    #[error("what was kept of the folder cannot be read: {0}")]
    Snapshot(#[from] SnapshotError<E>),
    /// The content of a file is damaged or gone.
    #[error(
        "the content {blob} that belongs to {path} cannot be read; nothing was changed: {source}"
    )]
    Content {
        /// Path of the file.
        path: String,
        /// The id of the content in the store.
        blob: BlobId,
        source: Box<SnapshotError<E>>,
    },
    /// The workspace or the trash cannot be used.
    #[error("{path} cannot be used: {source}")]
    Folder {
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}
