//! What a model is asked and what it answers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Boxed, Image, Message, Part, Price, ToolCall, ToolSpec};

/// What a model is asked for; a router chooses by it, and a script keys its replies by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The agent's own next step.
    Agent,
    /// A plan before acting.
    Plan,
    /// Looking back at what was done.
    Reflect,
    /// Whether the goal was reached.
    Verify,
    /// How risky a call is.
    Safety,
    /// A shorter text.
    Summarise,
}

/// A part of the system prompt.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SystemPart {
    /// The instructions.
    pub text: String,
    /// It is the same in every step of the run, so a provider may cache the prompt up to here.
    pub cacheable: bool,
}

/// Everything that is sent for one reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// What the reply is for.
    pub purpose: Purpose,
    /// How many questions of this purpose the run asked before: 0 for the first. A script finds its
    /// place by it after a kill.
    pub ordinal: u64,
    /// Instructions, cacheable parts first.
    pub system: Vec<SystemPart>,
    /// The conversation, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The tools that the model may ask for.
    pub tools: Vec<Arc<ToolSpec>>,
    /// The JSON Schema that the reply's text must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The last picture shows a screen, and the reply may act on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<Shown>,
    /// The most the model may write, in tokens.
    pub max_output_tokens: u64,
}

/// The picture of a screen, as large as it is sent. A provider whose models know a tool of their
/// own for screens may offer it, and puts what they call into the words of the screen's tools:
/// `click`, `type_text` and so on, at points of this picture. Calls that have no such word keep
/// their own; a [`CONFIRM`] stands before what the provider wants a person to confirm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
}

/// The name under which a reply says that its provider wants a person's yes before the reply's
/// other calls are carried out; its argument `why` holds the provider's words.
pub const CONFIRM: &str = "confirm";

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was finished.
    EndOfTurn,
    /// It waits for tools.
    ToolCalls,
    /// The output limit was reached: the last part may be cut.
    MaxTokens,
}

/// Tokens as the provider counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt, cached ones included.
    pub input_tokens: u64,
    /// Tokens of the reply.
    pub output_tokens: u64,
    /// The part of `input_tokens` that was read from the provider's cache.
    #[serde(default)]
    pub cached_tokens: u64,
    /// The part of `input_tokens` that was put into the provider's cache.
    #[serde(default)]
    pub cache_written_tokens: u64,
}

/// A whole reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Text, thinking and tool calls in order.
    pub parts: Vec<Part>,
    /// Why it ended.
    pub stop: StopReason,
    /// `None` when the provider reported none: the run then settles at its reservation.
    pub usage: Option<Usage>,
    /// The model that answered, by the provider's own name.
    pub model: String,
}

impl Reply {
    /// All text, joined by newlines.
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

    /// The calls that the model asks for, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            Part::Text(_) | Part::Image(_) | Part::Thinking(_) | Part::ToolResult(_) => None,
        })
    }
}

/// A piece of a reply while it arrives. Shown live, never stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// More of the model's thinking.
    Thinking(String),
    /// A tool call begins.
    Tool(String),
}

/// Why there is no reply. Only the run retries; a provider says how long to wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "error", rename_all = "snake_case")]
pub enum ModelError {
    /// Too many requests.
    #[error("the model's provider limits the rate: {message}")]
    RateLimited {
        /// How long to wait, in milliseconds, if the provider said so.
        after_ms: Option<u64>,
        /// The provider's words.
        message: String,
    },
    /// The provider has no capacity at the moment, or failed inside.
    #[error("the model's provider is overloaded: {message}")]
    Overloaded {
        /// How long to wait, in milliseconds, if the provider said so.
        after_ms: Option<u64>,
        /// The provider's words.
        message: String,
    },
    /// The prompt does not fit.
    #[error("the prompt is too long for the model: {message}")]
    ContextTooLong {
        /// The provider's words.
        message: String,
    },
    /// The model or its provider declined to answer.
    #[error("the model refused: {message}")]
    Refused {
        /// The provider's words.
        message: String,
    },
    /// The reply broke off or is not what the protocol promises.
    #[error("the model's reply could not be read: {message}")]
    BadOutput {
        /// What was wrong with it.
        message: String,
    },
    /// The key is missing or not accepted.
    #[error("the model's provider refused the key: {message}")]
    Auth {
        /// The provider's words.
        message: String,
    },
    /// Nobody answered.
    #[error("the model could not be reached: {message}")]
    Network {
        /// The reason.
        message: String,
    },
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
            | ModelError::Refused { .. }
            | ModelError::Auth { .. } => false,
        }
    }

    /// How long the provider asked to wait, in milliseconds.
    pub fn retry_after_ms(&self) -> Option<u64> {
        match self {
            ModelError::RateLimited { after_ms, .. } | ModelError::Overloaded { after_ms, .. } => {
                *after_ms
            }
            ModelError::ContextTooLong { .. }
            | ModelError::Refused { .. }
            | ModelError::BadOutput { .. }
            | ModelError::Auth { .. }
            | ModelError::Network { .. } => None,
        }
    }
}

/// What a picture is taken to cost where nothing better is known, in tokens: about a screenshot
/// of 1280 by 800 at the providers that charge most.
pub const DEFAULT_IMAGE_TOKENS: u64 = 1_600;

/// One model behind one address.
pub trait Model: Send + Sync {
    /// `provider/model`, as a person names it and a journal records it.
    fn name(&self) -> &str;

    /// What it charges; `None` when unknown.
    fn price(&self) -> Option<Price>;

    /// How many tokens a prompt and its reply may have together; `None` when unknown.
    fn window(&self) -> Option<u64> {
        None
    }

    /// What a picture counts as, in tokens, for reservations.
    fn image_tokens(&self, _image: &Image) -> u64 {
        DEFAULT_IMAGE_TOKENS
    }

    /// Asks once. `deltas` hears the reply while it arrives; dropping the future gives up.
    fn reply<'a>(
        &'a self,
        prompt: &'a Prompt,
        deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> Boxed<'a, Result<Reply, ModelError>>;
}

/// What a [`Router`] is told of a question.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// What the reply is for.
    pub purpose: Purpose,
    /// The prompt's size, estimated.
    pub input_tokens: u64,
    /// The prompt offers tools.
    pub tools: bool,
    /// The prompt has pictures.
    pub images: bool,
    /// The reply must fit a schema.
    pub schema: bool,
    /// The attempts at this question that failed, oldest first: who was asked, and what came.
    pub failed: &'a [(String, ModelError)],
}

/// A model that was chosen for a question.
#[derive(Clone)]
pub struct Choice {
    /// Whom to ask.
    pub model: Arc<dyn Model>,
    /// Why, in a few words for a person.
    pub why: String,
}

/// Chooses a model for each attempt. It asks nobody and repeats nothing: only the run does.
pub trait Router: Send + Sync {
    /// What a person calls the choice: one model, or a list of them.
    fn name(&self) -> &str;

    /// Whom to ask.
    ///
    /// # Errors
    /// When no model can answer this: the last error of those that failed, or why none fits.
    fn choose(&self, wanted: &Wanted<'_>) -> Result<Choice, ModelError>;

    /// Hears how an attempt went, so that a model that is down is left alone for a while.
    fn heard(&self, _model: &str, _came: Result<(), &ModelError>) {}

    /// Whether any model that may be chosen could see a picture.
    fn sees_pictures(&self) -> bool {
        true
    }

    /// A model that may be chosen and whose price is not known, if there is one.
    fn unpriced(&self) -> Option<String>;
}
