//! Entries about a run as a whole: starting, stopping, continuing and ending.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use gyrus_contract::{
    BlobId, ChildModel, Claim, DEFAULT_AGENT, Digest, EffectId, FollowedSkill, Grant, Limits,
    MessageBody, Mode, ModelError, OnAsk, Part, Principal, RunId, RunWorktree, SandboxOptions,
    Spent, Strength, SurfaceMessage, Text, ToolMeaning, ToolSpec, is_default,
};
use gyrus_process::ProcessIdentity;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    MessagesAppended,
    call::{first, is_first},
    model::nothing_appended,
};
use crate::Inline;

/// The start of a run, with everything it was started with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    pub run: RunId,
    pub goal: Inline<Text>,
    /// The material that came with the goal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<Inline<Part>>,
    /// The previous run in its session, whose memory this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<RunId>,
    #[serde(default, skip_serializing_if = "nothing_appended")]
    pub memory: MessagesAppended,
    /// Whether the run knows untrusted text from the start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exposed: bool,
    /// The grants that the person gave earlier in the session, or those of the delegating run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<FollowedSkill>,
    /// The configuration of the run's screen, opaque here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<Value>,
    /// The texts that the person typed beside the goal, for this run or for its parents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted: Vec<String>,
    /// The name of the agent whose trust the run has.
    #[serde(default = "default_agent", skip_serializing_if = "is_default_agent")]
    pub agent: String,
    /// The priority of the command that asked for the run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i32,
    /// The additions of the person to the sandbox of its commands.
    #[serde(default, skip_serializing_if = "SandboxOptions::is_empty")]
    pub sandbox: SandboxOptions,
    /// The name of the run's loop.
    #[serde(rename = "loop")]
    pub cognitive_loop: String,
    /// The loop's configuration, opaque here.
    pub loop_config: Arc<Value>,
    /// The folder in which the run works.
    pub workspace: PathBuf,
    /// Whether the person named the workspace as one that may be lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub throwaway: bool,
    /// The settings until it is resumed with others.
    #[serde(flatten)]
    pub settings: RunSettings,
    /// The names of the run's tools.
    pub tools: Vec<String>,
    /// The tools of servers among these, as the servers described them at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<Inline<Vec<Arc<ToolSpec>>>>,
    /// The model as the person named it.
    pub model: String,
    /// The work tree that was made for the run and is removed with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<RunWorktree>,
    /// Whether there were hooks at the start, which are then asked about the start and the end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hooks: bool,
    /// The model of a child run with its own model.
    #[serde(flatten)]
    pub own_model: ChildModel,
    /// The run that delegated this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentRun>,
    /// The cycle of another run that this one continues from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkedFrom>,
    /// The meanings that a person had confirmed of tools of servers and of forms of pages, by name,
    /// if a mandate is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meanings: Option<Inline<BTreeMap<String, ToolMeaning>>>,
    /// The forms with a confirmed meaning, as tools whose arguments are the forms' fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forms: Option<Inline<Vec<ToolSpec>>>,
    /// The workspace at the start; `None` if it is in a [`WorkspaceRecorded`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
}

/// The workspace at the start was recorded. It comes before every effect of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceRecorded {
    pub snapshot: Snapshot,
}

/// Tools of servers joined the run at the start of a cycle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolsAdded {
    /// Effect 0 of the cycle.
    pub effect: EffectId,
    pub names: Vec<String>,
    /// The tools, as the servers described them at that time.
    pub tools: Inline<Vec<Arc<ToolSpec>>>,
}

fn default_agent() -> String {
    DEFAULT_AGENT.to_owned()
}

fn is_default_agent(agent: &str) -> bool {
    agent == DEFAULT_AGENT
}

impl RunStarted {
    /// Returns the workspace at the start, or the reason why it is not known.
    pub(crate) fn snapshot_or_why(&self) -> Snapshot {
        let why = "the run was cut off before the folder had been read";
        self.snapshot
            .clone()
            .unwrap_or_else(|| Snapshot::Missing(why.to_owned()))
    }

    /// Returns the number of messages that the run remembers before its first cycle, including
    /// dropped ones.
    pub(crate) fn memory_next(&self) -> u64 {
        self.memory.first + self.memory.items.len() as u64
    }
}

/// The content of a workspace at some moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Snapshot {
    /// Stored in this blob, as the `snapshot` module writes it.
    Blob(BlobId),
    /// Not stored, for this reason: a fork from here is only possible in place.
    Missing(String),
}

