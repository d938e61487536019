//! The endpoints. Each module names its own, a few lines each, and carries them out.

mod commands;
mod control;
mod questions;
mod runs;
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
