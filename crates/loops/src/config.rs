//! How a loop thinks, chosen by whoever starts a run.

use std::collections::BTreeSet;

use gyrus_contract::Strength;
use serde::{Deserialize, Serialize};

use crate::{Check, Judge};

/// The way to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// One question, no tools.
    SingleShot,
    /// Thinking and acting in turns.
    React,
    /// Thinking in steps before the first act, then as [`React`](Strategy::React).
    ChainOfThought,
    /// Looking and acting on a screen, without a conversation.
    Reactive,
    /// A whole plan first, which a person may read, then its steps.
    Plan,
    /// Searching and planning, then as [`React`](Strategy::React) until a judge accepts.
    Engineer,
    /// Files, then a changeset, which a person may both read; then all of it is applied, or
    /// nothing.
    Changeset,
}

/// What a person decides about before it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Review {
    /// Each plan, before its first step.
    Plan,
    /// The files that a changeset is planned with.
    Context,
    /// The changeset.
    Proposal,
}

/// How a screen is shown to a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PerceptionMode {
    /// The tree of elements, and the picture where the tree says little.
    #[default]
    Auto,
    /// The tree alone; no picture is taken.
    Tree,
    /// The picture, and of the tree what can be used.
    Vision,
}

impl Strategy {
    /// The loop's name, as `--loop` and the journal have it.
    pub fn loop_name(self) -> &'static str {
        match self {
            Strategy::SingleShot => "single-shot",
            Strategy::React => "react",
            Strategy::ChainOfThought => "chain-of-thought",
            Strategy::Reactive => "reactive",
            Strategy::Plan => "plan",
            Strategy::Engineer => "engineer",
            Strategy::Changeset => "changeset",
        }
    }
}

/// Configuration of a loop, as a builder:
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checks: Vec<Check>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    required: Option<Strength>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    looks_again: bool,
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
}

fn is_auto(mode: &PerceptionMode) -> bool {
    *mode == PerceptionMode::Auto
}

fn default_memory_window() -> usize {
    100
}

fn default_output_tokens() -> u64 {
    8_192
}

