//! The endpoints. Each module names its own, a few lines each, and carries them out.

pub(crate) mod commands;
pub(crate) mod control;
pub(crate) mod questions;
pub(crate) mod runs;
mod server;

use crate::endpoint::Endpoint;

/// Returns all endpoints.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let mut all = runs::endpoints();
    all.extend(commands::endpoints());
    all.extend(control::endpoints());
    all.extend(questions::endpoints());
    all.extend(server::endpoints());
    all
}
