//! What stands between a run and the world.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ToolCall, ToolSpec};

/// How bad a call could be. Ordered: the higher wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Changes nothing.
    Safe,
    /// A plain, visible change, contained and undoable.
    Moderate,
    /// Asks, once a session for that scope. What is not understood is here.
    High,
    /// Always asks.
    Critical,
}

/// What happens with a call. Ordered: the stricter wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It goes ahead.
    Allow,
    /// A person is asked.
    Ask,
    /// It does not happen; the model is told why.
    Deny,
}

/// How much a run may do without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Only what changes nothing; the rest is denied.
    ReadOnly,
    /// Asks before every change.
    #[default]
    Ask,
    /// Changes files in the workspace without asking.
    Edits,
    /// Asks only for what is not contained, and for what is critical.
    Auto,
    /// As `ask`, but denies instead of asking.
    Never,
}

impl Mode {
    /// Every mode with the word for it on the command line and in a configuration.
    pub const ALL: [(Mode, &'static str); 5] = [
        (Mode::ReadOnly, "read-only"),
        (Mode::Ask, "ask"),
        (Mode::Edits, "edits"),
        (Mode::Auto, "auto"),
        (Mode::Never, "never"),
    ];
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, word) = Mode::ALL
            .into_iter()
            .find(|(mode, _)| mode == self)
            .expect("every mode is in Mode::ALL");
        f.write_str(word)
    }
}

/// Not a mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a mode; there are read-only, ask, edits, auto and never")]
pub struct ModeError {
    /// What was given.
    pub given: String,
}

impl FromStr for Mode {
    type Err = ModeError;
    /// Also understands the words of other tools for the same thing.
    fn from_str(s: &str) -> Result<Self, ModeError> {
        match s {
            "read-only" | "readonly" | "plan" => Ok(Mode::ReadOnly),
            "ask" | "default" | "manual" | "on-request" | "untrusted" => Ok(Mode::Ask),
            "edits" | "acceptEdits" | "workspace-write" => Ok(Mode::Edits),
            "auto" => Ok(Mode::Auto),
            "never" | "dontAsk" => Ok(Mode::Never),
            _ => Err(ModeError {
                given: s.chars().take(40).collect(),
            }),
        }
    }
}

/// A path argument, looked up.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResolvedPath {
    /// As the model wrote it.
    pub given: String,
    /// Absolute, without `.`, `..` or symbolic links in the part that exists.
    pub real: PathBuf,
    /// `real` below the workspace; `None` when it is outside.
    pub in_workspace: Option<PathBuf>,
}

/// A call with everything that its arguments point at looked up, so that what was judged is what
/// is executed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResolvedCall {
    /// The tool's name.
    pub tool: String,
    /// The checked arguments.
    pub arguments: Value,
    /// Path arguments by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paths: BTreeMap<String, ResolvedPath>,
}

/// Why a call could not even be judged. The words are for the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct Unresolvable {
    /// What is wrong with the call and what would be right.
    pub reason: String,
}

/// What a verdict depends on besides the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement {
    /// The mode that the person chose.
    pub mode: Mode,
    /// The run has read untrusted text.
    pub exposed: bool,
    /// The person named the workspace as one that may be lost.
    pub throwaway: bool,
}

/// What the gate says of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// How bad it could be.
    pub risk: Risk,
    /// What happens.
    pub decision: Decision,
    /// Why, in words for a person.
    pub reasons: Vec<String>,
}

/// Judges calls. `resolve` looks at the world and is recorded; `judge` is pure and total, so a
/// recorded call can be judged again under today's policy.
pub trait Gate: Send + Sync {
    /// Checks the arguments and looks up what they point at.
    fn resolve(
        &self,
        call: &ToolCall,
        spec: &ToolSpec,
        workspace: &Path,
    ) -> Result<ResolvedCall, Unresolvable>;

    /// The verdict on a resolved call.
    fn judge(&self, call: &ResolvedCall, spec: &ToolSpec, under: &Judgement) -> Verdict;
}
