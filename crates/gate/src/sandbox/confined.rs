//! A process that is confined: what it is promised, what does not hold, and why it could not be.

use std::{
    fs::File,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use gyrus_contract::{Listeners, Relayer};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{calls::OtherConfinement, supervisor::Supervisor};

/// A promise of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Promise {
    /// Nothing outside the writable, temporary and layered folders changes.
    Writes,
    /// Hidden files and the machine's services cannot be reached.
    Hidden,
    /// The network is as limited as requested.
    Network,
    /// Other processes cannot be touched, and their memory and environment cannot be read.
    Processes,
    /// Other processes, and the arguments with which they were started, cannot be seen.
    Sight,
    /// No privileges can be gained.
    Privileges,
    /// Processes, memory, CPU time and sizes of files are limited.
    Limits,
}

impl Promise {
    /// All promises.
    pub const ALL: [Promise; 7] = [
        Promise::Writes,
        Promise::Hidden,
        Promise::Network,
        Promise::Processes,
        Promise::Sight,
        Promise::Privileges,
        Promise::Limits,
    ];
}

/// A requested promise that is not kept, or not wholly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The promise that cannot be kept.
    pub promise: Promise,
    /// The missing part, and the reason.
    pub reason: String,
}

/// A confined process. Must be kept until all processes that it starts have ended.
#[derive(Debug, Default)]
pub struct ConfinedProcess {
    /// Sockets on which gyrus serves its proxy, if the network is a proxy.
    pub listeners: Option<Listeners>,
    /// Variables to be set in the command's environment.
    pub environment: Vec<(String, String)>,
    /// Promises that are not kept, or not wholly.
    pub gaps: Vec<Gap>,
    /// Layered folders that are read-only instead: the file system cannot do better, or another
    /// command has them.
    pub unlayered: Vec<PathBuf>,
    /// Whether signals of this process reach only itself and its descendants.
    pub signals_contained: bool,
    /// Rules of Landlock that the command's process has to enter before its program starts: it may
    /// write no more than the mounts allow, or, without namespaces, cannot signal this one.
    pub command_rules: Option<OwnedFd>,
    /// Replaces the layer that the containment requires.
    pub relayer: Option<Box<dyn Relayer>>,
    /// Whether another command may run here once all processes of this one have ended.
    pub may_stay: bool,
    /// Locks on the folders of the layers' changes.
    pub(super) locks: Vec<File>,
}

impl ConfinedProcess {
    pub(super) fn gap(&mut self, promise: Promise, reason: impl Into<String>) {
        let reason = reason.into();
        self.gaps.push(Gap { promise, reason });
    }

    pub(super) fn set(&mut self, name: &str, folder: &Path) {
        let folder = folder.to_string_lossy().into_owned();
        self.environment.push((name.to_owned(), folder));
    }
}

/// The error of a process that could not be confined. It may be confined partly, so it has to end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    #[error("`{}` cannot be part of a sandbox: {reason}", path.display())]
    Path { path: PathBuf, reason: &'static str },
    /// The operating system refused an operation on a path.
    #[error("the sandbox could not be built: {doing} `{}`: {source}", path.display())]
    At {
        /// The step that failed.
        doing: &'static str,
        /// The path of the operation.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The operating system refused an operation.
    #[error("the sandbox could not be built: {doing}: {source}")]
    Refused {
        /// The step that failed.
        doing: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
    #[error("nothing can confine a command here: no namespaces ({reason}) and no landlock")]
    Nothing {
        /// The reason why namespaces are not available.
        reason: io::Error,
    },
}

pub(super) fn refused<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> ConfineError {
    move |source| ConfineError::Refused {
        doing,
        source: source.into(),
    }
}

/// The walls around a process before its filter is installed.
pub(super) struct ProcessWalls<'a> {
    pub(super) beside: OtherConfinement,
    /// The confinement that remains if no supervisor can be started after all.
    pub(super) unsupervised: OtherConfinement,
    pub(super) supervisor: Option<Supervisor>,
    /// Folder for temporary files.
    pub(super) temporary: &'a Path,
}

/// Whether an error means that a file is missing or cannot be seen.
pub(super) fn is_absent(error: Errno) -> bool {
    matches!(
        error,
        Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::NAMETOOLONG
    )
}
