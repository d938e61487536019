//! The shared log on real servers.

mod claims;
mod queue;
mod servers;
