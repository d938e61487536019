//! The entries of a run that affect budgets, and what remains of them after a kill.

use gyrus_contract::Spent;

use crate::{Charge, KernelState};

/// An entry, reduced to what affects budgets. Calls and runs are identified by their number in the
/// schedule.
#[derive(Debug, Clone)]
pub(super) enum SimRecord {
    /// `model.call`.
    Call { call: usize, reserved: Charge },
    /// `model.reply`.
    Reply {
        call: usize,
        charged: Charge,
        estimated: bool,
    },
    /// `child.started`.
    ChildStarted { child: usize },
    /// `child.ended`.
    ChildEnded {
        child: usize,
        spent: Spent,
        children: u32,
    },
    /// `cycle.ended`.
    CycleEnded { spent: Spent, children: u32 },
    /// `run.handed_over` with `cycle.dropped`.
    CycleDropped,
    /// `run.parked`.
    Parked,
    /// `run.ended`.
    Ended { spent: Spent },
}

/// A run's journal; the last entries may not be on disk yet.
#[derive(Debug, Default)]
pub(super) struct Journal {
    records: Vec<SimRecord>,
    synced: usize,
}

impl Journal {
    pub(super) fn append(&mut self, record: SimRecord) {
        self.records.push(record);
    }

    /// Marks all entries as being on disk.
    pub(super) fn barrier(&mut self) {
        self.synced = self.records.len();
    }

    /// Returns the number of entries that a kill may lose.
    pub(super) fn unsynced(&self) -> usize {
        self.records.len() - self.synced
    }

    /// Kills the process and loses the last `lost` entries.
    pub(super) fn kill(&mut self, lost: usize) {
        self.records.truncate(self.records.len() - lost);
        self.barrier();
    }

    /// Returns the position of the run as `position.rs` reads it: back to the last complete cycle.
    pub(super) fn position(&self) -> SimPosition {
        let is_cycle = |record: &SimRecord| matches!(record, SimRecord::CycleEnded { .. });
        let since = self.records.iter().rposition(is_cycle);
        let mut position = SimPosition::default();
        if let Some(SimRecord::CycleEnded { spent, children }) = since.map(|at| &self.records[at]) {
            position.state.spent = *spent;
            position.state.children = *children;
        }
        for record in &self.records[since.map_or(0, |at| at + 1)..] {
            match record {
                SimRecord::CycleDropped => {
                    let entries = std::mem::take(&mut position.recorded);
                    position.dropped.push(entries);
                }
                SimRecord::Parked => {}
                SimRecord::Ended { spent } => position.over = Some(*spent),
                other => position.recorded.push(other.clone()),
            }
        }
        position
    }
}

/// The position of a run.
#[derive(Debug, Default)]
pub(super) struct SimPosition {
    /// The state at the end of the last complete cycle.
    pub(super) state: KernelState,
    /// The recorded entries of the cycle after it.
    pub(super) recorded: Vec<SimRecord>,
    /// Abandoned cycles after the last complete one.
    pub(super) dropped: Vec<Vec<SimRecord>>,
    /// The resources that the run used, if the run has ended.
    pub(super) over: Option<Spent>,
}

impl SimPosition {
    /// Returns the number of runs started below this one, as `SimPosition::children` counts them.
    pub(super) fn children(&self) -> u32 {
        let recorded = self.recorded.iter().map(|record| match record {
            SimRecord::ChildStarted { .. } => 1,
            SimRecord::ChildEnded { children, .. } => *children,
            _ => 0,
        });
        self.state.children + recorded.sum::<u32>()
    }

    /// Returns the requests without a reply, each with its reservation.
    pub(super) fn open_calls(&self) -> Vec<(usize, Charge)> {
        let mut open = Vec::new();
        for record in &self.recorded {
            match record {
                SimRecord::Call { call, reserved } => open.push((*call, *reserved)),
                SimRecord::Reply { call, .. } => open.retain(|(other, _)| other != call),
                _ => {}
            }
        }
        open
    }

    /// Returns the children without an end.
    pub(super) fn open_children(&self) -> Vec<usize> {
        let mut open = Vec::new();
        for record in &self.recorded {
            match record {
                SimRecord::ChildStarted { child } => open.push(*child),
                SimRecord::ChildEnded { child, .. } => open.retain(|other| other != child),
                _ => {}
            }
        }
        open
    }
}
