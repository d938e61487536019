//! A disk in memory that loses, tears and fails as real ones do, and an explorer that uses it.
//!
//! Everything follows from a seed, down to the byte: the same seed gives the same result in every
//! process. [`SimDisk`] is of use to any test that wants a store to meet a full disk, a failing
//! sync or a power cut at an exact place; [`explore`] runs a random scenario of a log on it and
//! checks after every crash that exactly the acknowledged entries are there.

mod contents;
mod tree;
mod machine;
mod disk;
mod file;
mod scenario;
mod oracle;
mod life;
mod aftermath;
#[cfg(test)]
mod copies;
#[cfg(test)]
mod tests;

pub use disk::SimDisk;
pub use life::{JournalViolation, explore, shrink};
pub use machine::Fault;
pub use scenario::Scenario;
