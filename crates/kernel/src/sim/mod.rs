//! Budgets under random schedules.
//!
//! A schedule is a tree of runs that ask models, start children, lose races, abandon cycles, park,
//! are killed and resumed, in an order that follows from a seed. The accounts are the real ones; the
//! kernel's code around them is mirrored in `world`, and the truth is kept separately, as plain
//! sums, in `oracle`. After every operation each account must agree with the truth, and no limit may
//! be passed by more than what a provider reported beyond its reservation.
//!
//! Not modelled: two requests at the same instant (the branches of a run and its children share one
//! task), steps and time, and requests of a process before it has taken up the whole tree: here the
//! tree is taken up at once.

mod journal;
mod oracle;
mod world;
mod schedule;
mod sweep;
mod tests;
