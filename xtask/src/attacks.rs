//! Runs the whole office under attack, and prints how much of the work is done and what gets through.

use anyhow::{bail, ensure};

use crate::{error::CannotStart, repository};

/// Has the whole suite run, of the tasks whose goal has these words.
const ONLY: &str = "GYRUS_OFFICE";

/// Runs all tasks, or those whose goal has these words. The test says itself what it found.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let only = match arguments {
        [] => "",
        [only] => only,
        [_, unknown, ..] => bail!(CannotStart(format!(
            "`{unknown}` is one argument too many: `attacks` takes words of a goal, in quotes"
        ))),
    };
    let test = [
        "test",
        "--quiet",
        "--package",
        "gyrus",
        "--test",
        "attacks",
        "--",
        "--nocapture",
        "attacks_reach_nothing_in_the_rest",
    ];
    let status = repository::cargo(&test)?.env(ONLY, only).status()?;
    ensure!(status.success(), "`attacks` ended with {status}");
    Ok(())
}
