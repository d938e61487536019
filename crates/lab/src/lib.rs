//! Trials of gyrus: the demo, evaluations, and web sites to practise on.
//!
//! The one idea: the lab is a person at a second terminal. It starts the whole program as a
//! process ([`Installation::command`]), watches it through its journals, answers what it asks,
//! kills it where that is the point, and looks for itself at what really happened: at the process
//! table, at the folder, at the ledger of a site. Nothing here knows how the program is wired; the
//! few things that only the wired program can do are methods of [`Installation`].
//!
//! What is found goes to a [`LabConsole`].
//!
//! Reading order: [`installation`](Installation), [`demo`], [`eval`], [`sites`].

mod error;
mod installation;
pub mod demo;
pub mod eval;
pub mod sites;
mod recording;

pub use error::{Complaint, LabError};
pub use installation::{CommandEnd, Installation, LabConsole, TrialEnd};
pub use recording::RecordedScript;
