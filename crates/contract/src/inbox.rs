//! What surfaces tell a run. They have no other way to reach it.

use serde::{Deserialize, Serialize};

use crate::{Digest, EffectId};

/// Who sent a message, as far as the surface could establish it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Principal {
    /// The surface: `console`, `command line`, `page`, …
    pub surface: String,
    /// The person there: an account or user name.
    pub id: String,
}

/// A message in a run's inbox. Its id makes consuming it twice harmless.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurfaceMessage {
    /// A UUID, unique to the message.
    pub id: String,
    /// Who sent it.
    pub from: Principal,
    /// What it says.
    #[serde(flatten)]
    pub body: MessageBody,
}

/// What a surface can say to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MessageBody {
    /// Amends the goal for good.
    Steer {
        /// The person's words.
        text: String,
    },
    /// Finish the effect in hand, then park.
    Pause,
    /// Cut off what is in hand and stop.
    Stop,
    /// Yes to a card.
    Approve {
        /// The effect that asks.
        effect: EffectId,
        /// Of the card that was shown: a yes to something else does not count.
        digest: Digest,
        /// The answer to a question that wants more than a yes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        words: Option<String>,
        /// How far the yes reaches.
        #[serde(default, skip_serializing_if = "Scope::is_once")]
        scope: Scope,
    },
    /// No to a card.
    Deny {
        /// The effect that asks.
        effect: EffectId,
        /// Of the card that was shown.
        digest: Digest,
        /// Words for the model.
        reason: Option<String>,
    },
    /// Something that a run waits for by name.
    Signal {
        /// The name.
        name: String,
        /// What came with it. Untrusted.
        payload: String,
    },
}

/// How far a yes reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This one call.
    #[default]
    Once,
    /// What the card offers, for the rest of the session.
    Session,
}

impl Scope {
    /// Not worth a word on the wire.
    pub fn is_once(&self) -> bool {
        *self == Scope::Once
    }
}

/// What to do when a person must be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnAsk {
    /// Wait for the answer in this process.
    Wait,
    /// End the process; the run goes on when it is resumed.
    Park,
    /// Count it as a no.
    Deny,
}
