//! Messages from surfaces to a run. Surfaces have no other way to reach it.

use serde::{Deserialize, Serialize};

use crate::{Digest, EffectId, Origin};

/// The sender of a message, as far as the surface could establish it.
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
    /// The sender.
    pub from: Principal,
    /// The content.
    #[serde(flatten)]
    pub body: MessageBody,
}

/// The content of a message from a surface to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MessageBody {
    /// Amends the goal for good.
    Steer {
        /// The words.
        text: String,
        /// The source of the words. Those of another program's model amend the goal, but vouch for
        /// nothing, and expose the run.
        #[serde(default = "from_a_person", skip_serializing_if = "is_from_a_person")]
        origin: Origin,
    },
    /// Finishes the effect in progress, then parks the run.
    Pause,
    /// Interrupts the effect in progress and stops the run.
    Stop,
    /// Approves a call.
    Approve {
        /// The effect that asks.
        effect: EffectId,
        /// The digest of the approval card that was shown: an approval of anything else does not
        /// count.
        digest: Digest,
        /// The answer to a question that asks for more than approval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        words: Option<String>,
        /// The extent of the approval.
        #[serde(default, skip_serializing_if = "Scope::is_once")]
        scope: Scope,
    },
    /// Denies a call.
    Deny {
        /// The effect that asks.
        effect: EffectId,
        /// The digest of the approval card that was shown.
        digest: Digest,
        /// The reason, for the model.
        reason: Option<String>,
    },
    /// Delivers a signal that a run waits for by name.
    Signal {
        /// The name of the signal.
        name: String,
        /// The data sent with the signal. Untrusted.
        payload: String,
    },
}

impl MessageBody {
    /// Returns the message by which a person amends the goal.
    pub fn steer(text: impl Into<String>) -> Self {
        Self::Steer {
            text: text.into(),
            origin: Origin::Person,
        }
    }
}

fn from_a_person() -> Origin {
    Origin::Person
}

fn is_from_a_person(origin: &Origin) -> bool {
    *origin == Origin::Person
}

/// The extent of an approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This one call.
    #[default]
    Once,
    /// Everything that the card offers, for the rest of the session.
    Session,
}

impl Scope {
    /// Whether this is the default, which is left out when a message is written.
    pub fn is_once(&self) -> bool {
        *self == Scope::Once
    }
}

/// The way to proceed when a person must be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnAsk {
    /// Waits for the answer in this process.
    Wait,
    /// Ends the process; the run goes on when it is resumed.
    Park,
    /// Counts as a denial.
    Deny,
}
