//! Simulations that try parts of the program against worlds which fail on purpose.
//!
//! Everything follows from a seed: the same seed gives the same world in every process, so a failure
//! is found again at once. `cargo xtask sim` lives as many seeds as it is told to; the tests here
//! live a sample. Budgets of a tree of runs are simulated in the tests of `kernel`, whose accounts
//! are its own.

pub mod journal;
#[cfg(feature = "streams")]
pub mod streams;
#[cfg(feature = "fleet")]
pub mod fleet;
