//! gyrus against its own conformance suite, and the proof that the suite bites.

mod smoke;
mod matrix;
