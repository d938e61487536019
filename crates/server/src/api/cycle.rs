//! The part of its cycle that a run is in, for those who watch it.

use std::sync::Arc;

use axum::{Json, extract::State, routing::get};
use gyrus_contract::RunId;
use gyrus_kernel::log_name;
use gyrus_surfaces::phases::{Phase, PhaseSpan, Phases};
use schemars::JsonSchema;
use serde::Serialize;

use super::runs::{blocking, overview};
use crate::{
    app::App,
    endpoint::{Endpoint, reads},
    error::ApiError,
    extract::RunPath,
    heads::RunWord,
};

/// Number of entries that are read.
const ENTRIES: u64 = 200;

/// Number of stretches in an answer.
const SPANS: usize = 24;

/// Returns the endpoints of this module.
pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        reads("/api/runs/{run}/cycle", get(show))
            .named("showCycle", "Show the part of its cycle that a run is in")
            .json::<CycleView>(200, "The present part and those before it."),
    ]
}

/// The part of its cycle that a run is in.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CycleView {
    /// The run.
    #[schemars(with = "String")]
    pub(crate) run: RunId,
    /// Its name for people.
    pub(crate) name: String,
    /// The goal, cut.
    pub(crate) goal: String,
    /// The state of the run.
    pub(crate) state: RunWord,
    /// The name of the present part.
    pub(crate) phase: &'static str,
    /// The parts of a cycle, in order.
    pub(crate) phases: Vec<PhaseView>,
    /// The last stretches of time in one part, oldest first; the last one is the present.
    pub(crate) history: Vec<SpanView>,
}

/// A part of a cycle.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PhaseView {
    /// The name.
    pub(crate) name: &'static str,
    /// One sentence about it.
    pub(crate) words: &'static str,
}

/// A stretch of time in one part of a cycle.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SpanView {
    /// The name of the part.
    pub(crate) phase: &'static str,
    /// The cycle.
    pub(crate) cycle: u32,
    /// Number of its first entry.
    pub(crate) seq: u64,
    /// The time at which it began, in UTC milliseconds.
    pub(crate) from_ms: i64,
    /// The duration in milliseconds; absent for the present one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) took_ms: Option<u64>,
}

impl From<&PhaseSpan> for SpanView {
    fn from(span: &PhaseSpan) -> Self {
        Self {
            phase: span.phase.name(),
            cycle: span.cycle,
            seq: span.seq,
            from_ms: span.from_ms,
            took_ms: span.took_ms(),
        }
    }
}

async fn show(
    State(app): State<Arc<App>>,
    RunPath(run): RunPath,
) -> Result<Json<CycleView>, ApiError> {
    blocking(move || view(&app, run).map(Json)).await
}

/// Returns the part of its cycle that a run is in, from its last entries.
pub(crate) fn view(app: &App, run: RunId) -> Result<CycleView, ApiError> {
    let overview = overview(app, run)?;
    let reader = app.store.reader(&log_name(run))?;
    let end = app.heads.of(run).map_or(u64::MAX, |head| head.seq);
    let from = reader.end()?.min(end).saturating_sub(ENTRIES).max(1);
    let mut phases = Phases::default();
    for entry in reader.entries(from)? {
        let entry = entry?;
        if entry.seq > end {
            break;
        }
        phases.take(&entry);
    }
    let spans = phases.spans();
    let present = spans.last().map_or(Phase::Idle, |span| span.phase);
    let last = &spans[spans.len().saturating_sub(SPANS)..];
    let of = |phase: Phase| PhaseView {
        name: phase.name(),
        words: phase.words(),
    };
    Ok(CycleView {
        run,
        name: overview.name.clone(),
        goal: overview.goal.clone(),
        state: overview.state,
        phase: present.name(),
        phases: Phase::ALL.map(of).into(),
        history: last.iter().map(SpanView::from).collect(),
    })
}
