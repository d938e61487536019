//! Batches: what some entries add, as the requests that deliver it, and how often these are sent.

use std::time::Duration;

use gyrus_contract::RunId;
use opentelemetry_proto::tonic::{logs::v1::LogRecord, trace::v1::Span};
use prost::Message as _;

use crate::{
    collector::{BatchRequests, Collector},
    metrics::Temporality,
    projection::{EntryTelemetry, TelemetryProjection},
};

/// Number of entries after which a batch is sent.
const MAX_ENTRIES: u64 = 512;

/// Bytes after which a batch is sent. Collectors take 4 MiB and more.
const MAX_BYTES: usize = 1 << 20;

/// Delay before a request is sent again after its first failure; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Maximum time before a request is sent again, even if the collector asks for more.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Spans and log records that some entries of a run add.
#[derive(Debug, Default)]
pub(crate) struct TelemetryBatch {
    spans: Vec<Span>,
    logs: Vec<LogRecord>,
    bytes: usize,
    entries: u64,
}

impl TelemetryBatch {
    pub(crate) fn add(&mut self, derived: EntryTelemetry) {
        let spans = derived.spans.iter().map(Span::encoded_len).sum::<usize>();
        self.bytes += spans + derived.log.encoded_len();
        self.spans.extend(derived.spans);
        self.logs.push(derived.log);
        self.entries += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries >= MAX_ENTRIES || self.bytes >= MAX_BYTES
    }

    /// Empties the batch into requests, and returns them with the number of their spans.
    pub(crate) fn requests(
        &mut self,
        run: RunId,
        collector: &Collector,
        projection: &mut TelemetryProjection,
        temporality: Temporality,
    ) -> (BatchRequests, u64) {
        let batch = std::mem::take(self);
        let spans = batch.spans.len() as u64;
        let metrics = projection.metrics(temporality);
        let run = run.to_string();
        (
            collector.requests(&run, batch.spans, metrics, batch.logs),
            spans,
        )
    }
}

/// The time to wait before a request is sent again.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Returns the delay after another failure, for which the collector requested `after`.
    pub(crate) fn wait(&mut self, after: Option<Duration>) -> Duration {
        let doubled = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        // Programs that failed together do not come back together.
        let wait = doubled.min(MAX_WAIT).mul_f64(0.75 + fastrand::f64() / 2.0);
        after.unwrap_or(wait).min(MAX_WAIT)
    }
}
