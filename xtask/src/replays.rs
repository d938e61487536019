//! Replays learned procedures on changed pages, or on real applications: many runs of the whole program in real browsers.

use std::path::PathBuf;

use anyhow::bail;

use crate::{apps, repository};

/// Runs them in release with these arguments. They say themselves what they came to.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let asks_for_help = arguments.iter().any(|argument| argument == "--help");
    let mut arguments = arguments.to_vec();
    if let Some(at) = arguments.iter().position(|argument| argument == "--apps") {
        let installed = if asks_for_help {
            PathBuf::new()
        } else {
            apps::installed()?
        };
        arguments.insert(at + 1, installed.display().to_string());
    }
    let build = ["build", "--quiet", "--release", "--package", "gyrus"];
    if !asks_for_help && !repository::cargo(&build)?.status()?.success() {
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