impl CognitiveConfig {
    fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            system_prompt: None,
            max_iterations: None,
            reflection: false,
            memory_window: default_memory_window(),
            max_output_tokens: default_output_tokens(),
            perception: PerceptionMode::Auto,
            start_url: None,
            checks: Vec::new(),
            required: None,
            looks_again: false,
            reviews: BTreeSet::new(),
            replanning: false,
            judge: None,
            judge_images: None,
            docs: None,
            verify: None,
            because: None,
        }
    }

    /// One question, no tools.
    pub fn single_shot() -> Self {
        Self::new(Strategy::SingleShot)
    }

    /// Thinking and acting in turns.
    pub fn react() -> Self {
        Self::new(Strategy::React)
    }

    /// Thinking in steps before acting.
    pub fn chain_of_thought() -> Self {
        Self::new(Strategy::ChainOfThought)
    }

    /// Looking and acting on a screen.
    pub fn reactive() -> Self {
        Self {
            max_output_tokens: 2_048,
            ..Self::new(Strategy::Reactive)
        }
    }

    /// A whole plan first, then its steps.
    pub fn plan() -> Self {
        Self::new(Strategy::Plan)
    }

    /// Searching and planning, then working until the judge accepts; 100 cycles, if nobody says
    /// otherwise.
    pub fn engineer(judge: Judge) -> Self {
        Self {
            judge: Some(judge),
            max_iterations: Some(100),
            ..Self::new(Strategy::Engineer)
        }
    }

    /// Files, then a changeset from them, applied all or not at all; 100 cycles and nobody who
    /// reviews, if nobody says otherwise.
    pub fn changeset() -> Self {
        Self {
            max_iterations: Some(100),
            ..Self::new(Strategy::Changeset)
        }
    }

    /// Instructions of your own, put before the loop's.
    #[must_use]
    pub fn with_system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.system_prompt = Some(prompt.into());
        self
    }

    /// At most so many cycles. It becomes the run's limit on steps, where a person can raise it
    /// when resuming.
    #[must_use]
    pub fn with_max_iterations(mut self, iterations: u64) -> Self {
        self.max_iterations = Some(iterations);
        self
    }

    /// Looks back after every cycle in which something failed, and before claiming success.
    #[must_use]
    pub fn with_reflection(mut self) -> Self {
        self.reflection = true;
        self
    }

    /// How many messages are remembered; 100 if not set.
    #[must_use]
    pub fn with_memory_window(mut self, messages: usize) -> Self {
        self.memory_window = messages.max(2);
        self
    }

    /// The most a reply may have, in tokens; 8192 if not set, 2048 on a screen.
    #[must_use]
    pub fn with_max_output_tokens(mut self, tokens: u64) -> Self {
        self.max_output_tokens = tokens;
        self
    }

    /// How a screen is shown; `Auto` if not set.
    #[must_use]
    pub fn with_perception(mut self, mode: PerceptionMode) -> Self {
        self.perception = mode;
        self
    }

    /// The address that a screen begins with.
    #[must_use]
    pub fn with_start_url(mut self, url: impl Into<String>) -> Self {
        self.start_url = Some(url.into());
        self
    }

    /// What must hold when the goal is said to be reached.
    #[must_use]
    pub fn with_checks(mut self, checks: impl IntoIterator<Item = Check>) -> Self {
        self.checks.extend(checks);
        self
    }

    /// How well a claim must be supported for the goal to count as reached.
    #[must_use]
    pub fn with_required(mut self, strength: Strength) -> Self {
        self.required = Some(strength);
        self
    }

    /// Has a model that did not do the work look whether the screen agrees.
    #[must_use]
    pub fn with_independent_look(mut self) -> Self {
        self.looks_again = true;
        self
    }

    /// Has a person approve, edit or reject these before they count.
    #[must_use]
    pub fn with_reviews(mut self, reviews: impl IntoIterator<Item = Review>) -> Self {
        self.reviews.extend(reviews);
        self
    }

    /// A command that must succeed once a changeset is in place; else all of it is taken back.
    #[must_use]
    pub fn with_verify(mut self, command: impl Into<String>) -> Self {
        self.verify = Some(command.into());
        self
    }

    /// Plans the rest anew when a step fails, instead of stopping.
    #[must_use]
    pub fn with_replanning(mut self) -> Self {
        self.replanning = true;
        self
    }

    /// Shows the model the pictures that match this pattern after each judging by a command.
    #[must_use]
    pub fn with_judge_images(mut self, pattern: impl Into<String>) -> Self {
        self.judge_images = Some(pattern.into());
        self
    }

    /// The folder whose documents are searched before planning.
    #[must_use]
    pub fn with_docs(mut self, folder: impl Into<String>) -> Self {
        self.docs = Some(folder.into());
        self
    }

    /// Why this way was chosen, where nobody named one: for people.
    #[must_use]
    pub fn with_reason(mut self, because: impl Into<String>) -> Self {
        self.because = Some(because.into());
        self
    }

    /// The way to think.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Own instructions, if there are any.
    pub fn system_prompt(&self) -> Option<&str> {
        self.system_prompt.as_deref()
    }

    /// The limit on cycles, if there is one.
    pub fn max_iterations(&self) -> Option<u64> {
        self.max_iterations
    }

    /// Whether it looks back.
    pub fn reflects(&self) -> bool {
        self.reflection
    }

    /// How many messages are remembered.
    pub fn memory_window(&self) -> usize {
        self.memory_window
    }

    /// The most a reply may have, in tokens.
    pub fn max_output_tokens(&self) -> u64 {
        self.max_output_tokens
    }

    /// How a screen is shown.
    pub fn perception(&self) -> PerceptionMode {
        self.perception
    }

    /// What must hold in the end.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// How well a claim must be supported, if somebody says so.
    pub fn required(&self) -> Option<Strength> {
        self.required
    }

    /// Whether an independent look is taken.
    pub fn looks_again(&self) -> bool {
        self.looks_again
    }

    /// Whether a person decides about this.
    pub fn reviews(&self, what: Review) -> bool {
        self.reviews.contains(&what)
    }

    /// The command that must succeed once a changeset is in place, if there is one.
    pub fn verify(&self) -> Option<&str> {
        self.verify.as_deref()
    }

    /// Whether the rest is planned anew when a step fails.
    pub fn replans(&self) -> bool {
        self.replanning
    }

    /// Who decides whether the goal is reached, in place of the model.
    pub fn judge(&self) -> Option<&Judge> {
        self.judge.as_ref()
    }

    /// The pictures that a command makes for its judgement, as a pattern.
    pub fn judge_images(&self) -> Option<&str> {
        self.judge_images.as_deref()
    }

    /// The folder with documents, if there is one.
    pub fn docs(&self) -> Option<&str> {
        self.docs.as_deref()
    }

    /// Why this way was chosen, if somebody chose it for the person.
    pub fn because(&self) -> Option<&str> {
        self.because.as_deref()
    }

    /// Whether claims are looked into at all.
    pub fn verifies(&self) -> bool {
        self.looks_again || self.required.is_some() || !self.checks.is_empty()
    }

    /// The address that a screen begins with, if there is one.
    pub fn start_url(&self) -> Option<&str> {
        self.start_url.as_deref()
    }
}