/// Hashes of code and configuration, by name (`gyrus`, `loop`, `prompts`, `tools`, …).
pub type CodePins = BTreeMap<String, String>;

/// The origin of a child run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParentRun {
    /// The delegating run.
    pub run: RunId,
    pub effect: EffectId,
    /// The depth, 1 for a child of a run that a person started.
    pub depth: u32,
}

/// The origin of a fork.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForkedFrom {
    pub run: RunId,
    /// The last cycle that both runs share.
    pub cycle: u32,
    /// The hash of that cycle's last entry.
    pub head: Digest,
}

/// The settings of a run until it is resumed with others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSettings {
    pub limits: Limits,
    /// The approval mode.
    pub mode: Mode,
    /// The way to proceed when a person must be asked.
    pub on_ask: OnAsk,
    /// Hashes of everything that decides how the run continues. Shared, because a process holds the
    /// same ones for every run.
    pub pins: Arc<CodePins>,
}

/// A process took the run up again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResumed {
    pub process: ProcessIdentity,
    /// The settings from here on.
    #[serde(flatten)]
    pub settings: RunSettings,
    /// Number of bytes of an unfinished write at the journal's end that were set aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside_bytes: Option<u64>,
}

/// The present code could not continue the unfinished cycle; a fresh one takes over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHandedOver {
    pub reason: String,
    /// The finished effects of which the fresh cycle is informed.
    pub done: Vec<EffectId>,
}

/// The ending of a run, or the reason why it stopped for now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub enum Ending {
    /// The model claims that the goal is reached.
    Reached {
        claim: Claim,
        /// The strength of the claim's support.
        #[serde(default, skip_serializing_if = "is_default")]
        strength: Strength,
    },
    /// The goal was not reached, or the loop cannot continue.
    Failed {
        /// The reason, for a person.
        reason: String,
        /// Calls that were denied because nobody could be asked.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        denied: Vec<String>,
    },
    /// A limit was reached.
    Limit {
        /// The limit and the amount used: `steps: 10 of 10`.
        what: String,
    },
    /// The run waits for a person's answer.
    Waiting {
        /// The child run that asks, if not this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<RunId>,
        /// The effect that asks.
        effect: EffectId,
        /// Number of times that the effect has asked.
        #[serde(default = "first", skip_serializing_if = "is_first")]
        asking: u32,
        /// The question in one sentence.
        question: String,
    },
    /// The run waits for a time or a signal.
    Sleeping {
        /// The effect that waits.
        effect: EffectId,
        /// The end of the wait, in UTC milliseconds.
        until_ms: Option<i64>,
        /// The name of the signal.
        signal: Option<String>,
    },
    /// The run repeats itself.
    Stuck {
        /// A description of the repetition.
        what: String,
    },
    /// The model could not be reached or refused the key.
    ModelUnreachable {
        /// The last error.
        error: ModelError,
    },
    /// A person stopped the run from another surface.
    Stopped {
        by: Principal,
        /// The reason that the person gave for stopping all runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person interrupted the run at the terminal.
    Interrupted,
}

impl Ending {
    /// Whether the run is over. Every other ending can be resumed.
    pub fn is_final(&self) -> bool {
        match self {
            Ending::Reached { .. } | Ending::Failed { .. } => true,
            Ending::Limit { .. }
            | Ending::Waiting { .. }
            | Ending::Sleeping { .. }
            | Ending::Stuck { .. }
            | Ending::ModelUnreachable { .. }
            | Ending::Stopped { .. }
            | Ending::Interrupted => false,
        }
    }
}

/// A person's message amended the goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoalAmendment {
    /// The effect at which the amendment was recorded; effect 0 of a cycle is its start.
    pub effect: EffectId,
    /// The messages, in the order they arrived.
    pub messages: Vec<SurfaceMessage>,
}

/// A limit is near.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetWarning {
    /// The limit and the amount used.
    pub what: String,
}

/// The run stops for now and can be resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunParked {
    #[serde(flatten)]
    pub ending: Ending,
    /// The resources used so far.
    pub spent: Spent,
}

/// The run is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEnded {
    #[serde(flatten)]
    pub ending: Ending,
    /// The resources used.
    pub spent: Spent,
}

/// Whether a message amends the goal; other messages act on the driver or answer an effect.
pub(crate) fn is_steering(body: &MessageBody) -> bool {
    matches!(body, MessageBody::Steer { .. })
}
