//! The part of its cycle that a run is in, for those who watch it.

use std::sync::Arc;

use axum::{Json, extract::State, routing::get};
use gyrus_contract::{ChangeEvent, ChangeState, RunId};
use gyrus_kernel::{
    approvals::{self, OpenQuestion},
    log_name,
};
use gyrus_surfaces::{
    change_cycle::{ChangeCycle, ChangeSpan},
    phases::{Phase, PhaseSpan, Phases},
};
use gyrus_text::readable;
use schemars::JsonSchema;
use serde::Serialize;

use super::runs::{blocking, overview};
use crate::{
    app::App,
    endpoint::{Endpoint, reads},
    error::ApiError,
    extract::RunInPath,
    heads::RunWord,
};

/// Maximum number of entries that are read.
const ENTRIES: u64 = 200;

/// The name of the loop whose cycle has states of its own.
pub(crate) const CHANGESET: &str = "changeset";

/// Number of stretches in an answer.
const SPANS: usize = 24;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        reads("/api/runs/{run}/cycle", get(show))
            .named("showCycle", "Show the part of its cycle that a run is in")
            .json::<CycleView>(200, "The present part and those before it.")
            .for_named_origins(),
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
    pub(crate) phase: String,
    /// The parts of a cycle, in order: the states of a changeset, or what every loop has.
    pub(crate) phases: Vec<PhaseView>,
    /// The events that the present state of a changeset takes, each with the state after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) next: Vec<NextView>,
    /// The last stretches of time in one part, oldest first; the last one is the present.
    pub(crate) history: Vec<SpanView>,
    /// The questions for a person, oldest first.
    pub(crate) questions: Vec<CardView>,
}

/// A part of a cycle.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PhaseView {
    /// The name.
    pub(crate) name: String,
    /// One sentence about it.
    pub(crate) words: &'static str,
}

/// An event that may come next.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NextView {
    /// The event, as on the bus.
    pub(crate) event: ChangeEvent,
    /// The part that follows.
    pub(crate) phase: ChangeState,
}

/// A stretch of time in one part of a cycle.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SpanView {
    /// The name of the part.
    pub(crate) phase: String,
    /// The cycle.
    pub(crate) cycle: u32,
    /// Number of its first entry.
    pub(crate) seq: u64,
    /// The time at which it began, in UTC milliseconds.
    pub(crate) from_ms: i64,
    /// The duration in milliseconds; absent for the present one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) took_ms: Option<u64>,
    /// The event that led to it, in the cycle of a changeset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) event: Option<ChangeEvent>,
    /// The reason or result in words, with who decided it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) text: String,
}

/// A question as a person sees it, every unseen character named.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CardView {
    /// The run that asks: this one, or a child of it.
    pub(crate) run: String,
    /// Its id, which names exactly this card.
    pub(crate) question: String,
    /// The action in question, in one sentence of gyrus.
    pub(crate) sentence: String,
    /// The reasons for asking.
    pub(crate) reasons: Vec<String>,
    /// Untrusted texts that belong to it.
    pub(crate) details: Vec<String>,
    /// Whether it asks for words instead of approval.
    pub(crate) asks_words: bool,
    /// The lines of the text that a person may edit, where each is an item that can be dropped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) items: Vec<String>,
}

impl From<&PhaseSpan> for SpanView {
    fn from(span: &PhaseSpan) -> Self {
        Self {
            phase: span.phase.name().to_owned(),
            cycle: span.cycle,
            seq: span.seq,
            from_ms: span.from_ms,
            took_ms: span.took_ms(),
            event: None,
            text: String::new(),
        }
    }
}

impl From<&ChangeSpan> for SpanView {
    fn from(span: &ChangeSpan) -> Self {
        let by = match &*span.by {
            "" => String::new(),
            by => format!(" ({by})"),
        };
        let took = span
            .until_ms
            .map(|until| until.saturating_sub(span.from_ms));
        Self {
            phase: span.state.to_string(),
            cycle: span.cycle,
            seq: span.seq,
            from_ms: span.from_ms,
            took_ms: took.map(|took| u64::try_from(took).unwrap_or(0)),
            event: span.event,
            text: readable(&format!("{}{by}", span.text)).into_owned(),
        }
    }
}

fn card(open: &OpenQuestion, has_items: bool) -> CardView {
    let shown = |text: &str| readable(text).into_owned();
    let items = open.card.edit.iter().filter(|_| has_items);
    CardView {
        run: open.run.to_string(),
        question: open.id.to_string(),
        sentence: shown(&open.card.sentence),
        reasons: open
            .card
            .reasons
            .iter()
            .map(|reason| shown(reason))
            .collect(),
        details: open
            .card
            .details
            .iter()
            .map(|text| shown(&text.text))
            .collect(),
        asks_words: open.card.question,
        // They are sent back as they are, so nothing in them is named.
        items: items
            .flat_map(|text| text.lines())
            .map(str::to_owned)
            .collect(),
    }
}

async fn show(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
) -> Result<Json<CycleView>, ApiError> {
    blocking(move || view(&app, run).map(Json)).await
}

pub(crate) fn view(app: &App, run: RunId) -> Result<CycleView, ApiError> {
    let overview = overview(app, run)?;
    let is_changeset = overview.cognitive_loop == CHANGESET;
    let reader = app.store.reader(&log_name(run))?;
    let last = reader.end()?.saturating_sub(ENTRIES);
    let (mut phases, mut changes) = (Phases::default(), ChangeCycle::default());
    // A changeset has few transitions, between any number of turns.
    for entry in reader.entries(if is_changeset { 1 } else { last.max(1) })? {
        let entry = entry?;
        changes.take(&entry);
        phases.take(&entry);
    }
    let open = approvals::open(&app.store, run).unwrap_or_default();
    // While nobody works on it, no changeset is in progress.
    let now = match overview.state {
        RunWord::Running | RunWord::Waiting => changes.state(),
        RunWord::Parked | RunWord::CutOff | RunWord::Over => ChangeState::Idle,
    };
    let curates = is_changeset && now == ChangeState::AwaitingContextApproval;
    let (phase, all, history): (_, Vec<PhaseView>, Vec<SpanView>) = if is_changeset {
        let of = |state: ChangeState| PhaseView {
            name: state.to_string(),
            words: state.words(),
        };
        let spans = changes.spans().iter().map(SpanView::from);
        (
            now.to_string(),
            ChangeState::ALL.map(of).into(),
            spans.collect(),
        )
    } else {
        let of = |phase: Phase| PhaseView {
            name: phase.name().to_owned(),
            words: phase.words(),
        };
        let spans = phases.spans();
        let present = spans.last().map_or(Phase::Idle, |span| span.phase);
        let spans = spans.iter().map(SpanView::from);
        (
            present.name().to_owned(),
            Phase::ALL.map(of).into(),
            spans.collect(),
        )
    };
    let next = now.next().filter(|_| is_changeset);
    let older = history.len().saturating_sub(SPANS);
    Ok(CycleView {
        run,
        name: overview.name.clone(),
        goal: overview.goal.clone(),
        state: overview.state,
        phase,
        phases: all,
        next: next
            .map(|(event, phase)| NextView { event, phase })
            .collect(),
        history: history.into_iter().skip(older).collect(),
        questions: open.iter().map(|open| card(open, curates)).collect(),
    })
}
