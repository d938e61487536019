//! Budgets under random schedules.
//!
//! A schedule is a tree of runs that ask models, start children, lose races, give cycles up, park,
//! are killed and resumed, in an order that follows from a seed. The ledgers are the real ones;
//! what the kernel does around them is mirrored in `world`, and what is true is kept apart, as
//! plain sums, in `oracle`. After every operation each ledger must say what is true, and no limit
//! may be passed by more than what a provider reported beyond what was reserved for it.
//!
//! Not here: two requests at the same instant (the branches of a run and its children share one
//! task), steps and time, and what a process that takes a tree up asks before all of it is taken
//! up: here the whole tree is, at once.

mod journal;
mod oracle;
mod world;
mod schedule;
mod sweep;
#[cfg(test)]
mod tests;

pub use schedule::{Failure, Operation, live};
pub use sweep::{Sweep, sweep};
