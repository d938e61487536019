//! The entries of a run as spans, log records and metrics: a pure fold of its journal.
//!
//! A span is complete, and leaves the fold, with the entry that ends it. So what was exported up to
//! some entry says exactly which spans were, and a process that goes on from there repeats none.
//!
//! `invoke_agent` spans cover the stretches in which a process drove the run; the first is the root
//! of all others. Below it are cycles, in a cycle its phases, in a phase its effects. Journals do
//! not record phases: a phase is what the effects of a cycle were for, in the order of entries.

use gyrus_contract::{EffectId, Purpose, RunId};
use gyrus_journal::LogReader;
use gyrus_kernel::{Ending, Entry, ParentRun, RunStarted};
use opentelemetry_proto::tonic::{
    logs::v1::{LogRecord, SeverityNumber},
    metrics::v1::Metric,
    trace::v1::{Span, span::SpanKind},
};

use crate::{
    attributes::{body, content, decimal, flag, gen_ai, number, text},
    content, facts,
    ids::{self, SpanId, child_span_id, first_span_id, span_id},
    metrics::{Instrument, RunMetrics, Temporality},
    open_effects::OpenEffects,
    spans::{add_event, event, fail, link},
};

/// Difference between the clocks of entries, in microseconds, above which the wall clock counts.
const MAX_DRIFT_US: u64 = 1_000_000;

/// Options for the content of telemetry.
#[derive(Debug, Clone, Copy)]
pub struct ProjectionOptions {
    /// Whether prompts, arguments, results and other texts are included.
    pub content: bool,
    /// Returns the conventions' name of a provider, by its name in a model's name.
    pub provider: fn(&str) -> &str,
}

/// The telemetry that one entry adds.
#[derive(Debug, Default)]
pub struct EntryTelemetry {
    /// The spans that the entry ends.
    pub spans: Vec<Span>,
    /// The entry as a log record.
    pub log: LogRecord,
    /// The child run that the entry starts.
    pub child: Option<RunId>,
    /// Whether the run is over.
    pub is_last: bool,
}

/// The fold of one run.
#[derive(Debug)]
pub struct TelemetryProjection {
    pub(crate) run: RunId,
    pub(crate) options: ProjectionOptions,
    trace: Vec<u8>,
    clock: EntryClock,
    agent: String,
    /// The span of the present process.
    stretch: Option<Span>,
    previous: Option<SpanId>,
    cycle: Option<(u32, Span)>,
    phase: Option<(CyclePhase, Span)>,
    effects: OpenEffects,
    pub(crate) metrics: RunMetrics,
    /// The time at which the next cycle begins.
    since_ns: u64,
    pub(crate) done: Vec<Span>,
}

/// The part of a cycle that an effect belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CyclePhase {
    Perceive,
    Think,
    Act,
    Reflect,
}

impl CyclePhase {
    fn word(self) -> &'static str {
        match self {
            CyclePhase::Perceive => "perceive",
            CyclePhase::Think => "think",
            CyclePhase::Act => "act",
            CyclePhase::Reflect => "reflect",
        }
    }

    /// Returns the phase that an entry begins; `None` if it belongs to the present one.
    fn of(entry: &Entry) -> Option<Self> {
        match entry {
            Entry::ModelCall(call) => match call.purpose {
                Purpose::Agent | Purpose::Plan | Purpose::Mandate => Some(CyclePhase::Think),
                Purpose::Reflect | Purpose::Verify => Some(CyclePhase::Reflect),
                Purpose::Safety | Purpose::Summarise | Purpose::Sampling => None,
            },
            Entry::ToolCalled(_) | Entry::ChildStarted(_) | Entry::WaitStarted(_) => {
                Some(CyclePhase::Act)
            }
            Entry::Noted { kind, .. } if kind == "reflection" => Some(CyclePhase::Reflect),
            _ => None,
        }
    }
}

impl TelemetryProjection {
    /// Creates the fold of `run`, in the trace of the run that `trace` names: its topmost parent.
    pub fn new(run: RunId, trace: RunId, options: ProjectionOptions) -> Self {
        Self {
            run,
            options,
            trace: ids::trace_id(trace),
            clock: EntryClock::default(),
            agent: String::new(),
            stretch: None,
            previous: None,
            cycle: None,
            phase: None,
            effects: OpenEffects::default(),
            metrics: RunMetrics::default(),
            since_ns: 0,
            done: Vec::new(),
        }
    }

