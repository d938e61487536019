//! Size of a step on disk, in short runs and in long ones.

use std::path::Path;

use crate::{
    Row, row,
    world::{Plays, kernel, new_run},
};

/// Bytes of all files below `folder`.
fn bytes_below(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += if about.is_dir() {
            bytes_below(&entry.path())?
        } else {
            about.len()
        };
    }
    Ok(bytes)
}

fn run_of(steps: u64) -> anyhow::Result<u64> {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    let workspace = folder.path().join("work");
    std::fs::create_dir(&workspace)?;
    let kernel = kernel(&folder.path().join("home"), Plays::Steps(steps), false)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ready = kernel.create(new_run(&workspace)?)?;
    let log = gyrus_kernel::log_name(ready.id());
    runtime.block_on(ready.drive())?;
    bytes_below(&kernel.store().folder(&log))
}

/// Bytes a step with arguments and results of 200 bytes.
pub(crate) fn bytes() -> anyhow::Result<Vec<Row>> {
    let (empty, hundred, five_hundred) = (run_of(0)?, run_of(100)?, run_of(500)?);
    let short = hundred.saturating_sub(empty) / 100;
    let long = five_hundred.saturating_sub(empty) / 500;
    Ok(vec![row(
        "bytes on disk a ReAct step of 200-byte payloads, in runs of 100 and of 500 steps",
        format!("{short} and {long}"),
        "≤ 4096, constant (a peer's SQLite saver: 36,000 to 97,000, growing)",
    )])
}
