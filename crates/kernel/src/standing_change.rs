//! Changes of a run's standing: what an entry means to whoever follows a run to know whether it works,
//! asks, waits or is over, and nothing else of it.

use gyrus_contract::{EffectId, RunId};

use crate::{
    Ending, Entry, RunStarted, ToolResulted,
    approvals::{OpenQuestion, voids},
};

/// A change of the standing of a run.
#[derive(Debug, Clone)]
pub enum StandingChange {
    /// The run began.
    Began(Box<RunStarted>),
    /// It asks a question, in place of an earlier one about the same effect.
    Asked(Box<OpenQuestion>),
    /// Its question about this effect was answered.
    Answered(EffectId),
    /// A call ended, and with it the questions about it.
    CallEnded(Box<ToolResulted>),
    /// A child run began.
    ChildBegan(RunId),
    /// A child run ended.
    ChildEnded(RunId),
    /// No process drives it any further until it is resumed.
    Parked(Ending),
    /// A process goes on with it.
    Resumed,
    /// It is over.
    Ended(Ending),
}

impl StandingChange {
    /// Returns the change that an entry in the journal of `run` makes; `None` if it makes none, as most
    /// do.
    pub fn of(run: RunId, entry: &Entry) -> Option<Self> {
        Some(match entry {
            Entry::RunStarted(started) => Self::Began(Box::new(started.clone())),
            Entry::ApprovalAsked(asked) => {
                Self::Asked(Box::new(OpenQuestion::new(run, asked.clone())))
            }
            Entry::ApprovalAnswered(answered) => Self::Answered(answered.effect.clone()),
            Entry::ToolResulted(ended) => Self::CallEnded(Box::new(ended.clone())),
            Entry::ChildStarted(child) => Self::ChildBegan(child.child),
            Entry::ChildEnded(child) => Self::ChildEnded(child.child),
            Entry::RunParked(parked) => Self::Parked(parked.ending.clone()),
            Entry::RunResumed(_) => Self::Resumed,
            Entry::RunEnded(ended) => Self::Ended(ended.ending.clone()),
            _ => return None,
        })
    }

    /// Whether a question of the same run is open no more after the change.
    pub fn settles(&self, question: &OpenQuestion) -> bool {
        let asked = &question.id.effect;
        match self {
            Self::Answered(effect) => effect == asked,
            Self::CallEnded(ended) => voids(ended, asked),
            Self::Asked(next) => next.id.effect == *asked && next.digest != question.digest,
            Self::Parked(_) | Self::Ended(_) => true,
            Self::Began(_) | Self::ChildBegan(_) | Self::ChildEnded(_) | Self::Resumed => false,
        }
    }
}
