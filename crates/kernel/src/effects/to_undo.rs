//! The data that an undo needs beside snapshots: changes of repositories, and the content of files
//! that calls replaced.

use gyrus_contract::BlobId;
use gyrus_workspace::{layer::KeptFiles, repository::CarryRecord};
use serde::{Deserialize, Serialize};

use crate::{Stop, core::Core};

/// The data that an undo needs beside snapshots. Stored in a blob that the call's outcome names.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ToUndo {
    /// The changes that were carried over into repositories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) repositories: Vec<CarryRecord>,
    /// The previous content of files in the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<KeptFiles>,
}

/// Stores the data that an undo needs; outside the journal's blobs if it holds a secret of a
/// repository.
pub(super) fn keep_for_undo(
    core: &Core,
    repositories: Vec<CarryRecord>,
    files: Option<KeptFiles>,
) -> Result<Option<BlobId>, Stop> {
    if repositories.is_empty() && files.is_none() {
        return Ok(None);
    }
    let json = serde_json::to_string(&ToUndo {
        repositories,
        files,
    });
    let json = json.map_err(|error| Stop::Failed(error.to_string()))?;
    if holds_secret(core, &json) {
        core.log.put_private(json.as_bytes()).map(Some)
    } else {
        core.log.put_blob(json.as_bytes()).map(Some)
    }
}

pub(super) fn holds_secret(core: &Core, text: &str) -> bool {
    core.kernel.organs().redactor.recognises(text.as_bytes())
}
