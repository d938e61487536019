//! A life of a log, as data: what is done, and what goes wrong.

use fastrand::Rng;

use super::Fault;

/// What is done to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Appends so many entries.
    Append { entries: u64, length: usize },
    /// Waits for the disk.
    Barrier,
    /// Puts one of a few blobs or some of them, and an entry that names them.
    Blob { which: u64 },
    /// Sends a message.
    Send,
    /// Removes the oldest message.
    Consume,
    /// Lets go of the log and takes it again.
    Reopen,
    /// Lets go of the log and erases entries, chosen by this number.
    Erase { choice: u64 },
    /// Exports the log and imports it elsewhere, whole and damaged at a place chosen by this
    /// number.
    Export { choice: u64 },
    /// Exports the log, removes it, and imports it again.
    Reimport,
    /// Sweeps the store.
    Sweep,
}

/// What happens to the machine after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Nothing,
    /// The process ends.
    Kill,
    /// The power is cut.
    Crash,
}

/// One step of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) action: Action,
    /// What goes wrong with which call of this step.
    pub(super) fault: Option<(u64, Fault)>,
    pub(super) after: After,
    /// Decides how crashes after this step turn out.
    pub(super) seed: u64,
}

/// A life of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    pub(super) steps: Vec<Step>,
}

/// Most steps of a life.
const STEPS: u64 = 14;

/// Calls within which a fault is planned; few steps make more.
const FAULT_CALLS: u64 = 40;

impl Scenario {
    /// The life that belongs to a seed.
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