    /// Adds the next entry. Large values are read from the blobs of `reader`; one that cannot be
    /// read is left out.
    pub fn take(&mut self, entry: &gyrus_journal::LogEntry, reader: &LogReader) -> EntryTelemetry {
        let before_ns = self.clock.now_ns;
        let now_ns = self.clock.read(entry);
        let mut record = self.record(entry, now_ns);
        let (mut child, mut is_last) = (None, false);
        // An entry of a later version is a log record, and no span.
        if let Ok(parsed) = gyrus_kernel::parse(entry) {
            is_last = matches!(parsed, Entry::RunEnded(_));
            if let Entry::ChildStarted(started) = &parsed {
                child = Some(started.child);
            }
            if matches!(parsed, Entry::RunResumed(_)) {
                self.cut_off(before_ns);
            }
            self.begin(&parsed, entry.seq, now_ns);
            record.severity_number = facts::severity(&parsed).into();
            let within = parsed.effect().and_then(|effect| self.effects.span(effect));
            record.span_id = within.unwrap_or_else(|| self.innermost());
            self.fold(parsed, entry.seq, now_ns, reader);
        }
        EntryTelemetry {
            spans: std::mem::take(&mut self.done),
            log: record,
            child,
            is_last,
        }
    }

    /// Returns the metrics until the last entry. Deltas are returned once.
    pub fn metrics(&mut self, temporality: Temporality) -> Vec<Metric> {
        let metrics = self.metrics.at(self.clock.now_ns, temporality);
        if temporality == Temporality::Delta {
            self.metrics.reset(self.clock.now_ns);
        }
        metrics
    }

    /// The entry as a log record, without its span.
    fn record(&self, entry: &gyrus_journal::LogEntry, now_ns: u64) -> LogRecord {
        let payload = match &entry.payload {
            gyrus_journal::Payload::Json(payload) if self.options.content => payload.get(),
            gyrus_journal::Payload::Json(_) | gyrus_journal::Payload::Erased(_) => &entry.kind,
        };
        LogRecord {
            time_unix_nano: now_ns,
            observed_time_unix_nano: now_ns,
            severity_number: SeverityNumber::Info.into(),
            body: Some(body(payload)),
            attributes: vec![
                text("gyrus.run.id", self.run.to_string()),
                number("gyrus.entry.seq", entry.seq),
            ],
            trace_id: self.trace.clone(),
            event_name: format!("gyrus.{}", entry.kind),
            ..LogRecord::default()
        }
    }

    fn begin(&mut self, entry: &Entry, seq: u64, now_ns: u64) {
        if self.stretch.is_none() {
            self.begin_stretch(entry, seq, now_ns);
        }
        // A fact has an effect; what happens between cycles has none.
        let Some(cycle) = entry.effect().map(EffectId::cycle_number) else {
            return;
        };
        if self.cycle.as_ref().is_some_and(|(open, _)| *open != cycle) {
            self.end_cycle(now_ns, Some("abandoned"));
        }
        if self.cycle.is_none() {
            let name = format!("cycle {cycle}");
            let mut span = self.span(name, "cycle", seq, self.since_ns.min(now_ns));
            span.parent_span_id = id_of(self.stretch.as_ref());
            span.attributes.push(number("gyrus.cycle", cycle));
            self.cycle = Some((cycle, span));
            self.begin_phase(CyclePhase::Perceive, seq, self.since_ns.min(now_ns));
        }
        if let Some(phase) = CyclePhase::of(entry)
            && self.phase.as_ref().is_none_or(|(open, _)| *open != phase)
            && self.effects.is_empty()
        {
            self.end_phase(now_ns);
            self.begin_phase(phase, seq, now_ns);
        }
    }

    fn begin_stretch(&mut self, entry: &Entry, seq: u64, now_ns: u64) {
        let mut span = self.span(String::new(), "run", seq, now_ns);
        span.attributes
            .push(text(gen_ai::OPERATION, "invoke_agent"));
        match entry {
            Entry::RunStarted(started) => self.describe(&mut span, started),
            _ => {
                span.parent_span_id = first_span_id(self.run).to_vec();
                span.attributes.push(flag("gyrus.run.resumed", true));
            }
        }
        if let Some(previous) = self.previous {
            span.links.push(link(self.trace.clone(), previous));
        }
        span.attributes.push(text(gen_ai::AGENT, &self.agent));
        span.name = format!("invoke_agent {}", self.agent);
        self.since_ns = now_ns;
        self.stretch = Some(span);
    }

