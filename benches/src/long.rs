//! A run with a million entries: taken up again, and replayed.

use std::time::{Duration, Instant};

use gyrus_contract::Limits;
use gyrus_journal::LockWait;
use gyrus_kernel::ResumeChanges;

use crate::{
    Row, row,
    world::{Plays, kernel, new_run},
};

/// Entries that the run is to have at least.
const ENTRIES: u64 = 1_000_000;

/// Entries of one step, roughly; only decides how long the run is made.
const ENTRIES_A_STEP: u64 = 7;

/// Makes the run in memory-backed storage, then measures.
pub(crate) fn million() -> anyhow::Result<Vec<Row>> {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    let workspace = folder.path().join("work");
    std::fs::create_dir(&workspace)?;
    let kernel = kernel(&folder.path().join("home"), Plays::ForEver, false)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let steps = ENTRIES / ENTRIES_A_STEP + 1;
    let mut new = new_run(&workspace)?;
    new.limits = Limits {
        steps: Some(steps),
        ..Limits::default()
    };
    let ready = kernel.create(new)?;
    let run = ready.id();
    let since = Instant::now();
    runtime.block_on(ready.drive())?;
    let making = since.elapsed();
    let entries = kernel.store().reader(&gyrus_kernel::log_name(run))?.end()?;

    let since = Instant::now();
    let more = Limits {
        steps: Some(steps + 1),
        ..Limits::default()
    };
    let changes = ResumeChanges {
        limits: more,
        ..ResumeChanges::default()
    };
    let ready = kernel.take(run, LockWait::IfFree, changes)?;
    runtime.block_on(ready.drive())?;
    let taken_up = since.elapsed();

    let since = Instant::now();
    let replayed = runtime.block_on(kernel.replay(run))?;
    let replaying = since.elapsed();
    Ok(vec![
        row(
            "a run of many entries, taken up and one step further",
            format!("{} ms ({entries} entries)", taken_up.as_millis()),
            "≤ 1000 ms with 1,000,000",
        ),
        row(
            "entries replayed a second, loop and comparison included",
            format!(
                "{:.0} ({} cycles)",
                per_second(replayed.entries, replaying),
                replayed.cycles
            ),
            "≥ 100,000",
        ),
        row(
            "entries written a second by one run, disk in memory",
            format!("{:.0}", per_second(entries, making)),
            "reported",
        ),
    ])
}

fn per_second(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}
