//! A sweep of broken streams through the readers of every protocol.
//!
//! Everything follows from a seed: the same seed breaks the same bytes in every process. The checks
//! of each stream are in `oracle`, the mutations in `mutate`.

mod specimen;
mod mutate;
mod oracle;
mod sweep;

pub use specimen::Specimen;
pub(crate) use specimen::read;
pub use sweep::{MisreadStream, StreamSweep, sweep};

/// Returns the canonical stream of every protocol.
pub fn specimens() -> &'static [Specimen] {
    crate::SPECIMENS
}

#[cfg(test)]
mod tests;
