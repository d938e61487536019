//! The endpoints. Each module names its own, a few lines each, and carries them out.

pub(crate) mod agents;
mod chats;
pub(crate) mod commands;
pub(crate) mod control;
pub(crate) mod cycle;
pub(crate) mod forks;
pub(crate) mod costs;
mod evals;
mod fleet;
pub(crate) mod events;
pub(crate) mod questions;
pub(crate) mod rules;
pub(crate) mod runs;
pub(crate) mod takeover;
pub(crate) mod server;
pub(crate) mod triggers;

pub use self::agents::{AgentView, agents_on_disk};
use crate::endpoint::Endpoint;

pub(crate) fn endpoints() -> Vec<Endpoint> {
    let mut all = runs::endpoints();
    all.extend(agents::endpoints());
    all.extend(triggers::endpoints());
    all.extend(events::endpoints());
    all.extend(chats::endpoints());
    all.extend(commands::endpoints());
    all.extend(control::endpoints());
    all.extend(takeover::endpoints());
    all.extend(forks::endpoints());
    all.extend(cycle::endpoints());
    all.extend(questions::endpoints());
    all.extend(costs::endpoints());
    all.extend(rules::endpoints());
    all.extend(evals::endpoints());
    all.extend(fleet::endpoints());
    all.extend(server::endpoints());
    all
}
