//! A scenario for a log, as data: actions and faults.

use fastrand::Rng;

use super::Fault;

/// An action on the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Appends this many entries.
    Append { entries: u64, length: usize },
    /// Waits for the disk.
    Barrier,
    /// Puts one of a few blobs or some of them, and an entry that names them.
    Blob { which: u64 },
    /// Sends a message.
    Send,
    /// Removes the oldest message.
    Consume,
    /// Releases the log and takes it again.
    Reopen,
    /// Releases the log and erases entries, chosen by this number.
    Erase { choice: u64 },
    /// Exports the log and imports it elsewhere, once whole and once damaged at an offset chosen by
    /// this number.
    Export { choice: u64 },
    /// Exports the log, removes it, and imports it again.
    Reimport,
    /// Sweeps the store.
    Sweep,
}

/// The event that happens to the machine after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Nothing,
    /// The process ends.
    Kill,
    /// The power is cut.
    Crash,
}

/// One step of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) action: Action,
    /// The number of a call in this step, and its fault.
    pub(super) fault: Option<(u64, Fault)>,
    pub(super) after: After,
    /// The seed that decides how crashes after this step turn out.
    pub(super) seed: u64,
}

/// A scenario: a sequence of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    pub(super) steps: Vec<Step>,
}

/// Maximum number of steps.
const STEPS: u64 = 14;

/// Number of calls within which a fault is planned; few steps make more.
const FAULT_CALLS: u64 = 40;

impl Scenario {
    /// Creates the scenario of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let count = 2 + random.u64(..STEPS - 1);
        Self {
            steps: (0..count).map(|_| step(&mut random)).collect(),
        }
    }
}

fn step(random: &mut Rng) -> Step {
    let action = match random.u64(..20) {
        0..=4 => Action::Append {
            entries: 1 + random.u64(..5),
            length: if random.u8(..5) == 0 {
                700
            } else {
                random.usize(..40)
            },
        },
        5..=8 => Action::Barrier,
        9..=10 => Action::Blob {
            which: random.u64(..4),
        },
        11..=12 => Action::Send,
        13 => Action::Consume,
        14..=15 => Action::Reopen,
        16 => Action::Erase {
            choice: random.u64(..),
        },
        17 => Action::Export {
            choice: random.u64(..),
        },
        18 => Action::Reimport,
        _ => Action::Sweep,
    };
    let fault = (random.u8(..4) == 0).then(|| (random.u64(..FAULT_CALLS), fault(random)));
    let after = match random.u64(..8) {
        0 => After::Kill,
        1 => After::Crash,
        _ => After::Nothing,
    };
    Step {
        action,
        fault,
        after,
        seed: random.u64(..),
    }
}

pub(super) fn fault(random: &mut Rng) -> Fault {
    match random.u64(..5) {
        0 => Fault::NoSpace,
        1 => Fault::ShortWrite,
        2 => Fault::PowerCut,
        _ => Fault::Io,
    }
}
