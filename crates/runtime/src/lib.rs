//! Agents that live. A run is one attempt at one goal; this crate holds what outlives runs: the
//! events that agents exchange, the queue of commands that start runs, the triggers that feed it,
//! and the agents themselves.
//!
//! Everything durable is a log of `gyrus-journal`. Runs are driven elsewhere: whoever uses this
//! crate says how.

pub mod ledger;
pub mod queue;
