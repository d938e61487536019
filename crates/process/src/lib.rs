//! Child processes of a run: process identities, and the keeper that ends a command's whole process
//! tree.
//!
//! The one idea: a process is named by its number, its start time and the boot
//! ([`ProcessIdentity`]), so it can be written down and killed later without ever hitting another
//! that got its number; and a command runs below a process that watches a socket of the run's
//! process, so that no tree outlives its run however either of them ends ([`keeper`]). Where the run
//! may be taken over by another machine, the kernel ends both at a deadline ([`lease`]). Programs for
//! a person's own rights are found where no run can have put one ([`Programs`]). Files that a person or a folder
//! names are opened without waiting for another process ([`open_regular`]).
//!
//! This crate does not know journals, policies or sandboxes: the caller passes the keeper a
//! function that confines a process.

mod identity;
pub mod keeper;
pub mod lease;
mod programs;
mod regular_file;
pub mod serving;

pub use identity::ProcessIdentity;
pub use programs::{ProgramError, Programs};
pub use regular_file::{open_regular, read_regular, read_regular_text};
