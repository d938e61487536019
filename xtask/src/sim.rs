//! Deterministic simulation of the journal under injected faults.
//!
//! Every seed is a life of a log: what is done to it, which calls fail, where the power is cut.
//! After each crash the log is recovered and compared with what was acknowledged; each such
//! comparison is a state. A failing life is made as short as it can be before it is told.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Instant,
};

use gyrus_simulation::journal::{JournalViolation, explore, shrink};
use parking_lot::Mutex;

/// Lives are independent, so they are lived on this many threads.
const THREADS: usize = 2;

/// Explores `states` states, with seeds counted up from `first_seed`, and fails at the first
/// broken property.
pub(crate) fn run(states: u64, first_seed: u64) -> anyhow::Result<()> {
    let start = Instant::now();
    let explored = AtomicU64::new(0);
    let next_seed = AtomicU64::new(first_seed);
    let failed = AtomicBool::new(false);
    let failure: Mutex<Option<JournalViolation>> = Mutex::new(None);
    let live = || {
        while explored.load(Ordering::Relaxed) < states && !failed.load(Ordering::Relaxed) {
            match explore(next_seed.fetch_add(1, Ordering::Relaxed)) {
                Ok(count) => {
                    explored.fetch_add(count, Ordering::Relaxed);
                }
                Err(found) => {
                    failed.store(true, Ordering::Relaxed);
                    failure.lock().get_or_insert(found);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(live);
        }
    });
    let explored = explored.into_inner();
    let seconds = start.elapsed().as_secs_f64();
    let lives = next_seed.into_inner() - first_seed;
    println!(
        "{explored} states in {lives} lives, {:.0} states/s",
        explored as f64 / seconds
    );
    match failure.into_inner() {
        Some(failure) => anyhow::bail!("{}", shrink(failure)),
        None => Ok(()),
    }
}
