//! What holds for a run as it was left, for whoever goes on with it.

use gyrus_contract::{OnAsk, RunId};
use gyrus_journal::Store;
use gyrus_kernel::{Entry, Pins, RunStarted, log_name};

use crate::failure::Failure;

/// What holds for a run as it was left.
pub(crate) struct Before {
    pub(crate) started: RunStarted,
    pub(crate) on_ask: OnAsk,
    pub(crate) pins: Pins,
}

impl Before {
    /// Reads what holds for a run.
    pub(crate) fn read(store: &Store, run: RunId) -> Result<Self, Failure> {
        let reader = store.reader(&log_name(run))?;
        let first = reader
            .entry(1)?
            .map(|entry| gyrus_kernel::parse(&entry))
            .transpose();
        let started = match first {
            Ok(Some(Entry::RunStarted(started))) => started,
            Ok(_) => {
                return Err(Failure::failed(format!(
                    "run {run} does not begin with a start"
                )));
            }
            Err(error) => return Err(Failure::failed(error)),
        };
        let resumed = reader
            .last("run.resumed")?
            .map(|entry| gyrus_kernel::parse(&entry));
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
