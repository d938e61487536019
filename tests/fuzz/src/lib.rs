//! Fuzzing: bytes nobody expected, for what reads bytes that others wrote.
//!
//! A [`Target`] says which properties hold for whatever it is given. A [`campaign`] makes inputs
//! from its seeds, and where the compiler counts what runs (`-C instrument-coverage`, which stable
//! Rust has), it goes on from those inputs that reach something new. Everything follows from a
//! seed. What breaks a property is made as short as it can be.
//!
//! `cargo xtask fuzz` builds it so and runs all targets; the tests run a sample without counters.

pub mod campaign;
pub mod targets;
mod coverage;
mod minimise;
mod mutation;
mod watch;

/// Reads bytes, and has properties that hold whatever they are.
pub trait Target {
    /// As it is called on the command line.
    const NAME: &'static str;

    /// Inputs to start from.
    fn seeds(&self) -> Vec<Vec<u8>>;

    /// Texts that have a meaning to it, to be put into inputs.
    fn words(&self) -> Vec<Vec<u8>>;

    /// Longest input that is tried, in bytes.
    fn longest(&self) -> usize;

    /// Reads an input. `Err` says which property does not hold for it; a panic is one as well.
    fn check(&self, input: &[u8]) -> Result<(), String>;
}
