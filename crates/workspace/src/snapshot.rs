//! The content of a workspace at the end of a cycle, so that a fork can start from it.
//!
//! A snapshot is a JSON blob with the places of the contents of its files: of all of them, or of
//! those that changed since its parent. Small files are stored many to a blob (see `pack`). A file
//! whose size, times and inode are as they were is not read again. A workspace over the limits has
//! no snapshot: a partial one would be mistaken for a whole.
//!
//! Taking never follows a symbolic link and [`materialise()`] never writes through one; a snapshot
//! is checked as a whole before the first file is written. Owners, times and attributes are not
//! kept, nor is anything that is not a file, folder or link, nor build output that git ignores (see
//! `rebuildable`).

mod differences;
mod left_out;
pub(crate) mod manifest;
mod materialise;
pub(crate) mod name;
pub(crate) mod pack;
mod rebuildable;
mod take;
mod tracked;

pub use self::{
    differences::{ChangeSinceSnapshot, Difference, differences},
    left_out::{LeftOutEntry, WhyLeftOut, left_out, without_secrets},
    materialise::materialise,
    rebuildable::{build_output, is_left_out},
    take::{SnapshotResult, Snapshots},
};

use std::{io, path::PathBuf};

use gyrus_contract::BlobId;

/// Maximum number of files, folders and links in one snapshot.
pub const MAX_ENTRIES: u64 = 30_000;
/// Maximum bytes of all files of one snapshot.
pub const MAX_BYTES: u64 = 256 << 20;
/// Maximum bytes of one file.
pub const MAX_FILE_BYTES: u64 = 16 << 20;
/// Maximum number of deltas between a snapshot and the full one at its base.
pub const MAX_DELTAS: u32 = 50;

/// Reason why a snapshot could not be taken, compared or laid out. `E` is the blob store's own
/// error.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError<E> {
    #[error("the store of the snapshot's content failed: {0}")]
    Store(E),
    /// A folder or file could not be used.
    #[error("{path} cannot be used: {source}")]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    #[error("{path} is not an empty folder; name a new one, or empty it")]
    NotEmpty {
        /// The target folder.
        path: PathBuf,
    },
    /// The folder to compare with is over the limits of a snapshot.
    #[error(
        "{path} holds more than a snapshot may (at least {entries} entries, {bytes} bytes), so it \
         cannot be compared with one"
    )]
    TooLarge {
        path: PathBuf,
        /// Number of entries counted so far.
        entries: u64,
        /// Bytes counted so far.
        bytes: u64,
    },
    /// The blob is not a snapshot in the form that this version writes.
    #[error("the snapshot {id} is refused: {reason}")]
    Malformed {
        id: BlobId,
        /// Description of the error.
        reason: String,
    },
}

#[cfg(test)]
mod tests;
