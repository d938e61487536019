//! Small pieces of text handling that several crates need, each in one place.
//!
//! Everything here is a pure function of its arguments. This crate stands on no other crate of the
//! workspace and knows nothing of runs, models or terminals.
