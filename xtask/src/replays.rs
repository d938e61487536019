//! Replays learned procedures on changed pages: many runs of the whole program in real browsers.

use anyhow::bail;

use crate::repository;

/// Runs them in release with these arguments. They say themselves what they came to.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let build = ["build", "--quiet", "--release", "--package", "gyrus"];
    if !repository::cargo(&build)?.status()?.success() {
        bail!("gyrus cannot be built");
    }
    let replays = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "gyrus-replays",
        "--",
    ];
    let status = repository::cargo(&replays)?.args(arguments).status()?;
    if !status.success() {
        bail!("`replays` ended with {status}");
    }
    Ok(())
}
