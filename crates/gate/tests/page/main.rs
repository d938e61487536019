//! Inputs on pages through the whole gate: what passes, what is asked about, and in which mode.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod world;
mod controls;
mod desktop;
mod destinations;
mod fields;
mod properties;
