//! Models: the prompt, the reply, and the choice of a model for each question.

use std::{collections::BTreeSet, str::FromStr, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BoxedFuture, Image, Message, Part, Price, Simplification, ToolCall, ToolSpec};

/// The purpose of a question to a model. A router chooses by it, and a script keys its replies by
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The agent's own next step.
    Agent,
    /// A plan before acting.
    Plan,
    /// A review of the work.
    Reflect,
    /// The verification that the goal was reached.
    Verify,
    /// The assessment of a call's risk.
    Safety,
    /// A summary of a text.
    Summarise,
    /// The calls that the goal needs, stated before anything was read.
    Mandate,
    /// A server's prompt, which is not part of the run's own thinking.
    Sampling,
}

impl Purpose {
    /// All purposes.
    pub const ALL: [Self; 8] = [
        Self::Agent,
        Self::Plan,
        Self::Reflect,
        Self::Verify,
        Self::Safety,
        Self::Summarise,
        Self::Mandate,
        Self::Sampling,
    ];

    /// Whether the reply should be text without calls, though the prompt may contain tools for the
    /// sake of the cache.
    pub fn wants_words(self) -> bool {
        matches!(self, Purpose::Reflect | Purpose::Summarise)
    }

    /// Returns the word of the purpose, as in journals and scripts.
    pub fn word(self) -> &'static str {
        match self {
            Purpose::Agent => "agent",
            Purpose::Plan => "plan",
            Purpose::Reflect => "reflect",
            Purpose::Verify => "verify",
            Purpose::Safety => "safety",
            Purpose::Summarise => "summarise",
            Purpose::Mandate => "mandate",
            Purpose::Sampling => "sampling",
        }
    }
}

/// The effort of a model in thinking before it replies. Providers have names or numbers of their
/// own for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingEffort {
    /// No thinking, if the model allows that.
    None,
    /// Little thinking.
    Low,
    /// A medium amount of thinking.
    Medium,
    /// Much thinking.
    High,
    /// The maximum amount of thinking.
    Max,
}

impl ThinkingEffort {
    /// All efforts, least first.
    pub const ALL: [Self; 5] = [Self::None, Self::Low, Self::Medium, Self::High, Self::Max];

    /// Returns the word of the effort, as a person writes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
        }
    }
}

impl FromStr for ThinkingEffort {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|effort| effort.word() == word)
            .ok_or("write none, low, medium, high or max")
    }
}

/// A part of the system prompt.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SystemPart {
    pub text: String,
    /// Whether the part is the same in every step of the run, so that a provider may cache the
    /// prompt up to this part.
    pub cacheable: bool,
    /// A short form of the text, for a model that is offered few tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<String>,
}

impl SystemPart {
    /// Creates a part that a provider may cache.
    pub fn cacheable(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            cacheable: true,
            brief: None,
        }
    }
}

/// A complete request for one reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// The purpose of the question.
    pub purpose: Purpose,
    /// Number of earlier questions of this purpose in the run; 0 for the first. A script finds its
    /// position by it after a crash.
    pub ordinal: u64,
    /// Instructions, cacheable parts first.
    pub system: Vec<SystemPart>,
    /// The conversation, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The tools that the model may call.
    pub tools: Vec<Arc<ToolSpec>>,
    /// Whether the reply must be a call of one of the tools, as far as the provider can bind it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub must_call: bool,
    /// The JSON Schema that the reply's text must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The size of the last picture, if it shows a screen that the reply may act on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<ScreenSize>,
    /// The effort of thinking; `None` leaves it to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<ThinkingEffort>,
    /// The properties left out for this model. The client leaves out what only its protocol knows.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub plainer: BTreeSet<Simplification>,
    /// Maximum length of the reply in tokens.
    pub max_output_tokens: u64,
}

impl Prompt {
    /// Returns the effort in the request, if its server accepts such a parameter.
    pub fn sent_effort(&self) -> Option<ThinkingEffort> {
        let takes = !self.plainer.contains(&Simplification::FewParameters);
        self.effort.filter(|_| takes)
    }
}

