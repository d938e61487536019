//! Command lines as data, to try whatever reads, judges or contains them: [`corpus`], words that
//! were ever used to make a reading wrong, seeded mutations, and scripts that lay out the folders
//! in which the lines mean something.
//!
//! It stands on no crate of ours, so that every crate's tests may use it. What runs the lines is
//! `gyrus-oracle`.

pub mod corpus;
mod dictionary;
pub mod folders;
mod mutation;

pub use self::{dictionary::words, mutation::Stock};
