//! What carrying over leads to: what was done, what was kept apart, or why nothing was.

use std::{io, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{RepositoryError, changes::StoreChanges, names::RefName, withheld::Withheld};
use crate::root::Failed;

/// Why nothing, or not everything, was carried over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CarryError {
    /// Somebody else is at work in the repository. Nothing of this store was carried over; it can
    /// be tried again.
    #[error("another program holds `{}`", path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
    },
    /// The new objects are damaged, incomplete or too large. Nothing of their store was carried
    /// over, and trying again will not help: the private copy is to be discarded.
    #[error("the new objects were not accepted: {reason}")]
    Refused {
        /// Git's words, or what limit was met.
        reason: String,
    },
    /// What would be taken back was changed since. Nothing was.
    #[error("`{what}` was changed since: {reason}")]
    Moved {
        /// A reference, `HEAD` or a setting.
        what: String,
        /// How.
        reason: String,
    },
    /// A carry-over was cut off in the same folder: [`super::recover`] has to finish it first.
    #[error("an earlier change of the repository was cut off and has to be finished first")]
    Unfinished,
    /// Git could not be started.
    #[error("cannot run `{}`: {source}", path.display())]
    Git {
        /// The program.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// A folder cannot be read or written. If something was done already, the plan and the locks are
    /// kept, and [`super::recover`] goes on with it.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

impl From<Failed> for CarryError {
    fn from(failed: Failed) -> Self {
        RepositoryError::from(failed).into()
    }
}

/// What was carried over, with what is needed to take it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// The real git directory.
    pub repository: PathBuf,
    /// What was carried over: every reference, `HEAD`, path of an index, file of state and setting
    /// with what it was before and is now.
    pub stores: Vec<StoreChanges>,
    /// What somebody else had changed too. Theirs stayed.
    pub kept: Vec<Kept>,
    /// What waits for a person's yes.
    pub withheld: Vec<Withheld>,
    /// What was not carried over, in sentences for the model.
    pub notes: Vec<String>,
}

impl Carried {
    /// The same as far as it can be taken back; `None` if nothing was carried over.
    #[must_use]
    pub fn to_take_back(&self) -> Option<Self> {
        (!self.stores.is_empty()).then(|| Self {
            repository: self.repository.clone(),
            stores: self.stores.clone(),
            kept: Vec::new(),
            withheld: Vec::new(),
            notes: Vec::new(),
        })
    }
}

/// Something that was not carried over because somebody else changed it too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// A reference, `HEAD` or a setting.
    pub what: String,
    /// The references under which the command's commits can be found.
    pub under: Vec<RefName>,
    /// What happened meanwhile, in a few words.
    pub reason: String,
}
