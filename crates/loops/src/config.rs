//! The configuration of a loop.

use std::collections::BTreeSet;

use gyrus_contract::{AnswerSchema, Intent, Strength};
use gyrus_procedures::{Procedure, SlotValues};
use serde::{Deserialize, Serialize};

use crate::{Check, Judge};

/// The strategy of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Answers one question, without tools.
    SingleShot,
    /// Thinks and acts in turns.
    React,
    /// Reasons in steps before the first action, then works as [`React`](Strategy::React).
    ChainOfThought,
    /// Looks and acts on a screen, without a conversation.
    Reactive,
    /// Makes a complete plan first, which a person may review, then executes its steps.
    Plan,
    /// Searches and plans, then works as [`React`](Strategy::React) until a judge accepts.
    Engineer,
    /// Chooses files, then proposes a changeset, both of which a person may review; then applies
    /// all of it or nothing.
    Changeset,
    /// Replays a learned procedure, and goes on with a model where that is not possible.
    Procedure,
}

/// A procedure to replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replays {
    /// The procedure.
    pub procedure: Procedure,
    /// The values of its slots.
    pub values: SlotValues,
}

/// A decision that is left to a person.
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

/// The form in which a screen is shown to a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PerceptionMode {
    /// The tree of elements, and the picture where the tree says little.
    #[default]
    Auto,
    /// Only the tree; no picture is taken.
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
/// assert_eq!(config.max_iterations(), Some(10));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CognitiveConfig {
    strategy: Strategy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system_prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_iterations: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    reflection: bool,
    #[serde(default = "default_memory_window")]
    memory_window: usize,
    #[serde(default = "default_output_tokens")]
    max_output_tokens: u64,
    #[serde(default, skip_serializing_if = "is_auto")]
    perception: PerceptionMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left_at: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checks: Vec<Check>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer_schema: Option<AnswerSchema>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    required: Option<Strength>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    looks_again: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    compacts_first: bool,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    reviews: BTreeSet<Review>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    replanning: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judge: Option<Judge>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judge_images: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    docs: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verify: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    because: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    intent: Option<Intent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replays: Option<Box<Replays>>,
}

fn is_auto(mode: &PerceptionMode) -> bool {
    *mode == PerceptionMode::Auto
}

/// The number of messages that stands for no limit of their number.
const UNCOUNTED: usize = 1_000_000;

fn default_memory_window() -> usize {
    UNCOUNTED
}

/// The maximum length of a reply in tokens, where a loop does not say another.
pub(crate) const DEFAULT_OUTPUT_TOKENS: u64 = 8_192;

fn default_output_tokens() -> u64 {
    DEFAULT_OUTPUT_TOKENS
}

