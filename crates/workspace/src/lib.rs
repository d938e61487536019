//! The content of a workspace and how it changes: snapshots of it, several files changed together,
//! taking back what lies between two snapshots, the repositories in it, and layers over folders that
//! are too large for snapshots.
//!
//! The one idea: everything goes through a [`Root`], a folder held open below which no symbolic link
//! is ever followed, so that whatever is swapped meanwhile leads nowhere else; and every change is
//! one call of the system between two states that both make sense, so that a crash leaves something
//! that the next process can finish or take back.
//!
//! This crate knows nothing of runs, journals, tools or approvals: contents go to a [`ContentStore`]
//! that the caller hands it, which also says which of them are secret, and come from a function.

mod root;
mod contents;
pub mod snapshot;
pub mod changeset;
pub mod undo;
mod change_set;
pub mod repository;
pub mod layer;

pub use change_set::{ChangeSet, Recorded};
pub use contents::{ContentStore, Secrecy};
pub use root::{Failed, Pace, Parent, Root};
