//! The size of a goal.

use serde::{Deserialize, Serialize};

/// The size of a goal. A run's loop, the strength of its models and its limits follow from it where
/// a person names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Intent {
    /// One question or one action.
    Simple,
    /// Several actions, each of which follows from the one before.
    MultiStep,
    /// Work on many files or parts, or work that needs a plan first.
    Complex,
}

impl Intent {
    /// Returns the name of the size.
    pub fn word(self) -> &'static str {
        match self {
            Intent::Simple => "simple",
            Intent::MultiStep => "multi-step",
            Intent::Complex => "complex",
        }
    }
}
