//! `gyrus deny`

use super::run_argument::RunArgument;
use crate::{Gyrus, exit::Code, failure::Failure};
use clap::Args;
use gyrus_contract::Answer;
use gyrus_kernel::QuestionId;

/// Say no to what a run asks
#[derive(Args)]
pub(crate) struct Deny {
    #[command(flatten)]
    run: RunArgument,
    /// The card, like 2.3
    card: Option<QuestionId>,
    /// Words for the model: why, or what to do instead
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Deny {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let answer = Answer::Deny {
            reason: self.reason,
        };
        super::approve::answer(gyrus, &self.run, self.card.as_ref(), |_| Ok(answer))
    }
}
