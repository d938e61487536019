//! Taking back what lies between two snapshots of a folder.
//!
//! [`Plan::new`] compares the snapshot to go back to with the last one, and looks at what stands
//! there now: only what is still as the last one says is taken back. [`Plan::apply`] first copies
//! everything that will go into a trash folder, then changes one thing after the other, each by one
//! call of the system: after a crash a path is as it was before or after, and planning again finds
//! the rest. What a repository's `.git` holds belongs together: if something of it cannot be taken
//! back, nothing of it is.
//!
//! Times, owners, attributes and hard links do not come back. Who changed a file between two
//! snapshots is not known: a person's edit while the run went on counts as the run's.

mod apply;
pub(crate) mod look;
mod plan;

use std::{io, path::PathBuf};

use gyrus_contract::BlobId;
use serde::{Deserialize, Serialize};

use crate::snapshot::SnapshotError;

pub use self::{apply::Done, plan::Plan};

/// What happens to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The run made it: it goes to the trash.
    Delete,
    /// The run changed it: it becomes what it was.
    Restore,
    /// The run removed it: it is made again.
    Create,
    /// Only who may read, write or execute it changes back.
    Mode,
}

/// One path that is taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// As in [`crate::snapshot::Difference`].
    pub path: String,
    /// What happens to it.
    pub action: Action,
    /// `file`, `link` or `folder`: what it will be, or was.
    pub kind: Kind,
    /// Of the file that comes back, or of the one that goes.
    pub bytes: u64,
}

/// What a path stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A folder.
    Folder,
    /// A repository: its references, `HEAD`, index and settings.
    Repository,
}

/// One path that the run changed and that is left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// As in [`Change::path`].
    pub path: String,
    /// Why, in a few words.
    pub why: String,
}

/// Why nothing could be taken back. `E` is the blob store's own error.
#[derive(Debug, thiserror::Error)]
pub enum UndoError<E> {
    /// A snapshot is damaged, or was dropped.
    #[error("what was kept of the folder cannot be read: {0}")]
    Snapshot(#[from] SnapshotError<E>),
    /// The content of one file is damaged or gone.
    #[error(
        "the content {blob} that belongs to {path} cannot be read; nothing was changed: {source}"
    )]
    Content {
        /// Of this.
        path: String,
        /// Its name in the store.
        blob: BlobId,
        /// Why.
        source: Box<SnapshotError<E>>,
    },
    /// The workspace or the trash cannot be used.
    #[error("{path} cannot be used: {source}")]
    Folder {
        /// Which.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
}