/// The size of the picture of a screen, as it is sent. A provider whose models have a built-in tool
/// for screens may offer that tool; it translates the model's calls into the screen's tools,
/// `click`, `type_text` and so on, at points of this picture. Calls without an equivalent keep
/// their own names; a [`CONFIRM`] precedes the calls that the provider wants a person to confirm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenSize {
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
}

/// The name of the call by which a reply says that its provider wants a person's approval before
/// the reply's other calls are carried out; its argument `why` holds the provider's reason.
pub const CONFIRM: &str = "confirm";

/// The reason why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model finished its turn.
    EndOfTurn,
    /// The model waits for the results of tool calls.
    ToolCalls,
    /// The output limit was reached; the last part may be cut.
    MaxTokens,
}

/// Token counts of a reply, as reported by the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Number of tokens in the prompt, cached ones included.
    pub input_tokens: u64,
    /// Number of tokens in the reply.
    pub output_tokens: u64,
    /// Number of `input_tokens` read from the provider's cache.
    #[serde(default)]
    pub cached_tokens: u64,
    /// Number of `input_tokens` written to the provider's cache.
    #[serde(default)]
    pub cache_written_tokens: u64,
}

/// A complete reply of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Text, thinking and tool calls in order.
    pub parts: Vec<Part>,
    /// The reason why the reply ended.
    pub stop: StopReason,
    /// The reported usage; `None` if the provider reported none, in which case the run settles at
    /// its reservation.
    pub usage: Option<Usage>,
    /// The model that answered, by the provider's own name.
    pub model: String,
}

impl Reply {
    /// Returns the text of the reply, joined by newlines.
    pub fn text(&self) -> String {
        let texts: Vec<_> = self
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(text.text.as_str()),
                Part::Image(_) | Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => {
                    None
                }
            })
            .collect();
        texts.join("\n")
    }

    /// Returns the calls that the model requests, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            Part::Text(_) | Part::Image(_) | Part::Thinking(_) | Part::ToolResult(_) => None,
        })
    }
}

/// A piece of a reply as it arrives. Shown live, never stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// More of the model's thinking.
    Thinking(String),
    /// A tool call begins.
    Tool(String),
}

/// The reason why there is no reply. Only the run retries; a provider reports how long to wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "error", rename_all = "snake_case")]
pub enum ModelError {
    /// Too many requests were sent.
    #[error("the model's provider limits the rate: {message}")]
    RateLimited {
        /// The time to wait in milliseconds, if the provider reported one.
        after_ms: Option<u64>,
        /// The provider's message.
        message: String,
    },
    /// The provider has no capacity at the moment, or failed inside.
    #[error("the model's provider is overloaded: {message}")]
    Overloaded {
        /// The time to wait in milliseconds, if the provider reported one.
        after_ms: Option<u64>,
        /// The provider's message.
        message: String,
    },
    /// The prompt is longer than the model's context window.
    #[error("the prompt is too long for the model: {message}")]
    ContextTooLong {
        /// The provider's message.
        message: String,
    },
    /// The model or its provider declines to answer.
    #[error("the model declined: {message}")]
    Declined { message: String },
    /// The model's server does not accept the request as it is.
    #[error("the model refused: {message}")]
    Refused {
        /// The provider's message.
        message: String,
    },
    /// The reply broke off or does not follow the protocol.
    #[error("the model's reply could not be read: {message}")]
    BadOutput {
        /// The mistake in the reply.
        message: String,
    },
    /// The key is missing or not accepted.
    #[error("the model's provider refused the key: {message}")]
    Auth {
        /// The provider's message.
        message: String,
    },
    #[error("the model could not be reached: {message}")]
    Network { message: String },
}

impl ModelError {
    /// Whether the same request may succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            ModelError::RateLimited { .. }
            | ModelError::Overloaded { .. }
            | ModelError::BadOutput { .. }
            | ModelError::Network { .. } => true,
            ModelError::ContextTooLong { .. }
            | ModelError::Declined { .. }
            | ModelError::Refused { .. }
            | ModelError::Auth { .. } => false,
        }
    }

    /// Returns the delay that the provider requested, in milliseconds.
    pub fn retry_after_ms(&self) -> Option<u64> {
        match self {
            ModelError::RateLimited { after_ms, .. } | ModelError::Overloaded { after_ms, .. } => {
                *after_ms
            }
            ModelError::ContextTooLong { .. }
            | ModelError::Declined { .. }
            | ModelError::Refused { .. }
            | ModelError::BadOutput { .. }
            | ModelError::Auth { .. }
            | ModelError::Network { .. } => None,
        }
    }
}

