//! Runs that wait for a person, in one process.

use std::{sync::Arc, time::Duration};

use crate::{
    Row, row,
    world::{Plays, kernel, new_run},
};

const RUNS: usize = 1_000;

/// Memory of this process that is its own, in bytes.
fn own_memory() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes: u64 = line
        .unwrap_or_default()
        .trim()
        .trim_end_matches(" kB")
        .parse()?;
    Ok(kilobytes * 1024)
}

/// Measures the memory of a thousand waiting runs.
pub(crate) fn thousand() -> anyhow::Result<Vec<Row>> {
    let mut files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    files.current = files.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, files)?;
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    let workspace = folder.path().join("work");
    std::fs::create_dir(&workspace)?;
    let kernel = Arc::new(kernel(&folder.path().join("home"), Plays::ForEver, true)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        // Or the stacks of five hundred idle threads would be counted as runs.
        .max_blocking_threads(8)
        .enable_all()
        .build()?;
    let before = own_memory()?;
    let mut controls = Vec::new();
    let mut tasks = Vec::new();
    for _ in 0..RUNS {
        let ready = kernel.create(new_run(&workspace)?)?;
        controls.push((ready.id(), ready.controls()));
        tasks.push(runtime.spawn(ready.drive()));
    }
    for (run, _) in &controls {
        let reader = kernel.store().reader(&gyrus_kernel::log_name(*run))?;
        runtime.block_on(async {
            let mut follower = reader.follow(1)?;
            let asked = async {
                while follower.next().await?.kind != "approval.asked" {}
                anyhow::Ok(())
            };
            tokio::time::timeout(Duration::from_secs(60), asked).await?
        })?;
    }
    let waiting = own_memory()?.saturating_sub(before);
    for (_, controls) in &controls {
        controls.interrupt();
    }
    for task in tasks {
        runtime.block_on(task)??;
    }
    Ok(vec![row(
        "memory of 1,000 runs that wait for a person",
        format!("{:.1} MB", waiting as f64 / 1e6),
        "< 20 MB",
    )])
}
