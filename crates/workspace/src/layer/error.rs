//! The errors of layers.

use std::{io, path::PathBuf};

use crate::root::Failed;

/// Maximum number of entries that a layer may hold or hide.
pub const MAX_LISTED: usize = 2_000_000;

/// Reason why a layer cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// A system call failed.
    #[error(transparent)]
    System(#[from] Failed),
    /// One of the layer's own files cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// There are too many changes.
    #[error("there are more than {MAX_LISTED} changes")]
    TooMany,
    /// The folder and the layer are not on one file system, so renames between them fail.
    #[error("`{}` and `{}` lie on different file systems", one.display(), other.display())]
    Apart {
        /// The folder.
        one: PathBuf,
        /// The layer.
        other: PathBuf,
    },
}
