//! The reason why a writer or a mirror accepts nothing more.
//!
//! It cannot be known what a failed sync left behind, and a second sync may report a success that
//! means nothing. So a failure is final, and every later call reports it again.

use std::{io, path::PathBuf, sync::Arc};

use crate::{Error, LogName};

/// A final failure, from which an error can be made repeatedly.
#[derive(Debug, Clone)]
pub(crate) enum FinalFailure {
    /// The local disk failed.
    Disk {
        what: &'static str,
        path: PathBuf,
        intact: u64,
        source: Arc<io::Error>,
    },
    /// The replica did not store a batch that the local disk has.
    Replica { intact: u64, why: String },
}

impl FinalFailure {
    /// Converts the error of an operation on the disk. Entries up to `intact` are not affected.
    pub(crate) fn of(error: Error, intact: u64) -> Self {
        match error {
            Error::Io { what, path, source } => FinalFailure::Disk {
                what,
                path,
                intact,
                source: source.into(),
            },
            other => FinalFailure::Disk {
                what: "write",
                path: PathBuf::new(),
                intact,
                source: Arc::new(io::Error::other(other)),
            },
        }
    }

    /// Returns the failure as the error of a log.
    pub(crate) fn error(&self, name: &LogName) -> Error {
        let name = name.clone();
        match self {
            FinalFailure::Disk {
                what,
                path,
                intact,
                source,
            } => Error::Failed {
                name,
                what,
                path: path.clone(),
                intact: *intact,
                source: Arc::clone(source),
            },
            FinalFailure::Replica { intact, why } => Error::ReplicaFailed {
                name,
                intact: *intact,
                why: why.clone(),
            },
        }
    }
}
