//! The plan of a carry-over, on disk before it begins, so that the next process can finish it after
//! a kill.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use gyrus_contract::Digest;
use serde::{Deserialize, Serialize};

use super::{RepositoryError, changes::RepositoryChanges};

/// Name of the plan's file in the folder of the private copy.
pub(super) const FILE: &str = "plan.json";
/// Version of the format of plans; no other one is read.
const VERSION: u32 = 1;

/// Purpose of a plan, which determines the handling of conflicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PlanPurpose {
    /// Carry over a command's changes; those in conflict with others' are kept apart.
    Carry,
    /// Apply changes that a person approved; any conflict prevents all of them.
    Approved,
    /// Undo changes; any conflict prevents all of them.
    Restore,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CarryPlan {
    version: u32,
    pub(super) purpose: PlanPurpose,
    pub(super) repository: PathBuf,
    pub(super) run: String,
    /// Content of every lock of this carry-over, and part of the names of its files.
    pub(super) token: String,
    pub(super) changes: RepositoryChanges,
}

impl CarryPlan {
    pub(super) fn new(
        purpose: PlanPurpose,
        repository: &Path,
        run: &str,
        changes: RepositoryChanges,
    ) -> Self {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let once = (now.as_nanos().to_string(), std::process::id(), run);
        Self {
            version: VERSION,
            purpose,
            repository: repository.to_owned(),
            run: run.to_owned(),
            token: Digest::of_json(&once).to_string(),
            changes,
        }
    }

    /// Reads the plan in a folder; `None` if no carry-over was interrupted there.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, RepositoryError> {
        let path = folder.join(FILE);
        let content = match fs::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(RepositoryError::io(&path, &error)),
        };
        let damaged = |reason: String| RepositoryError::Damaged {
            path: path.clone(),
            reason,
        };
        let plan: Self =
            serde_json::from_slice(&content).map_err(|error| damaged(error.to_string()))?;
        match plan.version {
            VERSION => Ok(Some(plan)),
            version => Err(damaged(format!("its version is {version}"))),
        }
    }

    /// Writes the plan durably, so that it survives a loss of power.
    pub(super) fn write(&self, folder: &Path) -> Result<(), RepositoryError> {
        let (path, new) = (folder.join(FILE), folder.join("plan.new"));
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(folder)?.sync_all()
        };
        write().map_err(|error| RepositoryError::io(&path, &error))
    }

    pub(super) fn remove(folder: &Path) -> Result<(), RepositoryError> {
        let path = folder.join(FILE);
        fs::remove_file(&path).map_err(|error| RepositoryError::io(&path, &error))
    }

    /// Returns the folder in a store for the files of this carry-over.
    pub(super) fn stage(&self, store: &Path) -> PathBuf {
        store.join(format!("{}{}", super::stamps::OWN_PREFIX, self.token))
    }
}
