//! One run, a part of it on each page: its steps at several zooms, its changes, its outcome, its
//! cost, what its models saw, and its relatives.
//!
//! Reading order: `head` (what all of them have), `steps`, then each part in a file of its own.

mod act;
pub(super) mod changes;
mod context;
mod fork;
mod head;
mod replay;
mod step;
mod steps;
mod whole;
mod widget;

use axum::routing::{get, post};

pub(super) use self::{steps::steering, widget::questions};
use crate::{
    api::{commands, control},
    endpoint::{Endpoint, acts, reads},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        reads("/runs/{run}", get(steps::show)),
        reads("/runs/{run}/rows", get(steps::rows)),
        reads("/runs/{run}/steps/{seq}", get(step::show)),
        reads("/runs/{run}/changes", get(changes::show)),
        reads("/runs/{run}/outcome", get(whole::outcome)),
        reads("/runs/{run}/cost", get(whole::cost)),
        reads("/runs/{run}/children", get(whole::children)),
        reads("/runs/{run}/context", get(context::show)),
        reads("/runs/{run}/undo", get(changes::before_undo)),
        acts("/runs/{run}/undo", post(changes::undo)),
        reads("/runs/{run}/fork", get(fork::form)),
        acts("/runs/{run}/fork", post(fork::fork)),
        acts("/runs/{run}/replay", post(replay::replay)),
        acts("/runs/{run}/steer", post(act::steer)),
        acts("/runs/{run}/pause", post(control::pause)).then_see("/runs/{run}"),
        acts("/runs/{run}/stop", post(control::stop)).then_see("/runs/{run}"),
        acts("/runs/{run}/resume", post(commands::resume)).then_see("/runs/{run}"),
    ]
}
