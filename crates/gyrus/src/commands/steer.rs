//! `gyrus steer`

use clap::Args;
use gyrus_contract::MessageBody;
use gyrus_kernel::{approvals, log_name};

use super::run_argument::RunArgument;
use crate::{Gyrus, exit::Code, failure::Failure, inside_run};
use gyrus_surfaces::{console::put, terminal};

/// Add something to a run's goal
///
/// The words reach the model before its next step and hold for the rest of the run.
#[derive(Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct SteerCommand {
    #[command(flatten)]
    run: RunArgument,
    /// Text to add
    text: String,
}

impl SteerCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("steer a run")?;
        if self.text.trim().is_empty() {
            return Err(Failure::usage("there is nothing to add").hint("say what is to change"));
        }
        let store = gyrus.store()?;
        let run = self.run.find_own(gyrus, &store)?;
        let person = terminal::person(gyrus.environment.user.as_deref(), "command line");
        approvals::send(&store, run, person, MessageBody::steer(self.text))?;
        let name = run.short();
        let when = match store.holder(&log_name(run))? {
            Some(_) => "the run reads this before the next step".to_owned(),
            None if gyrus.is_of_a_fleet() => "the run reads this before its next step".to_owned(),
            None => format!("the run reads this when it is resumed: gyrus resume {name}"),
        };
        put(&format!("run {name} was told; {when}\n"))?;
        Ok(Code::Reached)
    }
}
