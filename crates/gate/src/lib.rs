//! The policy, verdicts and containment that bound what a run may do.
//!
//! The gate trusts nothing that a model says. It reads what a call would do ([`shell`] for
//! commands), asks what the person laid down ([`policy`]), and knows what contains it
//! ([`sandbox`]). What it does not understand is never called safe. [`Warden`] brings these
//! together and fulfils the contract's `Gate`.
//!
//! It never executes anything itself, and it never asks anybody: a verdict says that a person
//! must be asked, the kernel asks.

mod warden;
mod resolve;
mod control;
mod guard;
mod house;
mod paths;
mod workspace;
pub mod shell;
mod weigh;
mod as_user;
mod reading_verbs;
mod page;
mod sinks;
mod modes;
mod doubt;
pub mod policy;
pub mod sandbox;
pub mod namespaces;
mod live_policy;

/// Places where programs keep keys and tokens; the file's own head says in which form.
const SECRETS: &str = include_str!("secrets.txt");

pub use self::{
    guard::protect_from_server,
    house::House,
    live_policy::LivePolicy,
    warden::{Contain, Warden},
    workspace::{WorkspaceError, check_workspace, is_throwaway},
};