    fn describe(&mut self, span: &mut Span, started: &RunStarted) {
        self.metrics.starting(span.start_time_unix_nano);
        self.agent.clone_from(&started.agent);
        let provider = self.provider_of(&started.model);
        span.attributes.extend([
            text(gen_ai::PROVIDER, provider),
            text(gen_ai::REQUEST_MODEL, &started.model),
            text("gyrus.loop", &started.cognitive_loop),
        ]);
        if let Some(ParentRun { run, effect, depth }) = &started.parent {
            span.parent_span_id = child_span_id(*run, effect).to_vec();
            span.attributes.extend([
                text("gyrus.run.parent", run.to_string()),
                number("gyrus.run.depth", *depth),
            ]);
        }
        // What one run goes on from is in that run's own trace.
        let origins = [
            started.continues,
            started.forked_from.as_ref().map(|of| of.run),
        ];
        let linked = origins.into_iter().flatten();
        span.links
            .extend(linked.map(|run| link(ids::trace_id(run), first_span_id(run))));
        if let Some(why) = started.loop_config["because"].as_str() {
            let mut attributes = vec![text("gyrus.loop", &started.cognitive_loop)];
            let intent = started.loop_config["intent"].as_str();
            attributes.extend(intent.map(|intent| text("gyrus.intent", intent)));
            let mut event = event("loop.chosen", span.start_time_unix_nano, attributes);
            if self.options.content {
                event.attributes.push(content("gyrus.reason", why));
            }
            span.events.push(event);
        }
    }

    fn fold(&mut self, entry: Entry, seq: u64, now_ns: u64, reader: &LogReader) {
        match entry {
            Entry::RunStarted(started) => {
                self.count_run("started");
                if self.options.content
                    && let (Some(stretch), Some(goal)) =
                        (&mut self.stretch, content::stored(&started.goal, reader))
                {
                    let said = content::said("user", &goal.text);
                    stretch
                        .attributes
                        .push(content(gen_ai::INPUT_MESSAGES, said));
                }
            }
            Entry::RunResumed(_) => self.count_run("resumed"),
            Entry::RunHandedOver(_) => self.note("run.handed_over", now_ns, Vec::new()),
            Entry::BudgetWarning(_) => self.note("budget.warning", now_ns, Vec::new()),
            Entry::CycleEnded(_) => self.end_cycle(now_ns, None),
            Entry::CycleDropped(_) => self.end_cycle(now_ns, Some("dropped")),
            Entry::RunParked(parked) => self.stopped(&parked.ending, now_ns, parked.spent),
            Entry::RunEnded(ended) => {
                self.end_cycle(now_ns, Some("unfinished"));
                self.stopped(&ended.ending, now_ns, ended.spent);
            }
            Entry::Noted { kind, fact, .. } => {
                let mut attributes = facts::words(&kind, &fact.fact);
                if self.options.content {
                    let fact = fact.fact.to_string();
                    attributes.push(content("gyrus.fact", fact));
                }
                self.note(&kind, now_ns, attributes);
            }
            // It serves undoing and forking.
            Entry::WorkspaceRecorded(_) => {}
            other => self.effect(other, seq, now_ns, reader),
        }
    }

    /// Adds an event to the innermost span.
    pub(crate) fn note(
        &mut self,
        name: &str,
        now_ns: u64,
        attributes: Vec<opentelemetry_proto::tonic::common::v1::KeyValue>,
    ) {
        let inner = self.phase.as_mut().map(|(_, span)| span);
        let inner = inner.or(self.cycle.as_mut().map(|(_, span)| span));
        if let Some(span) = inner.or(self.stretch.as_mut()) {
            add_event(span, event(name, now_ns, attributes));
        }
    }

    /// The process that drove the run is gone: its stretch ended with the last entry before.
    fn cut_off(&mut self, before_ns: u64) {
        if let Some(mut stretch) = self.stretch.take() {
            stretch.attributes.push(text("gyrus.run.state", "cut_off"));
            fail(&mut stretch, "cut_off", None);
            self.previous = stretch.span_id.as_slice().try_into().ok();
            self.close(stretch, before_ns);
        }
    }

    /// Ends the span of a stretch of work, with the reason.
    fn stopped(&mut self, ending: &Ending, now_ns: u64, spent: gyrus_contract::Spent) {
        let state = content::tag(ending, "ending");
        self.count_run(&state);
        let Some(mut stretch) = self.stretch.take() else {
            return;
        };
        stretch.attributes.extend([
            text("gyrus.run.state", &state),
            number("gyrus.usage.steps", spent.steps),
            number("gyrus.usage.tokens", spent.tokens),
            decimal("gyrus.usage.cost_usd", spent.cost.0 as f64 / 1e6),
        ]);
        match ending {
            Ending::Reached { claim, .. } if self.options.content => {
                let said = content::said("assistant", &claim.answer);
                stretch
                    .attributes
                    .push(content(gen_ai::OUTPUT_MESSAGES, said));
            }
            Ending::Failed { reason, .. } => {
                fail(&mut stretch, &state, self.if_content(reason));
            }
            Ending::ModelUnreachable { .. } | Ending::Stuck { .. } => {
                fail(&mut stretch, &state, None);
            }
            Ending::Reached { .. }
            | Ending::Limit { .. }
            | Ending::Waiting { .. }
            | Ending::Sleeping { .. }
            | Ending::Stopped { .. }
            | Ending::Interrupted => {}
        }
        self.previous = stretch.span_id.as_slice().try_into().ok();
        self.close(stretch, now_ns);
    }

