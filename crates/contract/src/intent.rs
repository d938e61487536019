//! The size of a goal.

use serde::{Deserialize, Serialize};

/// The size of a goal. A run's loop, the strength of its models and its limits follow from it where
/// a person names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Intent {
    /// One question or one action.
    Simple,
    /// Several actions, each known from the one before.
    MultiStep,
    /// Work over many files or parts, or that has to be thought out first.
    Complex,
}

impl Intent {
    /// Returns its name.
    pub fn word(self) -> &'static str {
        match self {
            Intent::Simple => "simple",
            Intent::MultiStep => "multi-step",
            Intent::Complex => "complex",
        }
    }
}
