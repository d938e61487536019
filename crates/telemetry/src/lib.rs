//! Runs as OpenTelemetry traces, metrics and logs, sent to a collector over OTLP (HTTP, protobuf).
//!
//! The one idea: telemetry is a projection of the journal. Spans, log records and metrics follow
//! from entries that are on disk, by a pure fold, with ids that follow from the run's id and the
//! entries' numbers. So nothing is exported that did not happen, a resumed run goes on in its
//! trace, and a run can be exported again, or years later, with the same result.
//!
//! Names follow the semantic conventions for generative AI, version [`CONVENTIONS`]. No text of a
//! run (goal, prompts, arguments, results, reasons) is included unless [`ProjectionOptions`] ask
//! for it; then it is what the journal holds, which is redacted.
//!
//! This crate must never make a run wait: the driver does not know of it.
//!
//! Reading order: `projection` and `effects` (entries to spans), `live` (following a run),
//! `collector` (what is sent), `settings`.

mod attributes;
mod ids;
mod content;
mod facts;
mod metrics;
mod spans;
mod open_effects;
mod effects;
mod projection;
mod lineage;
mod settings;
mod collector;
mod cursor;
mod batch;
mod live;
mod past;

pub use collector::CollectorError;
pub use live::LiveExport;
pub use metrics::Temporality;
pub use past::{ExportError, ExportedRuns, export};
pub use projection::{EntryTelemetry, ProjectionOptions, TelemetryProjection};
pub use settings::{FileSettings, SettingsError, Signal, TelemetrySettings};

/// The version of the semantic conventions whose names are used.
pub const CONVENTIONS: &str = "1.41.0";

/// The address of the conventions' schema, which every request names.
pub(crate) const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";
