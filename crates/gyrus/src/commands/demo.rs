//! `gyrus demo`

use clap::Args;

use crate::{Gyrus, demo, exit::Code, failure::Failure};

/// See it work: a real task with a scripted model, a crash in the middle, and what comes of it
///
/// Needs no key and no network and asks nothing. It works in a folder of its own below the
/// system's folder for temporary files. It succeeds only if everything held.
#[derive(Args)]
pub(crate) struct Demo {
    /// Print what was found as JSON, one line a finding
    #[arg(long)]
    json: bool,
    /// Keep the folder, to look around in it
    #[arg(long)]
    keep: bool,
}

impl Demo {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        demo::play(gyrus, self.json, self.keep)
    }
}
