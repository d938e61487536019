//! Many schedules, one after the other.

use std::{fmt, time::Instant};

use super::schedule::{Failure, Operation, live};

/// What a sweep did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sweep {
    /// How many schedules.
    pub schedules: u64,
    /// Operations in all of them.
    pub operations: u64,
    /// Requests that were refused for want of money or tokens.
    pub refused: u64,
    /// Processes that were killed.
    pub kills: u64,
    /// Cycles that were given up in the process that ran them.
    pub given_up: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// In one line.
impl fmt::Display for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.schedules as f64 / self.seconds.max(1e-9);
        write!(
            f,
            "{} schedules, {} operations ({} refused, {} kills, {} given up), {rate:.0} schedules/s",
            self.schedules, self.operations, self.refused, self.kills, self.given_up
        )
    }
}

/// Lives schedules, the n-th from the seed `seed + n`.
///
/// # Errors
/// The first in which something does not hold.
pub fn sweep(schedules: u64, seed: u64) -> Result<Sweep, Failure> {
    let start = Instant::now();
    let mut done = Sweep {
        schedules,
        operations: 0,
        refused: 0,
        kills: 0,
        given_up: 0,
        seconds: 0.0,
    };
    for number in 0..schedules {
        for operation in live(seed.wrapping_add(number))? {
            done.operations += 1;
            match operation {
                Operation::Ask { granted: None, .. } => done.refused += 1,
                Operation::Kill => done.kills += 1,
                Operation::GiveUpCycle { .. } => done.given_up += 1,
                _ => {}
            }
        }
    }
    done.seconds = start.elapsed().as_secs_f64();
    Ok(done)
}
