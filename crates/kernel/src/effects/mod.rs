//! The effects, one file each. Each first consumes its recorded entries and goes live only for what
//! is missing.

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

/// Creates the error for an effect whose recorded entries differ from what the loop does now.
fn diverges(effect: &EffectId, recorded: &Entry, now: impl Into<String>) -> Stop {
    Divergence {
        effect: effect.clone(),
        recorded: describe(recorded),
        now: now.into(),
    }
    .into()
}
