//! The shared log on real servers.
#![allow(missing_docs, reason = "tests")]

mod claims;
mod queue;
mod servers;
