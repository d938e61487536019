//! Private copies of real repositories, changed and carried over by the real git.

#![expect(
    clippy::unwrap_used,
    reason = "a failed step fails the test, helpers included"
)]

mod world;
mod scenarios;
mod places;
mod history;
mod keeping;
mod crashes;
mod persons;
mod attacks;
mod approval;
