//! The shared log on real servers.

#![expect(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod admission;
mod claims;
mod queue;
mod servers;
