//! What a run can do: the [`Registry`] of tools, and the tools that every run has.
//!
//! The one idea: a tool does exactly what the gate judged. It takes a `Cleared` call only,
//! reaches files only through the paths that were resolved before the verdict (see the module
//! `place`), and starts processes only through its site. Its words are for a model: bounded, and
//! an error says what to do differently.
//!
//! Not here: whether a call is allowed, redaction, journals. Nothing is remembered between calls.

mod registry;
mod arguments;
mod place;
mod read;
mod listing;
mod write;
mod shell;
mod finish;

pub use finish::Finish;
pub use read::Read;
pub use registry::{DuplicateTool, Registry};
pub use shell::Shell;
pub use write::Write;
