//! `gyrus acp`

use std::sync::Arc;

use clap::Args;
use gyrus_runtime::request::RunFlags;
use gyrus_surfaces::output;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    Gyrus, drive, editor::Editor, exit::Code, failure::Failure, flags, inside_run, learning,
};

/// Serve an editor: sessions, prompts and approvals over standard input and output
///
/// An editor that speaks the Agent Client Protocol starts it. The flags are the settings that its
/// sessions begin with; each session works in the folder that the editor names. When the input ends,
/// whatever is at work parks, and goes on when its session is loaded again, or with `gyrus resume`.
#[derive(Args)]
pub(crate) struct Acp {
    #[command(flatten)]
    flags: RunFlags,
}

impl Acp {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("serve an editor")?;
        if self.flags.workdir.is_some() {
            return Err(
                Failure::usage("the editor names the folder of each session")
                    .hint("leave --workdir out"),
            );
        }
        flags::settle(&self.flags)?;
        let (home, config) = (gyrus.home()?, gyrus.config()?);
        learning::catch_up(&home, &config)?;
        let editor = Arc::new(Editor::new(gyrus, self.flags)?);
        let ends = output::take_both().map_err(|error| {
            Failure::failed("standard input and output cannot be used").because(&error)
        })?;
        let served = drive::wait_for(async {
            let (mut interrupt, mut terminate) = (
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
            );
            let stop = async move {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            };
            gyrus_acp::serve(editor, ends, stop).await
        })?;
        served.map_err(|error| Failure::failed("the editor cannot be served").because(&error))?;
        Ok(Code::Reached)
    }
}
