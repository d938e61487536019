//! Phases of the cycle, as the kernel names them, found from the entries of a run.

use gyrus_contract::Purpose;
use gyrus_journal::Payload;
use gyrus_kernel::{Ending, Entry};

/// The part of its cycle in which a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Between two cycles, or without a process.
    Idle,
    /// The run collects its input.
    Perceive,
    /// The run asks a model what to do next.
    Think,
    /// The run waits for a person.
    Ask,
    /// The run carries out calls.
    Act,
    /// The run reviews the cycle, or verifies.
    Reflect,
}

impl Phase {
    /// All phases, in the order of the cycle.
    pub const ALL: [Phase; 6] = [
        Phase::Idle,
        Phase::Perceive,
        Phase::Think,
        Phase::Ask,
        Phase::Act,
        Phase::Reflect,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Perceive => "perceive",
            Phase::Think => "think",
            Phase::Ask => "ask",
            Phase::Act => "act",
            Phase::Reflect => "reflect",
        }
    }

    /// Returns a description of the phase, as one sentence.
    pub fn words(self) -> &'static str {
        match self {
            Phase::Idle => "between two cycles",
            Phase::Perceive => "collects its input",
            Phase::Think => "asks a model what to do next",
            Phase::Ask => "waits for a person",
            Phase::Act => "carries out calls",
            Phase::Reflect => "looks back or verifies",
        }
    }
}

/// A stretch of time in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseSpan {
    pub phase: Phase,
    pub cycle: u32,
    /// Number of the stretch's first entry.
    pub seq: u64,
    /// The time of the stretch's first entry, in UTC milliseconds.
    pub from_ms: i64,
    /// The time at which the next stretch began, in UTC milliseconds; `None` for the present one.
    pub until_ms: Option<i64>,
}

impl PhaseSpan {
    /// Returns the duration of the phase in milliseconds, once it has ended.
    pub fn took_ms(&self) -> Option<u64> {
        let took = self.until_ms?.saturating_sub(self.from_ms);
        Some(u64::try_from(took).unwrap_or(0))
    }
}

/// Folds entries into phases.
#[derive(Debug, Default)]
pub struct Phases {
    spans: Vec<PhaseSpan>,
    cycle: u32,
    last_ms: i64,
}

impl Phases {
    /// Adds the next entry. One that cannot be read changes nothing.
    pub fn take(&mut self, entry: &gyrus_journal::LogEntry) {
        if matches!(entry.payload, Payload::Erased(_)) {
            return;
        }
        let Ok(parsed) = gyrus_kernel::parse(entry) else {
            return;
        };
        if let Some(effect) = parsed.effect() {
            self.cycle = effect.cycle_number();
        }
        let present = self.spans.last().map_or(Phase::Idle, |span| span.phase);
        let phase = next(&parsed, present);
        self.last_ms = entry.at_ms;
        let is_same = self
            .spans
            .last()
            .is_some_and(|span| span.phase == phase && span.cycle == self.cycle);
        if is_same {
            return;
        }
        if let Some(last) = self.spans.last_mut() {
            last.until_ms = Some(entry.at_ms);
        }
        self.spans.push(PhaseSpan {
            phase,
            cycle: self.cycle,
            seq: entry.seq,
            from_ms: entry.at_ms,
            until_ms: None,
        });
    }

    /// Returns the stretches, oldest first; the last one is the present.
    pub fn spans(&self) -> &[PhaseSpan] {
        &self.spans
    }

    /// Returns the milliseconds in each phase, with the number of times that it was entered.
    pub fn totals(&self) -> Vec<(Phase, u64, u64)> {
        let of = |phase: Phase| {
            let spans = self.spans.iter().filter(|span| span.phase == phase);
            let times = spans.clone().count() as u64;
            (phase, spans.filter_map(PhaseSpan::took_ms).sum(), times)
        };
        Phase::ALL.into_iter().map(of).collect()
    }
}

fn next(entry: &Entry, present: Phase) -> Phase {
    match entry {
        Entry::RunParked(parked) => match parked.ending {
            Ending::Waiting { .. } => Phase::Ask,
            Ending::Reached { .. }
            | Ending::Failed { .. }
            | Ending::Limit { .. }
            | Ending::Sleeping { .. }
            | Ending::Stuck { .. }
            | Ending::ModelUnreachable { .. }
            | Ending::Stopped { .. }
            | Ending::Interrupted => Phase::Idle,
        },
        Entry::RunStarted(_)
        | Entry::WorkspaceRecorded(_)
        | Entry::RunEnded(_)
        | Entry::CycleEnded(_)
        | Entry::CycleDropped(_)
        | Entry::WaitStarted(_) => Phase::Idle,
        Entry::Steered(_) | Entry::ToolsAdded(_) | Entry::RunHandedOver(_) => Phase::Perceive,
        // A look before the model is asked is input; one after a call belongs to the call.
        Entry::ScreenViewed(_) if matches!(present, Phase::Idle) => Phase::Perceive,
        Entry::ModelCall(call) => match call.purpose {
            Purpose::Agent | Purpose::Plan | Purpose::Mandate => Phase::Think,
            Purpose::Reflect | Purpose::Verify => Phase::Reflect,
            Purpose::Summarise => Phase::Perceive,
            Purpose::Safety | Purpose::Sampling => Phase::Act,
        },
        Entry::ApprovalAsked(_) | Entry::TakeoverStarted(_) => Phase::Ask,
        Entry::MandateSet(_) => Phase::Think,
        Entry::ToolCalled(_)
        | Entry::GateVerdict(_)
        | Entry::ApprovalAnswered(_)
        | Entry::TakeoverEnded(_)
        | Entry::ToolStarted(_)
        | Entry::ToolResulted(_)
        | Entry::BranchesStarted(_)
        | Entry::ChildStarted(_)
        | Entry::ChildEnded(_) => Phase::Act,
        Entry::Noted { kind, .. } if kind.ends_with("reflection") => Phase::Reflect,
        Entry::Noted { kind, .. } if kind.starts_with("verification.") => Phase::Reflect,
        Entry::Noted { .. } if present == Phase::Idle => Phase::Perceive,
        Entry::Noted { .. }
        | Entry::ScreenViewed(_)
        | Entry::RunResumed(_)
        | Entry::ModelReply(_)
        | Entry::ValueTaken(_)
        | Entry::WaitEnded(_)
        | Entry::RaceWon(_)
        | Entry::BudgetWarning(_) => present,
    }
}
