//! Child processes of a run: which process is which, and the keeper that a command's whole process
//! tree dies with.
//!
//! The one idea: a process is named by its number, its start time and the boot ([`ProcessIdentity`]),
//! so it can be written down and killed later without ever hitting another that got its number; and
//! a command runs below a process that watches a socket of the run's process, so that no tree
//! outlives its run however either of them dies ([`keeper`]). Programs for a person's own rights are
//! found where no run can have put one ([`Programs`]).
//!
//! This crate knows nothing of journals, of what may be run, or of sandboxes: whoever builds one
//! hands the keeper a function that confines it.

mod identity;
pub mod keeper;
mod programs;

pub use identity::ProcessIdentity;
pub use programs::{ProgramError, Programs};