impl CognitiveConfig {
    /// Creates a configuration without anything that a person can ask for.
    pub(crate) fn plain(
        strategy: Strategy,
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
            reviews: BTreeSet::new(),
            replanning: false,
            judge: None,
            judge_images: None,
            docs: None,
            verify: None,
            because: None,
            intent: None,
            replays: None,
        }
    }

    /// Sets the procedure that is replayed.
    #[must_use]
    pub(crate) fn with_replays(mut self, procedure: Procedure, values: SlotValues) -> Self {
        self.replays = Some(Box::new(Replays { procedure, values }));
        self
    }

    /// Sets instructions that stand before the loop's own.
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

    /// Enables a review after every cycle in which something failed, and a lesson for later runs at
    /// the end.
    #[must_use]
    pub fn with_reflection(mut self) -> Self {
        self.reflection = true;
        self
    }

    /// Sets the number of messages that are remembered, at least 2. By default their
    /// number is not limited: what does not fit the model's window is summarised.
    #[must_use]
    pub fn with_memory_window(mut self, messages: usize) -> Self {
        self.memory_window = messages.max(2);
        self
    }

    /// Sets the maximum length of a reply in tokens; 8192 by default, 2048 on a screen.
    #[must_use]
    pub fn with_max_output_tokens(mut self, tokens: u64) -> Self {
        self.max_output_tokens = tokens;
        self
    }

    /// Sets the form in which a screen is shown; `Auto` by default.
    #[must_use]
    pub fn with_perception(mut self, mode: PerceptionMode) -> Self {
        self.perception = mode;
        self
    }

    /// Sets the address that a screen begins with.
    #[must_use]
    pub fn with_start_url(mut self, url: impl Into<String>) -> Self {
        self.start_url = Some(url.into());
        self
    }

    /// Sets the address at which the run before it in its session left the screen. It is opened if the
    /// screen shows an empty page.
    #[must_use]
    pub fn with_left_at(mut self, url: impl Into<String>) -> Self {
        self.left_at = Some(url.into());
        self
    }

    /// Adds checks that must pass when the goal is claimed to be reached.
    #[must_use]
    pub fn with_checks(mut self, checks: impl IntoIterator<Item = Check>) -> Self {
        self.checks.extend(checks);
        self
    }

    /// Has the answer be JSON that fits this schema.
    #[must_use]
    pub fn with_answer_schema(mut self, schema: AnswerSchema) -> Self {
        self.answer_schema = Some(schema);
        self
    }

    /// Sets the strength that a claim needs for the goal to count as reached.
    #[must_use]
    pub fn with_required(mut self, strength: Strength) -> Self {
        self.required = Some(strength);
        self
    }

    /// Lets the run begin with a summary of what the runs before it in its session said.
    #[must_use]
    pub fn with_summary_first(mut self) -> Self {
        self.compacts_first = true;
        self
    }

    /// Enables an independent look: a model that did not do the work compares the claim with the
    /// screen.
    #[must_use]
    pub fn with_independent_look(mut self) -> Self {
        self.looks_again = true;
        self
    }

    /// Adds decisions that are left to a person, who may approve, edit or reject.
    #[must_use]
    pub fn with_reviews(mut self, reviews: impl IntoIterator<Item = Review>) -> Self {
        self.reviews.extend(reviews);
        self
    }

    /// Sets a command that must succeed after a changeset was applied; otherwise all of it is
    /// reverted.
    #[must_use]
    pub fn with_verify(mut self, command: impl Into<String>) -> Self {
        self.verify = Some(command.into());
        self
    }

    /// Enables making a new plan for the rest when a step fails, instead of stopping.
    #[must_use]
    pub fn with_replanning(mut self) -> Self {
        self.replanning = true;
        self
    }

    /// Sets the judge that decides in place of the model whether the goal is reached.
    #[must_use]
    pub fn with_judge(mut self, judge: Judge) -> Self {
        self.judge = Some(judge);
        self
    }

    /// Sets the pattern of pictures that are shown to the model after each judgement by a command.
    #[must_use]
    pub fn with_judge_images(mut self, pattern: impl Into<String>) -> Self {
        self.judge_images = Some(pattern.into());
        self
    }

    /// Sets the folder whose documents are searched before planning.
    #[must_use]
    pub fn with_docs(mut self, folder: impl Into<String>) -> Self {
        self.docs = Some(folder.into());
        self
    }

    /// Sets the reason for this strategy, for people, where they did not choose it.
    #[must_use]
    pub fn with_reason(mut self, because: impl Into<String>) -> Self {
        self.because = Some(because.into());
        self
    }

    /// Sets the size of the goal, where a run's loop was chosen by it.
    #[must_use]
    pub fn with_intent(mut self, intent: Intent) -> Self {
        self.intent = Some(intent);
        self
    }

    /// Returns the strategy.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Returns the procedure that is replayed, if there is one.
    pub fn replays(&self) -> Option<&Replays> {
        self.replays.as_deref()
    }

    /// Returns the person's own instructions, if there are any.
    pub fn system_prompt(&self) -> Option<&str> {
        self.system_prompt.as_deref()
    }

    /// Returns the maximum number of cycles, if there is one.
    pub fn max_iterations(&self) -> Option<u64> {
        self.max_iterations
    }

    /// Whether the loop reviews its work.
    pub fn reflects(&self) -> bool {
        self.reflection
    }

    /// Returns the number of messages that are remembered.
    pub fn memory_window(&self) -> usize {
        self.memory_window
    }

    /// Returns the maximum length of a reply in tokens.
    pub fn max_output_tokens(&self) -> u64 {
        self.max_output_tokens
    }

    /// Returns the form in which a screen is shown.
    pub fn perception(&self) -> PerceptionMode {
        self.perception
    }

    /// Returns the checks that must pass in the end.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// Returns the schema of the answer, if it has one.
    pub fn answer_schema(&self) -> Option<&AnswerSchema> {
        self.answer_schema.as_ref()
    }

    /// Returns the strength that a claim needs, if it is set.
    pub fn required(&self) -> Option<Strength> {
        self.required
    }

    /// Whether the memory that the run inherits is summarised first.
    pub fn compacts_first(&self) -> bool {
        self.compacts_first
    }

    /// Whether an independent look is taken.
    pub fn looks_again(&self) -> bool {
        self.looks_again
    }

    /// Whether this decision is left to a person.
    pub fn reviews(&self, what: Review) -> bool {
        self.reviews.contains(&what)
    }

    /// Returns the command that must succeed after a changeset was applied, if there is one.
    pub fn verify(&self) -> Option<&str> {
        self.verify.as_deref()
    }

    /// Whether a new plan is made for the rest when a step fails.
    pub fn replans(&self) -> bool {
        self.replanning
    }

    /// Returns the judge that decides in place of the model whether the goal is reached.
    pub fn judge(&self) -> Option<&Judge> {
        self.judge.as_ref()
    }

    /// Returns the pattern of the pictures that a command makes for its judgement.
    pub fn judge_images(&self) -> Option<&str> {
        self.judge_images.as_deref()
    }

    /// Returns the folder with documents, if there is one.
    pub fn docs(&self) -> Option<&str> {
        self.docs.as_deref()
    }

    /// Returns the reason for this strategy, if the person did not choose it.
    pub fn because(&self) -> Option<&str> {
        self.because.as_deref()
    }

    /// Returns the size of the goal, if the loop was chosen by it.
    pub fn intent(&self) -> Option<Intent> {
        self.intent
    }

    /// Whether claims are verified.
    pub fn verifies(&self) -> bool {
        self.looks_again
            || self.required.is_some()
            || self.answer_schema.is_some()
            || !self.checks.is_empty()
    }

    /// Returns the address that a screen begins with, if there is one.
    pub fn start_url(&self) -> Option<&str> {
        self.start_url.as_deref()
    }

    /// Returns the address at which the run before it left the screen, if there is one.
    pub fn left_at(&self) -> Option<&str> {
        self.left_at.as_deref()
    }
}
