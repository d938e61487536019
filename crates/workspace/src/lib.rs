//! The content of a workspace and how it changes: snapshots of it, atomic changes of several files,
//! the undo of changes between two snapshots, the repositories in it, and layers over folders that
//! are too large for snapshots.
//!
//! The one idea: everything goes through a [`RootFolder`], a folder held open below which no symbolic
//! link is ever followed, so that a path swapped meanwhile cannot lead elsewhere; and every change
//! is one system call between two consistent states, so that after a crash the next process can
//! finish or undo it.
//!
//! This crate does not know runs, journals, tools or approvals: contents go to a [`ContentStore`]
//! that the caller passes, which also decides which of them are secret, and come from a function.

mod root;
mod contents;
pub mod snapshot;
pub mod changeset;
pub mod undo;
mod change_set;
pub mod patch;
pub mod repository;
pub mod layer;

pub use change_set::{ChangeRecord, ChangeSet, text_diff};
pub use contents::{ContentStore, Secrecy};
pub use root::{Pace, Parent, RootError, RootFolder};
