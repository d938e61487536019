//! Renderings of a run for people and programs.
//!
//! [`projection`] folds the entries of a journal into what happened, once and exhaustively; every
//! surface renders [`projection::Happening`]s and none matches entries for display itself. So a new
//! kind of entry is visible everywhere as soon as the projection knows it.
//!
//! Reading order: `projection`, then the surfaces: `console` (a person at a terminal), `page` (a run
//! as one HTML file), `json` and `trace` (programs). `watching` feeds them while a run goes on.
//!
//! A surface has no private view of a run: it reads durable entries, and an answer that is given to
//! it is a message in the run's inbox. It may rename and leave out, but never add a fact.
#![deny(clippy::wildcard_enum_match_arm)]

pub mod projection;
pub mod console;
pub mod page;
pub mod json;
pub mod trace;
pub mod trace_file;
mod live_replies;
pub mod shown_plan;
mod shown_processes;
pub mod speech;
pub mod tree_follower;
pub mod watching;
pub mod change_cycle;
pub mod phases;
pub mod left_files;
pub mod usage;
pub mod compare;
pub mod notify;
pub mod card_editor;
pub mod output;
pub mod terminal;
pub mod keys;
mod sessions;
mod error;

pub use error::{SurfaceError, next_step};
pub use sessions::{SessionSummary, run_started, session_title, sessions};
pub use shown_processes::{ShownProcess, ShownProcesses};
