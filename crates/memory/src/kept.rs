//! The index and the watch between two searches of one process.

use std::time::{Duration, Instant};

use gyrus_search::Index;

use crate::{embedding::Vectors, watch::VaultWatch};

/// Time after which all notes are checked again, whatever the watch reports: a note may get a name
/// outside of the vault, and be changed by it.
const MAX_WATCHED: Duration = Duration::from_secs(600);

/// Index and watch that a search leaves open for the next one of the process.
#[derive(Default)]
pub(crate) struct WarmIndex {
    pub(crate) index: Option<Index>,
    /// Watch for changes of the notes since; `None` if they are not known.
    pub(crate) watch: Option<VaultWatch>,
    /// The identity of the watched folder.
    pub(crate) identity: Option<(u64, u64)>,
    /// The time at which all notes were last checked.
    pub(crate) since: Option<Instant>,
    /// The vectors of the notes, if there is an embedder.
    pub(crate) vectors: Vectors,
}

impl WarmIndex {
    pub(crate) fn is_old(&self) -> bool {
        self.since.is_none_or(|since| since.elapsed() > MAX_WATCHED)
    }
}
