//! What was measured, as it is kept and shown.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Facts;

/// The version of [`Measured`] that is written. Later ones may add fields, which readers skip.
pub const MEASURED_VERSION: u32 = 1;

/// What one model did when it was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// [`MEASURED_VERSION`] of whoever wrote it.
    pub version: u32,
    /// When, as RFC 3339 in UTC.
    pub at: String,
    /// `provider/model`.
    pub model: String,
    /// It answers at all.
    pub answers: Finding,
    /// It calls a tool with the right arguments.
    pub tools: Finding,
    /// Its reply is bound to a schema.
    pub schema: Finding,
    /// It reads a number in a picture.
    pub images: Finding,
    /// It points at things on a screen.
    pub pointing: Finding,
    /// How it points, if it does.
    pub clicks: Option<Clicks>,
    /// It picks the right one from a numbered tree of elements.
    pub choice: Finding,
    /// How much it takes. Only measured where that was asked for.
    pub context: Option<Context>,
    /// How its tokens compare with the size of a text.
    pub tokens: Option<Tokens>,
    /// How fast it is.
    pub latency: Option<Latency>,
    /// The requests that all of this took.
    pub requests: u32,
}

/// How one probe came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// It does it.
    Works,
    /// It does not, and what it did instead.
    Fails {
        /// In words.
        why: String,
    },
    /// That could not be found out.
    Unknown {
        /// In words.
        why: String,
    },
}

/// In what coordinates a model points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Convention {
    /// Pixels of the picture that was sent.
    Pixels,
    /// Thousandths of its width and height.
    Thousandths,
    /// Its width and height are 1.
    Fractions,
}

/// How a model points.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Clicks {
    /// In what coordinates.
    pub convention: Convention,
    /// How far off it is in the median, in pixels of a screen of 1280 by 800.
    pub median_error: f64,
    /// How far off it is at the worst, in the same pixels.
    pub largest_error: f64,
}

/// How much a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The longest prompt, in tokens, of which it still knew the beginning.
    pub holds: u64,
    /// The shortest that was too long; `None` if none was.
    pub too_long: Option<u64>,
}

/// A text's size and what it counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Of the prompt's texts.
    pub bytes: u64,
    /// As the provider counted them.
    pub counted: u64,
}

/// How fast replies to short questions come, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// The median of whole replies.
    pub median_ms: u64,
    /// The median of their first pieces.
    pub first_ms: u64,
}

impl Finding {
    fn known(&self) -> Option<bool> {
        match self {
            Finding::Works => Some(true),
            Finding::Fails { .. } => Some(false),
            Finding::Unknown { .. } => None,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Works => f.write_str("yes"),
            Finding::Fails { why } => write!(f, "no: {why}"),
            Finding::Unknown { why } => write!(f, "not known: {why}"),
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

/// What is known of a model once it was measured: what it showed outweighs what was believed, and
/// what could not be found out stays as it was. A window only shrinks, since none larger than the
/// known one is tried.
pub fn apply(measured: &Measured, facts: Facts) -> Facts {
    let held = measured.context.map(|context| context.holds);
    let window = match (facts.window, held) {
        (Some(known), Some(held)) => Some(known.min(held)),
        (known, held) => known.or(held),
    };
    Facts {
        tools: measured.tools.known().or(facts.tools),
        schema: measured.schema.known().or(facts.schema),
        images: measured.images.known().or(facts.images),
        window,
        ..facts
    }
}
