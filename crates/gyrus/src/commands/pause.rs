//! `gyrus pause`

use clap::Args;
use gyrus_contract::MessageBody;

use crate::{Gyrus, exit::Code, failure::Failure};

/// Let a run finish what is in progress, then park it
#[derive(Args)]
pub(crate) struct Pause {
    /// The run: `last`, its id, or the start or end of it
    run: String,
}

impl Pause {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        super::stop::order(gyrus, &self.run, MessageBody::Pause)
    }
}
