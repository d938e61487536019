//! `gyrus demo`

use clap::Args;
use gyrus_lab::{
    Installation, LabConsole, LabError,
    demo::{self, DemoOptions},
};

use crate::{Gyrus, drive, exit::Code, failure::Failure, lab::DemoInstallation};

/// See it work: a real task with a scripted model, a crash in the middle, and what comes of it
///
/// Needs no key and no network. It orders something in a shop that it serves itself, in a real
/// browser; the page tries to mislead it, and its process is killed in the middle. Without a
/// browser, it works on files in a folder instead. It succeeds only if everything held.
#[derive(Args)]
pub(crate) struct DemoCommand {
    #[command(flatten)]
    options: DemoOptions,
}

impl DemoCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let runtime = drive::runtime()?;
        let played = demo::play(
            &self.options,
            &LabConsole::new(gyrus.environment.plain),
            &runtime,
            &|folder| {
                let installed = DemoInstallation::at(gyrus, folder).map_err(LabError::from)?;
                Ok(Box::new(installed) as Box<dyn Installation>)
            },
        );
        runtime.shutdown_background();
        Ok(played?.into())
    }
}
