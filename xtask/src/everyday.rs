//! Tries the corpus of everyday commands, plainly and by gyrus, and prints what came of them.

use anyhow::{bail, ensure};

use crate::{error::CannotStart, repository};

/// Names the lines to try: a section, line numbers with commas, or words.
const ONLY: &str = "GYRUS_EVERYDAY";

/// Tries all lines, or those that the argument names. The test says itself what it found.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let only = match arguments {
        [] => "",
        [only] => only,
        [_, unknown, ..] => bail!(CannotStart(format!(
            "`{unknown}` is one argument too many: `everyday` takes a section, line numbers like \
             3,7, or words in quotes"
        ))),
    };
    let test = [
        "test",
        "--quiet",
        "--package",
        "gyrus",
        "--test",
        "everyday",
        "--",
        "--nocapture",
    ];
    let status = repository::cargo(&test)?.env(ONLY, only).status()?;
    ensure!(status.success(), "`everyday` ended with {status}");
    Ok(())
}
