//! Random schedules of workers that drive runs over a shared log, with everything that can go wrong
//! between them, and the properties that must hold all the same.
//!
//! Time is virtual, and one seed decides everything: when a message arrives, if at all, and when its
//! answer does; which reads are old; when a worker is stopped, killed, cut off, and how its clock
//! runs. The workers are the program's own claims and holds. A schedule ends when all runs have,
//! some time after the last fault; one that does not is a run that is stuck.

mod machine;
mod outcome;
mod state;
mod stream;
mod worker;
mod world;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

pub use self::outcome::{FailedFleetSchedule, Flaw, Outcome};
use parking_lot::Mutex;

use self::world::World;

/// Lives the schedule of a seed.
///
/// # Errors
/// A property does not hold.
pub fn live(seed: u64, flaw: Option<Flaw>) -> Result<Outcome, FailedFleetSchedule> {
    // A schedule that fails is lived again, to be told.
    World::new(seed, flaw, false)
        .live()
        .or_else(|_| World::new(seed, flaw, true).live())
}

/// Number of threads on which schedules are lived.
const THREADS: usize = 2;

/// Lives many schedules, with seeds counted up from `first_seed`.
///
/// # Errors
/// Returns the failed schedule that was found first.
pub fn sweep(
    schedules: u64,
    first_seed: u64,
    flaw: Option<Flaw>,
) -> Result<Outcome, FailedFleetSchedule> {
    let next = AtomicU64::new(0);
    let found: Mutex<Result<Outcome, FailedFleetSchedule>> = Mutex::new(Ok(Outcome::default()));
    let result = || found.lock();
    let live_on = || {
        let mut own = Outcome::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= schedules {
                break;
            }
            match live(first_seed.wrapping_add(number), flaw) {
                Ok(outcome) => own.add(outcome),
                Err(failed) => {
                    next.store(schedules, Ordering::Relaxed);
                    *result() = Err(failed);
                }
            }
        }
        if let Ok(together) = &mut *result() {
            together.add(own);
        }
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(live_on);
        }
    });
    found.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_entry_is_lost_no_effect_doubled_and_no_run_stuck() {
        let together = sweep(3_000, 0, None).unwrap_or_else(|failed| panic!("{failed}"));
        // The schedules reach what they are for.
        assert!(together.takeovers > 500, "{together:?}");
        assert!(together.killed_at_deadline > 100, "{together:?}");
        assert!(together.refused > 500, "{together:?}");
        assert!(
            (1..2_000).contains(&together.longest_takeover),
            "{together:?}"
        );
    }

    #[test]
    fn every_flaw_is_found() {
        for flaw in Flaw::ALL {
            assert!(
                sweep(20_000, 0, Some(flaw)).is_err(),
                "{flaw:?} was not found"
            );
        }
    }

    #[test]
    fn a_seed_is_always_the_same_schedule() {
        for seed in 0..50 {
            assert_eq!(live(seed, None), live(seed, None));
        }
    }
}
