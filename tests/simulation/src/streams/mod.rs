//! A sweep of broken streams through the readers of every protocol.
//!
//! Everything follows from a seed: the same seed breaks the same bytes in every process. The checks
//! of each stream are in `oracle`, the mutations in `mutate`.

mod mutate;
mod oracle;
mod sweep;

pub use sweep::{MisreadStream, StreamSweep, sweep};

#[cfg(test)]
mod tests;
