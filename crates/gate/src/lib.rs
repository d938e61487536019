//! The policy, verdicts and containment that bound what a run may do.
//!
//! The gate trusts nothing that a model says. It reads what a call would do ([`shell`] for
//! commands), asks the person's policy ([`policy`]), and knows what contains it
//! ([`sandbox`]). What it does not understand is never called safe. [`PolicyGate`] brings these
//! together and fulfils the contract's `Gate`.
//!
//! It never executes anything itself, and it never asks anybody: a verdict says that a person
//! must be asked, the kernel asks.

mod gate;
mod resolve;
mod control;
mod added;
mod protected;
mod own_paths;
mod paths;
mod workspace;
pub mod shell;
mod weight;
mod risk;
mod service;
mod as_user;
mod named_files;
mod reading_verbs;
mod page;
mod destinations;
mod modes;
mod second_look;
pub mod policy;
pub mod sandbox;
pub mod namespaces;
mod live_policy;

/// Table of the places where programs store keys and tokens; the file's head describes its form.
const SECRETS: &str = include_str!("secrets.txt");

pub use self::{
    gate::{Contain, PolicyGate},
    live_policy::LivePolicy,
    own_paths::OwnPaths,
    page::{ConfirmedField, ConfirmedForm, FormMeanings, OriginForms, propose_form},
    protected::protect_from_server,
    service::{ConfirmedTool, Meanings, MeaningsError, ServerMeanings, propose},
    workspace::{WorkspaceError, check_workspace, is_of_system, is_throwaway},
};
