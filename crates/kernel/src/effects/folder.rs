//! The folder after a call, for a run that another machine may go on with in the middle of a step.
//!
//! A snapshot at the end of each step is enough where the folder stays: after a crash it is as the
//! calls of the step left it. Where it does not, the calls that are done would be known and their
//! changes lost.

use gyrus_contract::{EffectId, Tool, Touch};
use gyrus_workspace::snapshot::SnapshotResult;
use serde::{Deserialize, Serialize};

use crate::{Entry, Fact, FolderTravels, Snapshot, Stop, core::Core, driver::snapshot_of};

/// The kind of the fact that records the folder after a call. It precedes the call's outcome.
pub(crate) const FOLDER_RECORDED: &str = "folder.recorded";

/// The folder after a call. An export leaves out the blob of what is called a snapshot.
#[derive(Serialize, Deserialize)]
struct FolderRecorded {
    snapshot: Snapshot,
}

/// Records the folder after a call that may have changed it, if the folder travels.
pub(super) fn record(core: &Core, effect: &EffectId, tool: &dyn Tool) -> Result<(), Stop> {
    if !tool.spec().touches(Touch::changes_workspace) {
        return Ok(());
    }
    record_change(core, effect)
}

/// Records the folder after a change, if the run's folder travels.
pub(super) fn record_change(core: &Core, effect: &EffectId) -> Result<(), Stop> {
    match core.kernel.organs().travels {
        FolderTravels::No => return Ok(()),
        FolderTravels::Stayed | FolderTravels::Arrived => {}
    }
    let taken = core.snapshots.lock().take(&mut core.contents());
    if matches!(taken, Ok(SnapshotResult::Same(_))) {
        return Ok(());
    }
    let snapshot = snapshot_of(taken)?;
    let fact = serde_json::to_value(FolderRecorded { snapshot });
    let fact = fact.map_err(|error| Stop::Failed(error.to_string()))?;
    core.log.append(Entry::Noted {
        kind: FOLDER_RECORDED.to_owned(),
        version: 1,
        fact: Fact {
            effect: effect.clone(),
            fact,
        },
    })?;
    Ok(())
}

/// Returns the snapshot in a fact of the kind [`FOLDER_RECORDED`].
pub(crate) fn recorded(fact: &Fact) -> Option<Snapshot> {
    let recorded: FolderRecorded = serde_json::from_value(fact.fact.clone()).ok()?;
    Some(recorded.snapshot)
}
