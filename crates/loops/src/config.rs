//! The configuration of a loop.

use std::collections::{BTreeMap, BTreeSet};

use gyrus_contract::{AnswerSchema, Intent, Strength, ThinkingEffort, is_default};
use gyrus_procedures::{Procedure, SlotValues};
use serde::{Deserialize, Serialize};

use crate::{Check, Judge};

/// The strategy of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkingStrategy {
    /// Answers one question, without tools.
    SingleShot,
    /// Thinks and acts in turns.
    #[serde(rename = "react")]
    ReAct,
    /// Reasons in steps before the first action, then works as [`ReAct`](ThinkingStrategy::ReAct).
    ChainOfThought,
    /// Reads the screen and acts on it, without a conversation.
    Reactive,
    /// Makes a complete plan first, which a person may review, then executes the steps of the plan.
    Plan,
    /// Searches and plans, then works as [`ReAct`](ThinkingStrategy::ReAct) until a judge accepts.
    Engineer,
    /// Chooses files, then proposes a changeset; a person may review both. The changeset is then
    /// applied completely or not at all.
    Changeset,
    /// Replays a learned procedure, and goes on with a model where that is not possible.
    Procedure,
}

/// A procedure to replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replays {
    pub procedure: Procedure,
    pub values: SlotValues,
}

/// A decision for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Review {
    /// Approving each plan, before its first step.
    Plan,
    /// Approving the files with which a changeset is planned.
    Context,
    /// Approving the changeset.
    Proposal,
    /// Approving the mandate, before anything is read.
    Mandate,
}

/// The terms under which the model of a run may start sub-runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelegationConfig {
    /// Maximum number of sub-runs that work at the same time.
    pub at_once: usize,
    /// Maximum number of runs below the one that a person began.
    pub runs: u32,
    /// The number of levels of sub-runs below this run.
    pub depth: u32,
    /// The models that may be named for sub-runs, beside the run's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, SubRunRole>,
    /// Whether the call counts without being offered: nothing speaks for it, and it costs a tenth of
    /// what a request begins with.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unoffered: bool,
}

impl DelegationConfig {
    /// Returns the names of the models that sub-runs may ask beside the run's own.
    pub fn all_models(&self) -> impl Iterator<Item = &String> {
        let of_roles = self.roles.values().filter_map(|role| role.model.as_ref());
        self.models.iter().chain(of_roles)
    }
}

/// A kind of sub-run, described by a person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubRunRole {
    /// The description of the cases in which the role is of use.
    pub description: String,
    /// Instructions placed before the loop's own.
    pub instructions: String,
    /// The tools to which the role is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<ThinkingEffort>,
    /// Maximum number of steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
}

/// The form in which a screen is shown to a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PerceptionMode {
    /// The tree of elements, with a picture where the tree has little content.
    #[default]
    Auto,
    /// Only the element tree, without a picture.
    Tree,
    /// The picture, and the usable elements of the tree.
    Vision,
}

