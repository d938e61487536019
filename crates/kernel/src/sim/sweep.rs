//! Running many schedules, one after the other.

use std::{fmt, time::Instant};

use super::schedule::{FailedSchedule, ScheduledOperation, live};

/// The statistics of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ScheduleSweep {
    pub(super) schedules: u64,
    pub(super) operations: u64,
    /// Number of requests that were refused for lack of money or tokens.
    pub(super) refused: u64,
    /// Number of processes that were killed.
    pub(super) kills: u64,
    /// Number of cycles that were abandoned by the process that ran them.
    pub(super) abandoned: u64,
    /// The duration in seconds.
    pub(super) seconds: f64,
}

/// Formats the statistics in one line.
impl fmt::Display for ScheduleSweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.schedules as f64 / self.seconds.max(1e-9);
        write!(
            f,
            "{} schedules, {} operations ({} refused, {} kills, {} given up), {rate:.0} schedules/s",
            self.schedules, self.operations, self.refused, self.kills, self.abandoned
        )
    }
}

/// Runs schedules, the n-th from the seed `seed + n`.
///
/// # Errors
/// Returns the first schedule in which a property does not hold.
pub(super) fn sweep(schedules: u64, seed: u64) -> Result<ScheduleSweep, FailedSchedule> {
    let start = Instant::now();
    let mut done = ScheduleSweep {
        schedules,
        ..ScheduleSweep::default()
    };
    for number in 0..schedules {
        for operation in live(seed.wrapping_add(number))? {
            done.operations += 1;
            match operation {
                ScheduledOperation::Ask { granted: None, .. } => done.refused += 1,
                ScheduledOperation::Kill => done.kills += 1,
                ScheduledOperation::GiveUpCycle { .. } => done.abandoned += 1,
                _ => {}
            }
        }
    }
    done.seconds = start.elapsed().as_secs_f64();
    Ok(done)
}
