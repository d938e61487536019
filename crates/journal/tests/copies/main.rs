//! Logs with a second copy, and logs that are one.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod cut;
mod loopback;
mod mirror;
mod replica;
mod world;
