//! Command lines to try the gate with: [`corpus`], words that were ever used to make a reading
//! wrong, and seeded mutations. What runs them is a package of its own, `gyrus-oracle`.

pub mod corpus;
mod dictionary;
mod mutation;

pub use self::{dictionary::words, mutation::Stock};
