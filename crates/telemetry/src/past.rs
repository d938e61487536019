//! Exports a run as its journal has it, once.

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{family, log_name};
use tokio::time::sleep;

use crate::{
    TelemetrySettings,
    batch::{Backoff, TelemetryBatch},
    collector::{BatchRequests, Collector, CollectorError},
    lineage,
    projection::TelemetryProjection,
};

/// Maximum number of attempts to send a request.
const ATTEMPTS: u32 = 5;

/// Numbers of delivered items.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ExportedRuns {
    /// Number of runs, child runs included.
    pub runs: u64,
    /// Number of delivered entries.
    pub entries: u64,
    /// Number of delivered spans.
    pub spans: u64,
    /// Messages about data that the collector rejected.
    pub refused: Vec<String>,
}

/// The error of a run that was not completely exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The run's journal cannot be read.
    #[error(transparent)]
    Journal(#[from] gyrus_journal::Error),
    /// No client can be made for the collector.
    #[error(transparent)]
    Collector(#[from] CollectorError),
    /// The collector cannot be reached, or has no capacity.
    #[error("the collector did not take the data after {ATTEMPTS} attempts: {0}")]
    Undelivered(String),
}

/// Exports everything in the journals of `run` and the runs below it.
///
/// # Errors
/// A journal cannot be read, or the collector does not take data.
pub async fn export(
    store: &Store,
    run: RunId,
    settings: &TelemetrySettings,
) -> Result<ExportedRuns, ExportError> {
    let collector = Collector::new(settings)?;
    let trace = lineage::topmost(store, run);
    let mut exported = ExportedRuns::default();
    for run in family(store, run)? {
        exported.runs += 1;
        let reader = store.reader(&log_name(run))?;
        let mut projection = TelemetryProjection::new(run, trace, settings.options);
        let mut batch = TelemetryBatch::default();
        let mut entries = reader.entries(1)?.peekable();
        while let Some(entry) = entries.next() {
            exported.entries += 1;
            batch.add(projection.take(&entry?, &reader));
            if batch.is_full() || entries.peek().is_none() {
                let temporality = settings.temporality;
                let (requests, spans) =
                    batch.requests(run, &collector, &mut projection, temporality);
                exported.spans += spans;
                for refused in deliver(&collector, requests).await? {
                    if !exported.refused.contains(&refused) {
                        exported.refused.push(refused);
                    }
                }
            }
        }
    }
    Ok(exported)
}

async fn deliver(
    collector: &Collector,
    mut requests: BatchRequests,
) -> Result<Vec<String>, ExportError> {
    let (mut backoff, mut refused) = (Backoff::default(), Vec::new());
    for attempt in 1.. {
        let sent = collector.send(&mut requests).await;
        refused.extend(sent.told);
        match sent.again {
            Some(why) if attempt == ATTEMPTS => return Err(ExportError::Undelivered(why)),
            Some(_) => sleep(backoff.wait(sent.after)).await,
            None => break,
        }
    }
    Ok(refused)
}
