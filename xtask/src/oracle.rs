//! Runs the oracle: hostile lines take the real path of a run, and nothing may come of it.

use anyhow::bail;

use crate::{error::CannotStart, repository};

/// Runs it in release with these arguments. It says itself what it found.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let oracle = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "gyrus-oracle",
        "--",
    ];
    let status = repository::cargo(&oracle)?.args(arguments).status()?;
    match status.code() {
        Some(0) => Ok(()),
        Some(2) => bail!(CannotStart("`oracle` did not start".to_owned())),
        _ => bail!("`oracle` ended with {status}"),
    }
}
