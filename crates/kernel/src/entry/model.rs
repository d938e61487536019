//! Entries about asking a model: the request before it is sent, and its result.

use std::ops;

use gyrus_contract::{
    BlobId, Digest, EffectId, MemoryItem, Message, Microdollars, ModelError, Plainness, Purpose,
    Reply,
};
use serde::{Deserialize, Serialize};

use crate::Inline;

/// Messages that were added to memory and that no entry held before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MessagesAppended {
    /// The number of the first message.
    pub first: u64,
    /// The messages, in order.
    pub items: Vec<Inline<MemoryItem>>,
}

pub(super) fn nothing_appended(appended: &MessagesAppended) -> bool {
    appended.items.is_empty()
}

/// A request to a model is about to be sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    pub effect: EffectId,
    /// The number of the attempt, 1 for the first.
    pub attempt: u32,
    /// The purpose of the question.
    pub purpose: Purpose,
    /// Number of earlier questions of this purpose.
    pub ordinal: u64,
    /// The name of the model that is asked.
    pub model: String,
    /// The reason for this model; empty when there was no choice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The model's context window in tokens, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The digest of everything that is sent.
    pub prompt: Digest,
    /// System parts, first messages, tools and schema, stored once.
    pub frame: BlobId,
    /// The number of the first message of memory that is sent.
    pub from: u64,
    /// The number after that of the last message of memory that is sent.
    pub to: u64,
    /// The sent messages that no earlier entry contains.
    #[serde(default, skip_serializing_if = "nothing_appended")]
    pub appended: MessagesAppended,
    /// Messages sent after memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<Message>,
    /// Maximum length of the reply in tokens.
    pub max_output_tokens: u64,
    /// The charge that is reserved until the reply is settled.
    pub reserved: Charge,
    /// The parts left out for this model, because its server refused them.
    #[serde(default, skip_serializing_if = "Plainness::is_empty")]
    pub plainer: Plainness,
}

/// A charge in tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// Number of input and output tokens together.
    pub tokens: u64,
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

/// The result of a request to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    pub effect: EffectId,
    /// The number of the attempt.
    pub attempt: u32,
    pub came: AttemptResult,
    /// The charge with which the request is settled.
    pub charged: Charge,
    /// Whether no usage was reported, so that `charged` is the reservation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// The duration in milliseconds.
    pub took_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptResult {
    Reply {
        reply: Inline<Reply>,
    },
    Error {
        error: ModelError,
    },
    /// A crash or a person interrupted the request; it may have been answered and charged.
    CutOff,
}
