//! The errors of layers.

use std::{io, path::PathBuf};

use crate::root::RootError;

/// Maximum number of entries in a layer, including deletions.
pub const MAX_LISTED: usize = 2_000_000;

/// Maximum bytes of a path in a layer. The system takes no more than 4,096 at once; longer ones are
/// made by entering folders one after the other.
pub(super) const MAX_PATH_BYTES: usize = 8_192;

/// Reason why a layer cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// A system call failed.
    #[error(transparent)]
    System(#[from] RootError),
    /// One of the layer's own files cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    File {
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    #[error("there are more than {MAX_LISTED} changes")]
    TooMany,
    /// A folder is nested too deep.
    #[error("a path has more than {MAX_PATH_BYTES} bytes")]
    TooDeep,
    /// The folder and the layer are on different file systems, so renames between them fail.
    #[error("`{}` and `{}` lie on different file systems or mounts", one.display(), other.display())]
    Apart { one: PathBuf, other: PathBuf },
}
