//! `gyrus deny`

use clap::Args;
use gyrus_contract::EffectId;

use crate::{Gyrus, approvals::Answer, exit::Code, failure::Failure};

/// Say no to what a run asks
#[derive(Args)]
pub(crate) struct Deny {
    /// The run: `last`, its id, or the start or end of it
    run: String,
    /// The effect that asks, like 2.3
    effect: Option<EffectId>,
    /// Words for the model: why, or what to do instead
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Deny {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let answer = Answer::No {
            reason: self.reason,
        };
        super::approve::answer(gyrus, &self.run, self.effect.as_ref(), answer)
    }
}
