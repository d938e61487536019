//! The settings of a run as it was left, for a process that continues it.

use gyrus_contract::{OnAsk, RunId, Spent};
use gyrus_journal::{Holder, Store};

use crate::{
    CodePins, Ending, Entry, RunStarted, UnreadableEntry, log::parse, log_name, runs::is_record,
};

#[derive(Debug, Clone, PartialEq)]
pub enum RunState {
    /// A process drives the run.
    Running(Holder),
    /// No process holds the run, and it can be resumed.
    Parked(Ending),
    /// The run's process died; it can be resumed.
    CutOff,
    /// The run ended.
    Over(Ending),
    /// The run is a record, which cannot be resumed: its recorded ending, if there is one.
    Record(Option<Ending>),
    /// The run's journal has no entry: earlier versions left such a journal when they were killed
    /// at the start.
    NeverBegan,
}

impl RunState {
    /// Reads the state of a run.
    ///
    /// # Errors
    /// There is no such run, or its journal cannot be read.
    pub fn of(store: &Store, run: RunId) -> Result<Self, gyrus_journal::Error> {
        let name = log_name(run);
        // Before the look at its end, which may come in between.
        let holder = store.holder(&name)?;
        let last = store.reader(&name)?.entries_back()?.next().transpose()?;
        let last = last.map(|entry| parse(&entry));
        if is_record(store, run) {
            return Ok(RunState::Record(match last {
                Some(Ok(Entry::RunEnded(ended))) => Some(ended.ending),
                Some(Ok(Entry::RunParked(parked))) => Some(parked.ending),
                _ => None,
            }));
        }
        Ok(match (last, holder) {
            // The process that drove it lives a moment longer than the run.
            (Some(Ok(Entry::RunEnded(ended))), _) => RunState::Over(ended.ending),
            (_, Some(holder)) => RunState::Running(holder),
            (Some(Ok(Entry::RunParked(parked))), None) => RunState::Parked(parked.ending),
            (Some(_), None) => RunState::CutOff,
            (None, None) => RunState::NeverBegan,
        })
    }
}

/// The start and the latest settings of a run.
#[derive(Debug)]
pub struct StandingRun {
    /// The first entry.
    pub started: RunStarted,
    /// The way to proceed when a person must be asked.
    pub on_ask: OnAsk,
    /// The versions and names to which the run is pinned.
    pub pins: CodePins,
}

/// The error of a run whose settings cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StandingError {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] gyrus_journal::Error),
    /// The first entry is not the start of a run.
    #[error("run {0} does not begin with a start")]
    NoStart(RunId),
    /// The first entry is of another version, or damaged.
    #[error(transparent)]
    Unreadable(#[from] UnreadableEntry),
}

/// Returns the resources that a run had used when they were last recorded.
pub fn spent(store: &Store, run: RunId) -> Result<Spent, gyrus_journal::Error> {
    for entry in store.reader(&log_name(run))?.entries_back()? {
        match parse(&entry?) {
            Ok(Entry::RunEnded(ended)) => return Ok(ended.spent),
            Ok(Entry::RunParked(parked)) => return Ok(parked.spent),
            Ok(Entry::CycleEnded(ended)) => return Ok(ended.kernel.spent),
            _ => {}
        }
    }
    Ok(Spent::default())
}

impl StandingRun {
    /// Reads the settings of a run.
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
            pins: CodePins::clone(&settings.pins),
        })
    }
}
