//! How sure anybody can be: of one action, and of the whole goal.

use serde::{Deserialize, Serialize};

/// What an action on the world did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionVerdict {
    /// Something is different now.
    Changed,
    /// Nothing is different.
    NoEffect,
    /// It may or may not have done something.
    CannotTell,
    /// It was not done.
    Refused,
}

/// How strongly a goal is believed to be reached. Ordered; nothing is upgraded for free.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// The model says so.
    #[default]
    Claimed,
    /// The task's own checks passed.
    Checked,
    /// An independent look agrees.
    Verified,
}

impl Strength {
    /// In one word, as it is typed and shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Checked => "checked",
            Self::Verified => "verified",
        }
    }
}

/// Something that can be looked up and supports a claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Evidence {
    /// What it shows.
    pub what: String,
    /// Where to look: a path in the workspace, an effect, a quotation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub at: String,
}

/// A model's statement that it is done.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// The goal was reached; `false` is an honest failure.
    pub reached: bool,
    /// The answer or summary for the person.
    pub answer: String,
    /// What supports it.
    #[serde(default)]
    pub evidence: Vec<Evidence>,
}
