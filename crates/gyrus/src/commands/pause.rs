//! `gyrus pause`

use clap::Args;
use gyrus_contract::MessageBody;

use super::run_argument::RunArgument;
use crate::{Gyrus, exit::Code, failure::Failure};

/// Let a run finish what is in progress, then park it
///
/// It returns at once, and says whether something is in progress. Saying it again cuts that off, as
/// `gyrus stop` does.
#[derive(Args)]
pub(crate) struct Pause {
    #[command(flatten)]
    run: RunArgument,
}

impl Pause {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        super::stop::order(gyrus, &self.run, MessageBody::Pause)
    }
}
