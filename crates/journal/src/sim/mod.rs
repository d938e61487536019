//! A disk in memory that loses, tears and fails as real ones do, and an explorer that uses it.
//!
//! Everything follows from a seed, down to the byte: the same seed tells the same story in every
//! process. [`SimDisk`] is of use to any test that wants a store to meet a full disk, a failing
//! sync or a power cut at an exact place; [`explore`] lives a random life of a log on it and
//! checks after every crash that what was acknowledged is there and nothing else is.

mod contents;
mod tree;
mod disk;
mod file;
mod scenario;
mod oracle;
mod life;
mod aftermath;
#[cfg(test)]
mod tests;

pub use disk::{Fault, SimDisk};
pub use life::{Failure, explore, shrink};
pub use scenario::Scenario;
