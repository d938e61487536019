//! The procedure that a run replays, from its first entry.

use gyrus_kernel::RunStarted;
use gyrus_procedures::Procedure;
use serde_json::Value;

pub(crate) fn replayed_by(started: &RunStarted) -> Option<&str> {
    started.loop_config["replays"]["procedure"]["name"].as_str()
}

/// Whether a loop with this configuration replays a procedure, which needs no model.
pub(crate) fn is_replay(loop_config: &Value) -> bool {
    !loop_config["replays"].is_null()
}

pub(super) fn replays(started: &RunStarted) -> Option<Procedure> {
    serde_json::from_value(started.loop_config["replays"]["procedure"].clone()).ok()
}
