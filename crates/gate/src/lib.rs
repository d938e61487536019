//! What a run may do.
//!
//! The gate trusts nothing that a model says. It reads what a call would do ([`shell`] for
//! commands), asks what the person laid down ([`policy`]), and knows what contains it
//! ([`sandbox`]). What it does not understand is never called safe.

pub mod policy;
pub mod sandbox;
pub mod shell;
#[cfg(feature = "oracle")]
pub mod oracle;