    fn count_run(&mut self, state: &str) {
        let of = vec![
            ("gyrus.run.state", state.to_owned()),
            (gen_ai::AGENT, self.agent.clone()),
        ];
        self.metrics.record(Instrument::Runs, of, 1.0);
    }

    /// Ends the open cycle with all open spans in it, if there is one.
    fn end_cycle(&mut self, now_ns: u64, why: Option<&str>) {
        for mut span in self.effects.take_all() {
            fail(&mut span, why.unwrap_or("unfinished"), None);
            self.close(span, now_ns);
        }
        self.end_phase(now_ns);
        if let Some((_, mut span)) = self.cycle.take() {
            if let Some(why) = why {
                fail(&mut span, why, None);
            }
            self.close(span, now_ns);
        }
        self.since_ns = now_ns;
    }

    fn begin_phase(&mut self, phase: CyclePhase, seq: u64, start_ns: u64) {
        let mut span = self.span(phase.word().to_owned(), phase.word(), seq, start_ns);
        span.parent_span_id = id_of(self.cycle.as_ref().map(|(_, span)| span));
        self.phase = Some((phase, span));
    }

    fn end_phase(&mut self, now_ns: u64) {
        if let Some((_, span)) = self.phase.take() {
            self.close(span, now_ns);
        }
    }

    /// Returns a new span; it has no parent yet.
    pub(crate) fn span(&self, name: String, role: &str, seq: u64, start_ns: u64) -> Span {
        Span {
            trace_id: self.trace.clone(),
            span_id: span_id(self.run, role, seq).to_vec(),
            name,
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: start_ns,
            attributes: vec![text("gyrus.run.id", self.run.to_string())],
            ..Span::default()
        }
    }

    pub(crate) fn close(&mut self, mut span: Span, end_ns: u64) {
        span.end_time_unix_nano = end_ns.max(span.start_time_unix_nano);
        self.done.push(span);
    }

    /// Returns the id of the innermost span that is no effect.
    pub(crate) fn innermost(&self) -> Vec<u8> {
        let phase = self.phase.as_ref().map(|(_, span)| span);
        let cycle = self.cycle.as_ref().map(|(_, span)| span);
        id_of(phase.or(cycle).or(self.stretch.as_ref()))
    }

    pub(crate) fn effects(&mut self) -> &mut OpenEffects {
        &mut self.effects
    }

    pub(crate) fn trace(&self) -> &[u8] {
        &self.trace
    }

    pub(crate) fn provider_of(&self, model: &str) -> String {
        let provider = model.split(['/', ':']).next().unwrap_or(model);
        (self.options.provider)(provider).to_owned()
    }

    pub(crate) fn if_content<'a>(&self, words: &'a str) -> Option<&'a str> {
        self.options.content.then_some(words)
    }
}

fn id_of(span: Option<&Span>) -> Vec<u8> {
    span.map(|span| span.span_id.clone()).unwrap_or_default()
}

/// Reads the times of entries: wall clocks have milliseconds, and the clock of a journal's writer
/// has microseconds since it took the log.
#[derive(Debug, Default)]
struct EntryClock {
    /// Wall time at which the writer took the log, and its last reading.
    anchor_us: u64,
    mono_us: u64,
    now_ns: u64,
}

impl EntryClock {
    /// Returns the time of an entry; never earlier than that of the entry before.
    fn read(&mut self, entry: &gyrus_journal::LogEntry) -> u64 {
        let wall_us = u64::try_from(entry.at_ms).unwrap_or(0).saturating_mul(1000);
        let here_us = self.anchor_us.saturating_add(entry.mono_us);
        // Another writer, or a machine that slept.
        if entry.mono_us < self.mono_us || here_us.abs_diff(wall_us) > MAX_DRIFT_US {
            self.anchor_us = wall_us.saturating_sub(entry.mono_us);
        }
        self.mono_us = entry.mono_us;
        let now_us = self.anchor_us.saturating_add(entry.mono_us);
        self.now_ns = self.now_ns.max(now_us.saturating_mul(1000));
        self.now_ns
    }
}
