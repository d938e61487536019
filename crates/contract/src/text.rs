//! Text and where it came from. What may instruct is decided by origin, never by wording.

use serde::{Deserialize, Serialize};

/// The source of a text in the run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// A person who typed the text to this run: the goal, steering, an answer.
    Person,
    /// The user's own configuration.
    Configuration,
    /// gyrus itself: a nudge, a note about a limit.
    Kernel,
    Model,
    /// A tool that returned the text.
    Tool {
        /// The tool's name.
        name: String,
    },
    File {
        /// The path, as requested.
        path: String,
    },
    /// Guidelines for agents in a folder, such as `AGENTS.md`.
    Guidelines {
        /// The path of the file, from the folder that the run works in.
        path: String,
        /// Whether a person trusts exactly this content: then it may instruct.
        trusted: bool,
    },
    /// A skill of the person, or one that they trust, which says how a kind of task is done.
    Skill {
        /// The name of the skill.
        name: String,
        /// The reason why the skill was loaded.
        why: String,
    },
    /// The person's memory: parts of notes that are not marked as untrusted.
    Memory {
        /// Number of notes with these parts.
        notes: u32,
        /// Extent of the selected parts.
        extent: MemoryExtent,
    },
    /// Standard input.
    Stdin,
    /// Another run, by a delegated goal or a child's answer.
    Run,
    /// An event of the event bus, from any publisher.
    Event {
        /// The topic of the event.
        topic: String,
    },
    /// Lessons of earlier runs, in the words of a model. They never instruct.
    Lessons {
        numbers: Vec<u64>,
        /// Whether any of those runs had read untrusted text.
        exposed: bool,
    },
}

impl Origin {
    /// Whether the text comes from a source that may instruct. All other text is data.
    pub fn is_trusted(&self) -> bool {
        match self {
            Origin::Person | Origin::Configuration | Origin::Kernel | Origin::Skill { .. } => true,
            Origin::Guidelines { trusted, .. } => *trusted,
            Origin::Model
            | Origin::Tool { .. }
            | Origin::File { .. }
            | Origin::Memory { .. }
            | Origin::Stdin
            | Origin::Run
            | Origin::Event { .. }
            | Origin::Lessons { .. } => false,
        }
    }

    /// Whether reading the text exposes the run to untrusted content.
    pub fn exposes(&self) -> bool {
        match self {
            Origin::Lessons { exposed, .. } => *exposed,
            Origin::Memory { .. } => false,
            other => !other.is_trusted(),
        }
    }
}

/// Extent of the part of the memory for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryExtent {
    /// All parts about the goal, within the budget.
    Whole,
    /// The parts in a few lines, for loops that ask about each of their steps afresh.
    Digest,
}

/// A text with its origin. Secrets in it have already been replaced by markers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Text {
    pub text: String,
    /// The source of the words.
    #[serde(flatten)]
    pub origin: Origin,
}

impl Text {
    /// Creates a text with its origin.
    pub fn new(text: impl Into<String>, origin: Origin) -> Self {
        Self {
            text: text.into(),
            origin,
        }
    }
}