/// The default token count of a picture: about that of a screenshot of 1280 by 800 at the providers
/// that charge most.
pub const DEFAULT_IMAGE_TOKENS: u64 = 1_600;

/// Default maximum time without any data from a model.
pub const MAX_SILENCE: Duration = Duration::from_secs(2 * 60);

/// A model of a provider.
pub trait Model: Send + Sync {
    /// Returns the wrapped model, if this one only changes how it is asked. Price and limits are
    /// then those of the wrapped one by default.
    fn inner(&self) -> Option<&dyn Model> {
        None
    }

    /// Returns the name as `provider/model`, as a person names it and a journal records it.
    fn name(&self) -> &str;

    /// Returns the price; `None` when unknown.
    fn price(&self) -> Option<Price> {
        self.inner()?.price()
    }

    /// Returns the maximum tokens of a prompt and its reply together; `None` when unknown.
    fn window(&self) -> Option<u64> {
        self.inner()?.window()
    }

    /// Returns the number of tokens that a reservation counts for a picture.
    fn image_tokens(&self, image: &Image) -> u64 {
        let inner = self.inner();
        inner.map_or(DEFAULT_IMAGE_TOKENS, |inner| inner.image_tokens(image))
    }

    /// Returns the maximum time without any data before a reply begins, over all attempts at one
    /// question.
    fn max_silence(&self) -> Duration {
        self.inner().map_or(MAX_SILENCE, Model::max_silence)
    }

    /// Sends the prompt once and returns the reply. `deltas` receives the pieces of the reply while
    /// it arrives; dropping the future cancels the request.
    fn reply<'a>(
        &'a self,
        prompt: &'a Prompt,
        deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxedFuture<'a, Result<Reply, ModelError>>;
}

/// The facts about a question by which a [`Router`] chooses.
#[derive(Debug, Clone, Copy)]
pub struct RouteQuery<'a> {
    /// The purpose of the question.
    pub purpose: Purpose,
    /// The estimated size of the prompt in tokens.
    pub input_tokens: u64,
    /// Whether the prompt offers tools.
    pub tools: bool,
    /// Whether the prompt contains pictures.
    pub images: bool,
    /// Whether the reply must match a schema.
    pub schema: bool,
    /// The failed attempts at this question, oldest first: the model's name and its error.
    pub failed: &'a [(String, ModelError)],
}

/// A model chosen for a question.
#[derive(Clone)]
pub struct Choice {
    pub model: Arc<dyn Model>,
    /// The reason, in a few words for a person.
    pub why: String,
    /// The properties of requests that the model's server is known not to accept.
    pub refuses: BTreeSet<Simplification>,
}

/// The model of a child run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildModel {
    /// The name of the model; `None` is the one of its parent.
    #[serde(default, rename = "own_model", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The effort of thinking; `None` for the configured one.
    #[serde(
        default,
        rename = "own_effort",
        skip_serializing_if = "Option::is_none"
    )]
    pub effort: Option<ThinkingEffort>,
}

/// Chooses a model for each attempt. A router sends no requests and retries nothing: only the run
/// does.
pub trait Router: Send + Sync {
    /// Returns the name of the choice for a person: one model, or a list of them.
    fn name(&self) -> &str;

    /// Chooses the model for the next attempt.
    ///
    /// # Errors
    /// Returns an error when no model can answer the question: the last error of those that failed,
    /// or the reason why none fits.
    fn choose(&self, wanted: &RouteQuery<'_>) -> Result<Choice, ModelError>;

    /// Records the result of an attempt, so that a model that is down is not chosen for a while.
    fn heard(&self, _model: &str, _came: Result<(), &ModelError>) {}

    /// Records that a model's server only accepts requests without this property.
    fn learned(&self, _model: &str, _step: Simplification) {}

    /// Whether any model that may be chosen accepts pictures.
    fn sees_pictures(&self) -> bool {
        true
    }

    /// Returns the name of a model that may be chosen and has no known price, if there is one.
    fn unpriced(&self) -> Option<String>;
}
