//! Text and where it came from. What may instruct is decided by origin, never by wording.

use serde::{Deserialize, Serialize};

/// Who put words into the run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// A person typed it to this run: the goal, steering, an answer.
    Person,
    /// The user's own configuration.
    Configuration,
    /// gyrus itself: a nudge, a note about a limit.
    Kernel,
    /// A model wrote it.
    Model,
    /// A tool returned it.
    Tool {
        /// The tool's name.
        name: String,
    },
    /// It stood in a file.
    File {
        /// The path as it was asked for.
        path: String,
    },
    /// It was piped in.
    Stdin,
    /// Another run gave it: a delegated goal, or a child's answer.
    Run,
}

impl Origin {
    /// Whether a person who may decide stands behind the words. Everything else is data, and
    /// having read it makes a run exposed.
    pub fn is_trusted(&self) -> bool {
        match self {
            Origin::Person | Origin::Configuration | Origin::Kernel => true,
            Origin::Model
            | Origin::Tool { .. }
            | Origin::File { .. }
            | Origin::Stdin
            | Origin::Run => false,
        }
    }
}

/// Words with their origin. Secrets in it have already been replaced by markers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Text {
    /// The words.
    pub text: String,
    /// Who put them there.
    #[serde(flatten)]
    pub origin: Origin,
}

impl Text {
    /// `text` as said by `origin`.
    pub fn new(text: impl Into<String>, origin: Origin) -> Self {
        Self {
            text: text.into(),
            origin,
        }
    }
}
