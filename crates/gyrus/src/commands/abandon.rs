//! `gyrus abandon`

use clap::Args;
use gyrus::runtime::sandbox_folders;

use super::run_argument::RunArgument;
use crate::{Gyrus, drive, exit::Code, failure::Failure, inside_run, kernels};
use gyrus_surfaces::{console::put, terminal};

/// End a run for good that waits to be resumed
///
/// Nothing that it did is undone, and its journal stays.
#[derive(Args)]
pub(crate) struct Abandon {
    #[command(flatten)]
    run: RunArgument,
}

impl Abandon {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("give up a run")?;
        let home = gyrus.home()?;
        let store = home.store()?;
        let run = self.run.find(gyrus, &store)?;
        let person = terminal::person(gyrus.environment.user.as_deref(), "command line");
        let runtime = drive::runtime()?;
        let ended = runtime.block_on(async {
            kernels::settle(&home, &store, run).await?;
            Ok::<_, Failure>(gyrus_kernel::give_up(&store, run, &person).await?)
        })?;
        sandbox_folders::remove(&home, &ended);
        let name = run.short();
        put(&format!(
            "run {name} is over and cannot be resumed\n  what it changed: gyrus diff {name}; to take \
             it back: gyrus undo {name}\n"
        ))?;
        Ok(Code::Reached)
    }
}
