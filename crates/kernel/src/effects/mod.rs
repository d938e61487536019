//! One file an effect. Each first consumes what the journal holds of it and goes live only for
//! what is missing.

pub(crate) mod approval;
pub(crate) mod ask;
mod assess;
pub(crate) mod branches;
pub(crate) mod call;
pub(crate) mod changes;
pub(crate) mod delegate;
pub(crate) mod destinations;
pub(crate) mod execute;
pub(crate) mod foresee;
pub(crate) mod layers;
pub(crate) mod look;
pub(crate) mod used;
mod request;
pub(crate) mod repositories;
pub(crate) mod value;
pub(crate) mod wait;
pub(crate) mod withheld;

use gyrus_contract::EffectId;

use crate::{Divergence, Entry, Stop, recorded::describe};

/// The journal holds something else at this effect than what the loop does now.
fn diverges(effect: &EffectId, recorded: &Entry, now: impl Into<String>) -> Stop {
    Divergence {
        effect: effect.clone(),
        recorded: describe(recorded),
        now: now.into(),
    }
    .into()
}
