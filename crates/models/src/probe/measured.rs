//! Results of measuring a model, as they are stored and shown.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{CallStyle, ModelFacts};

/// Version of [`Measurements`] that is written. Later ones may add fields, which readers skip.
pub const MEASURED_VERSION: u32 = 1;

/// Results of measuring one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurements {
    /// [`MEASURED_VERSION`] of the writer.
    pub version: u32,
    /// Time of the measurement, as RFC 3339 in UTC.
    pub at: String,
    /// The model, as `provider/model`.
    pub model: String,
    pub answers: ProbeFinding,
    /// Whether the model calls a tool with the right arguments through its provider's API.
    pub tools: ProbeFinding,
    /// The first form of tools in which the model called one with the right arguments; `None` if it
    /// did in none, or if an earlier version measured it.
    pub calls: Option<CallStyle>,
    /// Whether the model's reply is bound to a schema.
    pub schema: ProbeFinding,
    /// Whether the model reads a number in a picture.
    pub images: ProbeFinding,
    /// Whether the model points at targets on a screen.
    pub pointing: ProbeFinding,
    /// Coordinates and errors of the model, if it points.
    pub clicks: Option<Clicks>,
    /// Whether the model picks the right element from a numbered tree.
    pub choice: ProbeFinding,
    /// Maximum tokens of a prompt and its reply together, as reported by the server.
    pub window: Option<u64>,
    /// Length of the longest prompt. Only measured on request.
    pub context: Option<ContextLength>,
    /// Number of tokens for the size of a text.
    pub tokens: Option<TokenCount>,
    /// Times of the model's replies.
    pub latency: Option<Latency>,
    /// Tokens of the model's replies per second, including the reading of the prompts.
    pub tokens_per_second: Option<f64>,
    /// Number of requests that the measurements took.
    pub requests: u32,
}

/// Result of one probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum ProbeFinding {
    /// The model has the ability.
    Works,
    /// The model does not have the ability.
    Fails {
        /// Description of the model's wrong answer.
        why: String,
    },
    /// The probe had no result.
    Unknown { why: String },
}

/// Coordinates in which a model points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Convention {
    /// Pixels of the picture that was sent.
    Pixels,
    /// Thousandths of the picture's width and height.
    Thousandths,
    /// Fractions of the picture's width and height.
    Fractions,
}

/// Accuracy of a model that points.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Clicks {
    /// Coordinates that the model uses.
    pub convention: Convention,
    /// Median error, in pixels of a screen of 1280 by 800.
    pub median_error: f64,
    /// Largest error, in pixels as well.
    pub largest_error: f64,
}

/// Length of the longest prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextLength {
    /// Tokens of the longest prompt of which the model still knew the beginning.
    pub holds: u64,
    /// Number of tokens of the shortest prompt that was too long; `None` if none was.
    pub too_long: Option<u64>,
}

/// Size and token count of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCount {
    /// Bytes of the prompt's texts.
    pub bytes: u64,
    /// Number of tokens as the provider counted them.
    pub counted: u64,
}

/// Time of replies to short questions, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Median time of whole replies.
    pub median_ms: u64,
    /// Median time until the first pieces of replies.
    pub first_ms: u64,
}

/// Time of a whole reply to a short question, in milliseconds, from which on a model is called
/// slow.
const SLOW_MS: u64 = 10_000;

impl Measurements {
    /// Describes the model's speed; `None` if it did not answer.
    pub fn speed(&self) -> Option<String> {
        let Latency {
            median_ms,
            first_ms,
        } = self.latency?;
        let slow = if median_ms >= SLOW_MS { "slow: " } else { "" };
        let rate = self.tokens_per_second;
        let rate = rate.map_or(String::new(), |rate| format!("{rate:.1} tokens a second, "));
        Some(format!(
            "{slow}{rate}{first_ms} ms to the first word, {median_ms} ms in all, in the median"
        ))
    }

    /// Whether replies to short questions take so long that a person should know.
    pub fn is_slow(&self) -> bool {
        self.latency.is_some_and(|it| it.median_ms >= SLOW_MS)
    }

    /// Describes the model's tool calls.
    pub fn calls_in_words(&self) -> String {
        let prompted = match self.calls {
            None | Some(CallStyle::Native) => return self.tools.to_string(),
            Some(CallStyle::Prompted) => "described in the prompt",
            Some(CallStyle::Bound) if self.tools == ProbeFinding::Works => {
                return "yes, written as text, so its replies are bound to a schema".to_owned();
            }
            Some(CallStyle::Bound) => "described in the prompt, with replies bound to a schema",
        };
        format!("yes, {prompted} (on its wire: {})", self.tools)
    }

    /// Returns the form in which the model is offered tools from now on, if known.
    pub(crate) fn call_style(&self) -> Option<CallStyle> {
        let is_native = |known| {
            if known {
                CallStyle::Native
            } else {
                CallStyle::Prompted
            }
        };
        self.calls.or(self.tools.known().map(is_native))
    }
}

impl ProbeFinding {
    fn known(&self) -> Option<bool> {
        match self {
            ProbeFinding::Works => Some(true),
            ProbeFinding::Fails { .. } => Some(false),
            ProbeFinding::Unknown { .. } => None,
        }
    }
}

impl fmt::Display for ProbeFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeFinding::Works => f.write_str("yes"),
            ProbeFinding::Fails { why } => write!(f, "no: {why}"),
            ProbeFinding::Unknown { why } => write!(f, "not known: {why}"),
        }
    }
}

impl fmt::Display for Convention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Convention::Pixels => "pixels",
            Convention::Thousandths => "thousandths of width and height",
            Convention::Fractions => "fractions of width and height",
        })
    }
}

/// Returns the facts of a model after a measurement: results replace earlier facts, and unknown
/// ones stay as they were. A window only shrinks, since none larger than the known one is tried.
pub fn apply(measured: &Measurements, facts: ModelFacts) -> ModelFacts {
    let held = measured.context.map(|context| context.holds);
    let window = match (facts.window.or(measured.window), held) {
        (Some(known), Some(held)) => Some(known.min(held)),
        (known, held) => known.or(held),
    };
    let tools = measured.call_style().map(|it| it == CallStyle::Native);
    let is_bound = measured.call_style() == Some(CallStyle::Bound);
    ModelFacts {
        tools: tools.or(facts.tools),
        few_tools: facts.few_tools.or(is_bound.then_some(true)),
        schema: measured.schema.known().or(facts.schema),
        images: measured.images.known().or(facts.images),
        window,
        ..facts
    }
}
