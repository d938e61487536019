//! Entries about asking a model: the request before it leaves, and what came of it.

use std::ops;

use gyrus_contract::{BlobId, Digest, EffectId, Message, Microdollars, ModelError, Purpose, Reply};
use serde::{Deserialize, Serialize};

use super::{Appended, cycle::nothing_appended};
use crate::Inline;

/// A request to a model is about to leave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// The effect.
    pub effect: EffectId,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// What for.
    pub purpose: Purpose,
    /// How many questions of this purpose came before.
    pub ordinal: u64,
    /// Who is asked.
    pub model: String,
    /// Why this one; empty when there was no choice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// How many tokens the model takes, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Of everything that is sent.
    pub prompt: Digest,
    /// System parts, first messages, tools and schema, stored once.
    pub frame: BlobId,
    /// The messages of memory that are sent: from this number …
    pub from: u64,
    /// … up to before this one.
    pub to: u64,
    /// Those of them that no entry held before.
    #[serde(default, skip_serializing_if = "nothing_appended")]
    pub appended: Appended,
    /// Messages sent after memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<Message>,
    /// The most it may write.
    pub max_output_tokens: u64,
    /// Reserved until the reply is settled.
    pub reserved: Charge,
}

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// Input and output together.
    pub tokens: u64,
    /// Money.
    pub cost: Microdollars,
}

impl ops::AddAssign for Charge {
    fn add_assign(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost = self.cost + other.cost;
    }
}

impl ops::SubAssign for Charge {
    fn sub_assign(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_sub(other.tokens);
        self.cost = Microdollars(self.cost.0.saturating_sub(other.cost.0));
    }
}

/// What came of a request to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The effect.
    pub effect: EffectId,
    /// Which attempt.
    pub attempt: u32,
    /// What came.
    pub came: Came,
    /// What it is settled at.
    pub charged: Charge,
    /// No usage was reported: `charged` is the reservation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

/// What came of one attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Came {
    /// A reply.
    Reply {
        /// The reply.
        reply: Inline<Reply>,
    },
    /// An error.
    Error {
        /// The error.
        error: ModelError,
    },
    /// It was cut off by a crash or a person; it may have been answered and charged.
    CutOff,
}