/// The configuration of a loop, as a builder:
///
/// ```
/// use gyrus_loops::CognitiveConfig;
///
/// let config = CognitiveConfig::react()
///     .with_system_prompt("You are a helpful assistant.")
///     .with_max_iterations(10)
///     .with_reflection()
///     .with_memory_window(50);
/// assert_eq!(config.max_iterations, Some(10));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CognitiveConfig {
    pub strategy: ThinkingStrategy,
    /// Instructions placed before the loop's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Maximum number of cycles. It becomes the run's limit on steps, which a person can raise when
    /// resuming.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
    /// Whether every cycle with a failure is reviewed, and the model asked for a lesson at the end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reflection: bool,
    /// Maximum number of messages in memory. By default there is no limit, and what does not fit
    /// the model's window is summarised.
    #[serde(default = "default_memory_window")]
    pub memory_window: usize,
    /// Maximum length of a reply in tokens; 8192 by default, 2048 on a screen.
    #[serde(default = "default_output_tokens")]
    pub max_output_tokens: u64,
    /// The form in which a screen is shown to the model.
    #[serde(default, skip_serializing_if = "is_default")]
    pub perception: PerceptionMode,
    /// The address at which a screen begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_url: Option<String>,
    /// Address of the page at the end of the previous run in the session. It is opened if the
    /// screen shows an empty page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_at: Option<String>,
    /// Checks that must pass when the model claims to have reached the goal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// The JSON schema of the answer, if it must be JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<AnswerSchema>,
    /// The strength of evidence that a claim needs to count as reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<Strength>,
    /// Whether a model that did not do the work compares the claim with the screen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub looks_again: bool,
    /// Whether the run begins with a summary of the earlier runs in its session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compacts_first: bool,
    /// A person's own summary of the earlier runs of the session, with which the run begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Decisions for a person, who may approve, edit or reject.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub reviews: BTreeSet<Review>,
    /// Whether a failed step leads to a new plan for the rest, instead of ending the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replanning: bool,
    /// The judge that decides in place of the model whether the goal is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<Judge>,
    /// The pattern of pictures that the model sees after each judgement by a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_images: Option<String>,
    /// The folder whose documents are searched before planning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs: Option<String>,
    /// A command that must succeed after a changeset was applied; otherwise the changeset is
    /// reverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<String>,
    /// The reason for this strategy, for people, where they did not choose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The classified size of the goal, if the run's loop was chosen by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<Intent>,
    /// The procedure to replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replays: Option<Box<Replays>>,
    /// The terms under which the model may start sub-runs; `None` means that it may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<Box<DelegationConfig>>,
}

/// Number of messages that means no limit.
const UNCOUNTED: usize = 1_000_000;

fn default_memory_window() -> usize {
    UNCOUNTED
}

pub(crate) const DEFAULT_OUTPUT_TOKENS: u64 = 8_192;

fn default_output_tokens() -> u64 {
    DEFAULT_OUTPUT_TOKENS
}

impl CognitiveConfig {
    /// Creates a configuration without any optional setting.
    pub(crate) fn plain(
        strategy: ThinkingStrategy,
        max_iterations: Option<u64>,
        max_output_tokens: u64,
    ) -> Self {
        Self {
            strategy,
            system_prompt: None,
            max_iterations,
            reflection: false,
            memory_window: default_memory_window(),
            max_output_tokens,
            perception: PerceptionMode::Auto,
            start_url: None,
            left_at: None,
            checks: Vec::new(),
            answer_schema: None,
            required: None,
            looks_again: false,
            compacts_first: false,
            summary: None,
            reviews: BTreeSet::new(),
            replanning: false,
            judge: None,
            judge_images: None,
            docs: None,
            verify: None,
            because: None,
            intent: None,
            replays: None,
            delegation: None,
        }
    }

    /// Sets instructions that are placed before the loop's own.
    #[must_use]
    pub fn with_system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.system_prompt = Some(prompt.into());
        self
    }

    /// Sets the maximum number of cycles. It becomes the run's limit on steps, which a person can
    /// raise when resuming.
    #[must_use]
    pub fn with_max_iterations(mut self, iterations: u64) -> Self {
        self.max_iterations = Some(iterations);
        self
    }

    /// Enables a review after every cycle with a failure, and a lesson for later runs at the end.
    #[must_use]
    pub fn with_reflection(mut self) -> Self {
        self.reflection = true;
        self
    }

    /// Sets the maximum number of messages in memory, at least 2. By default there is no limit:
    /// what does not fit the model's window is summarised.
    #[must_use]
    pub fn with_memory_window(mut self, messages: usize) -> Self {
        self.memory_window = messages.max(2);
        self
    }

    /// Sets the address at which a screen begins.
    #[must_use]
    pub fn with_start_url(mut self, url: impl Into<String>) -> Self {
        self.start_url = Some(url.into());
        self
    }

    /// Whether a person makes this decision.
    pub fn reviews(&self, what: Review) -> bool {
        self.reviews.contains(&what)
    }

    /// Whether claims are verified.
    pub fn verifies(&self) -> bool {
        self.looks_again
            || self.required.is_some()
            || self.answer_schema.is_some()
            || !self.checks.is_empty()
    }
}
