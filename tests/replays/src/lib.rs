//! Replays learned procedures on pages that have changed since, and judges each replay by what
//! really happened at the site.
//!
//! The one idea: only the site's ledger knows. A replay that did exactly what its command says is
//! *replayed*; one that did nothing that binds anybody, and said where it stopped, is *handed over*;
//! whatever else happened, however the run called it, is *wrong*.
//!
//! `tasks` says what is learned and asked for, `program` runs gyrus as a person would, `verdict`
//! compares the ledger, `series` does it many times. `applications` does the same on real
//! applications, with values of `kinds_of_values`.

mod applications;
mod kinds_of_values;
mod program;
mod series;
mod tasks;
mod verdict;

pub use applications::ApplicationSeries;
pub use series::{Count, Kills, Series, gyrus_beside, table};
pub use tasks::{LearnedTask, TASKS, Values};
pub use verdict::Verdict;
