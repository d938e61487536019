//! Runs the oracle of the gate: what was called reading must change nothing.

use anyhow::bail;

use crate::{commands::CannotStart, repository};

/// Runs it in release with these arguments. It says itself what it found.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let oracle = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "gyrus-gate",
        "--features",
        "oracle",
        "--example",
        "oracle",
        "--",
    ];
    let status = repository::cargo(&oracle)?.args(arguments).status()?;
    match status.code() {
        Some(0) => Ok(()),
        Some(2) => bail!(CannotStart("`oracle` did not start".to_owned())),
        _ => bail!("`oracle` ended with {status}"),
    }
}
