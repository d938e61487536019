//! Private copies of a workspace's repositories for commands, whose changes are carried over.
//!
//! The one idea: a command never sees the real git directory. It gets a copy of everything in it
//! but the objects, which it can read in the real place ([`PrivateCopy::binds`]). After its end,
//! the copy is compared with the state it was made from, and changes of git's own data (objects,
//! references, `HEAD`, index, logs, the state of a merge, harmless settings) are carried over into
//! the real one under git's own locks, in an order that leaves it intact when killed anywhere.
//! Files that control programs (settings, hooks, attributes, lists of steps) are [`WithheldPath`] until
//! a person approves them, and so are commits with such files ([`WithheldHistory`]). Changes that a person made meanwhile stay, and those in conflict with
//! them are kept under `refs/gyrus/kept`.
//!
//! The order of a run: [`find`] before the first command; [`PrivateCopy::prepare`] for each
//! [`GitDirectory`] that is [`Support::Carried`], the real one bound read-only for the others;
//! before each command [`recover`] and [`PrivateCopy::refresh`]; after it [`PrivateCopy::changes`]
//! and [`PrivateCopy::carry`], or [`PrivateCopy::discard`]. Later, perhaps, [`apply_withheld`] and
//! [`restore`]. Repositories that a command made are judged by [`examine_new`].
//!
//! **Assumptions.** The real git directory is written by the person and by this module alone: a
//! command must not be able to write it, nor the run's folder, by any way but the copy, and no
//! process may have access to the copy while a method of it runs. Everything in the copy is
//! untrusted: it is read by this module's own readers, bounded and without following links, or by a
//! git that sees only objects (`git.rs`). No process that is started here reads the configuration
//! of any repository, or runs a hook, filter, helper or anything else that one names.
//!
//! References are written here and not by `git update-ref`: so the locks of references, `HEAD`,
//! index and settings are all held at once, each can be distinguished from those of others after a
//! kill, and logs are written under them. Any git since 2.11 will do.
//!
//! Not supported, as reported by [`find`] or [`PrivateCopy::prepare`]: reftable, SHA-256, partial
//! clones, unknown extensions, split and sparse indexes; and by [`PrivateCopy::carry`], file
//! systems without hard links. Not carried over, as reported in the notes: submodules that a
//! command adds, removed work trees, recorded resolutions (`rr-cache`), the files of large-file
//! extensions.

mod names;
mod folder;
mod pointer;
mod find;
mod config;
mod config_edit;
mod settings;
mod refs;
mod reflog;
mod index;
mod index_path;
mod state;
mod stamps;
mod copying;
mod worktree;
mod alternates;
mod withheld;
mod withheld_history;
mod changes;
mod protected;
mod compare;
mod plan;
mod sync;
mod private_copy;
mod git;
mod objects;
mod log;
mod hold;
mod history_rule;
mod history;
mod locks;
mod decide;
mod keep;
mod stage;
mod apply;
mod carried;
mod carry;
mod restore;
mod examine;

pub use alternates::RealObjects;
pub use carried::{CarryError, CarryRecord, UncarriedChange};
pub use carry::recover;
pub use changes::{
    FinishedOperation, RefChange, RepositoryChanges, RepositoryFileChange, StateChange,
    StoreChanges, WorktreeChange,
};
pub use config::SettingName;
pub use examine::{examine_new, take_back_new};
pub use find::{Discovery, GitDirectory, MAX_DEPTH, MAX_FOLDERS, MAX_REPOSITORIES, Support, find};
pub use history_rule::HistoryRule;
pub use index::{EntryContent, IndexChange};
pub use names::{ObjectId, RefName, RefValue};
pub use private_copy::{PrivateCopy, RefreshResult};
pub use reflog::LogChange;
pub use restore::{Restorable, apply_history, apply_withheld, look_at_restoring, restore};
pub use settings::SettingChange;
pub use withheld::{FileContent, WithheldPath};
pub use withheld_history::{HistoryFile, WithheldHistory};

use std::{
    io,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use crate::root::{RootError, failed};

/// Reason why a repository, or its private copy, cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryError {
    /// A system call failed.
    #[error(transparent)]
    System(#[from] RootError),
    /// The path leads to a link, a folder or a device where git needs a file.
    #[error("`{}` is not a regular file", .0.display())]
    NotRegular(PathBuf),
    /// A file is larger than any that git writes at its place.
    #[error("`{}` has more than {limit} bytes", path.display())]
    TooLarge {
        path: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    #[error("`{}` holds more than {limit} entries", path.display())]
    TooMany {
        /// The folder or file.
        path: PathBuf,
        /// Maximum number of entries.
        limit: usize,
    },
    /// The content of a file is not in git's format.
    #[error("invalid `{}`: {reason}", path.display())]
    Damaged {
        path: PathBuf,
        /// Description of the damage.
        reason: String,
    },
    /// The form of the repository is not supported.
    #[error("`{}` is not supported: {reason}", path.display())]
    NotSupported {
        path: PathBuf,
        /// The reason, in a few words.
        reason: String,
    },
}

impl RepositoryError {
    /// Returns the error for a failed system call at `path`.
    pub fn io(path: &Path, error: &io::Error) -> Self {
        failed(path, Errno::from_io_error(error).unwrap_or(Errno::IO)).into()
    }
}
