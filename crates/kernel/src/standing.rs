//! What holds for a run as it was left, for whoever goes on with it.

use gyrus_contract::{OnAsk, RunId};
use gyrus_journal::Store;

use crate::{Entry, Pins, RunStarted, UnreadableEntry, log::parse, log_name};

/// What holds for a run as it was left.
#[derive(Debug)]
pub struct StandingRun {
    /// Its first entry.
    pub started: RunStarted,
    /// What happens when a person must be asked.
    pub on_ask: OnAsk,
    /// The versions and names that it is pinned to.
    pub pins: Pins,
}

/// It cannot be said what holds for a run.
#[derive(Debug, thiserror::Error)]
pub enum StandingError {
    /// Its journal cannot be read.
    #[error(transparent)]
    Journal(#[from] gyrus_journal::Error),
    /// Its first entry is another one.
    #[error("run {0} does not begin with a start")]
    NoStart(RunId),
    /// Its first entry is of another version, or damaged.
    #[error(transparent)]
    Unreadable(#[from] UnreadableEntry),
}

impl StandingRun {
    /// Reads what holds for a run.
    pub fn read(store: &Store, run: RunId) -> Result<Self, StandingError> {
        let reader = store.reader(&log_name(run))?;
        let started = match reader.entry(1)?.map(|entry| parse(&entry)).transpose()? {
            Some(Entry::RunStarted(started)) => started,
            _ => return Err(StandingError::NoStart(run)),
        };
        let resumed = reader.last("run.resumed")?.map(|entry| parse(&entry));
        let settings = match resumed.transpose() {
            Ok(Some(Entry::RunResumed(resumed))) => resumed.settings,
            _ => started.settings.clone(),
        };
        Ok(Self {
            started,
            on_ask: settings.on_ask,
            pins: Pins::clone(&settings.pins),
        })
    }
}
