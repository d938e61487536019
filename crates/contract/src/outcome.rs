//! The certainty of outcomes: of one action, and of the whole goal.

use serde::{Deserialize, Serialize};

/// The outcome of an action on the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionVerdict {
    /// Something has changed.
    Changed,
    /// Nothing has changed.
    NoEffect,
    /// It is unknown whether something has changed.
    CannotTell,
    /// The action was not carried out.
    Refused,
}

/// The strength of the belief that a goal is reached. Ordered; it never rises without new evidence.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// The model gave an answer, and no goal is claimed to be reached.
    Answered,
    /// The model says that the goal is reached.
    #[default]
    Claimed,
    /// The task's own checks passed.
    Checked,
    /// An independent check agrees.
    Verified,
}

impl Strength {
    /// Returns the strength as one word, for input and output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Claimed => "claimed",
            Self::Checked => "checked",
            Self::Verified => "verified",
        }
    }
}

/// A verifiable fact that supports a claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Evidence {
    /// The fact that the evidence shows.
    pub what: String,
    /// The place of the evidence: a path in the workspace, an effect, a quotation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub at: String,
}

/// A model's statement that the run is done.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// Whether the goal was reached; `false` is an honest failure.
    pub reached: bool,
    /// The answer or summary for the person.
    pub answer: String,
    #[serde(default)]
    pub evidence: Vec<Evidence>,
    /// The calls that were denied, or that failed last, if the answer came as plain text: whoever
    /// reads it must not take it for a success.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortfalls: Vec<String>,
}
