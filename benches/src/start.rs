//! Time that the binary takes to print its version, beside the shell doing nothing.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context;

use crate::{Row, row};

const ROUNDS: usize = 100;

fn time(program: &Path, arguments: &[&str]) -> anyhow::Result<Duration> {
    let since = Instant::now();
    let status = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("{} cannot be started", program.display()))?;
    anyhow::ensure!(status.success(), "{} failed", program.display());
    Ok(since.elapsed())
}

/// The program beside this one.
pub(crate) fn gyrus() -> anyhow::Result<PathBuf> {
    let mut path = std::env::current_exe()?;
    path.set_file_name("gyrus");
    anyhow::ensure!(path.exists(), "build it first: cargo build --profile dist");
    Ok(path)
}

/// `gyrus --version` and `bash -c true` in turns.
pub(crate) fn version() -> anyhow::Result<Vec<Row>> {
    let gyrus = gyrus()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(time(&gyrus, &["--version"])?);
        theirs.push(time(Path::new("bash"), &["-c", "true"])?);
    }
    ours.sort_unstable();
    theirs.sort_unstable();
    let (ours, theirs) = (ours[ROUNDS / 2], theirs[ROUNDS / 2]);
    Ok(vec![row(
        "`gyrus --version` beside `bash -c true` (medians)",
        format!(
            "{:.2}× ({:.2} ms beside {:.2} ms)",
            ours.as_secs_f64() / theirs.as_secs_f64(),
            ours.as_secs_f64() * 1e3,
            theirs.as_secs_f64() * 1e3
        ),
        "≤ 3×",
    )])
}
