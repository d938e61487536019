//! Results of carrying over: the changes that were carried over, those kept apart, and errors.

use std::{io, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{
    RepositoryError, changes::StoreChanges, names::RefName, withheld::WithheldPath,
    withheld_history::WithheldHistory,
};
use crate::root::RootError;

/// Reason why changes were not, or not completely, carried over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CarryError {
    /// Another process holds a lock of the repository. Nothing of this store was carried over; it
    /// can be retried.
    #[error("another program holds `{}`", path.display())]
    Locked { path: PathBuf },
    /// The new objects are damaged, incomplete or too large. Nothing of their store was carried
    /// over, and trying again will not help: discard the private copy.
    #[error("the new objects were not accepted: {reason}")]
    Refused {
        /// Git's message, or the exceeded limit.
        reason: String,
    },
    /// A change to undo was itself changed since. Nothing was undone.
    #[error("`{what}` was changed since: {reason}")]
    Moved {
        /// A reference, `HEAD` or a setting.
        what: String,
        /// Description of that change.
        reason: String,
    },
    /// An earlier carry-over in the same folder was interrupted: [`super::recover`] has to finish
    /// it first.
    #[error("an earlier change of the repository was cut off and has to be finished first")]
    Unfinished,
    /// Git could not be started.
    #[error("cannot run `{}`: {source}", path.display())]
    Git {
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A folder cannot be read or written. If something was done already, the plan and the locks
    /// are kept, and [`super::recover`] continues.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

impl From<RootError> for CarryError {
    fn from(failed: RootError) -> Self {
        RepositoryError::from(failed).into()
    }
}

/// The changes that were carried over, with the data to undo them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarryRecord {
    /// The real git directory.
    pub repository: PathBuf,
    /// The changes, with old and new values of each reference, `HEAD`, path of an index, file of
    /// state and setting.
    pub stores: Vec<StoreChanges>,
    /// Conflicting changes of others, which were left in place.
    pub kept: Vec<UncarriedChange>,
    /// Changes that wait for a person's approval.
    pub withheld: Vec<WithheldPath>,
    /// Changes of references, `HEAD` and indexes that are withheld because of files in their
    /// commits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<WithheldHistory>,
    /// Sentences for the model about changes that were not carried over.
    pub notes: Vec<String>,
}

impl CarryRecord {
    /// Returns the part that can be undone; `None` if nothing was carried over but lines of logs.
    pub fn to_take_back(&self) -> Option<Self> {
        let stores = self.stores.iter().filter(|store| !store.only_logs());
        let stores: Vec<StoreChanges> = stores.cloned().collect();
        (!stores.is_empty()).then(|| Self {
            repository: self.repository.clone(),
            stores,
            ..Self::default()
        })
    }
}

/// A change that was not carried over because another process made a conflicting one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncarriedChange {
    /// A reference, `HEAD` or a setting.
    pub what: String,
    /// References that lead to the command's commits.
    pub under: Vec<RefName>,
    /// Description of the other change, in a few words.
    pub reason: String,
}
