//! Runs that something may be learned from, and the reasons why nothing was.

use gyrus_contract::{Form, Observation, ToolCall, View};
use serde::{Deserialize, Serialize};

use crate::{LearnedPlace, ProcedureStep, Slot, SlotTemplate};

/// A finished run, as far as learning needs it. Its goal must be a person's own words.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordedRun {
    /// The goal, as the person typed it.
    pub command: String,
    pub place: LearnedPlace,
    /// The calls in order, including those that changed nothing.
    pub steps: Vec<RecordedStep>,
    /// The last view, if the run had a screen.
    pub end: Option<View>,
    /// The checks that the run passed.
    pub checks: Vec<String>,
    pub answer: String,
}

/// A call of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordedStep {
    /// The last view before the call, if the run had a screen.
    pub view: Option<View>,
    pub call: ToolCall,
    pub observation: Observation,
    /// Whether the gate found that the call binds somebody: it submits, sends, pays or deletes.
    pub commits: bool,
    /// The form that the call sent, measured just before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// The time from the end of the call before it to this view, in milliseconds, without the time
    /// of models and people.
    pub waited_ms: u64,
}

/// The reason why nothing was learned from a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotLearned {
    /// A value used in the run is neither in the command nor always on the page.
    #[error("the value `{value}` does not come from the command")]
    Derived { value: String },
    /// A part of the run cannot be repeated.
    #[error("{reason}")]
    Unrepeatable { reason: String },
}

impl NotLearned {
    pub(crate) fn because(reason: impl Into<String>) -> Self {
        Self::Unrepeatable {
            reason: reason.into(),
        }
    }

    pub(crate) fn derived(value: &str) -> Self {
        Self::Derived {
            value: gyrus_text::shorten(value, 80).into_owned(),
        }
    }
}

/// The result of learning, before the procedure has a name.
pub(crate) struct UnnamedProcedure {
    pub(crate) command: SlotTemplate,
    pub(crate) slots: Vec<Slot>,
    pub(crate) steps: Vec<ProcedureStep>,
}
