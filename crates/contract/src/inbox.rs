//! Messages from surfaces to a run. Surfaces have no other way to reach it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Answer, Digest, EffectId, Origin};

/// The sender of a message, as far as the surface could establish it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Principal {
    /// The surface from which the message came: `console`, `command line`, `page`, …
    pub surface: String,
    /// The person at the surface: an account or user name.
    pub id: String,
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.surface)
    }
}

/// A message in a run's inbox. Its id makes consuming it twice harmless.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurfaceMessage {
    /// A UUID, unique to the message.
    pub id: String,
    pub from: Principal,
    #[serde(flatten)]
    pub body: MessageBody,
}

/// The content of a message from a surface to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MessageBody {
    /// Amends the goal for good.
    Steer {
        text: String,
        /// The source of the words. Those of another program's model amend the goal, but vouch for
        /// nothing, and expose the run.
        #[serde(default = "from_a_person", skip_serializing_if = "is_from_a_person")]
        origin: Origin,
    },
    /// Lets the commands in progress go on in the background, where a person at the terminal may do that.
    Background,
    /// Finishes the effect in progress, then parks the run.
    Pause,
    /// Interrupts the effect in progress and stops the run.
    Stop,
    /// Delivers a signal for which a run waits by name.
    Signal {
        /// The name of the signal.
        name: String,
        /// The data sent with the signal. Untrusted.
        payload: String,
    },
    /// Answers a question; its type is that of the answer.
    #[serde(untagged)]
    Answer {
        /// The effect that the question is about.
        effect: EffectId,
        /// The digest of the card that was shown; an answer to anything else does not count.
        digest: Digest,
        #[serde(flatten)]
        answer: Answer,
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

/// The way to proceed when a person must be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnAsk {
    /// Waits for the answer in this process.
    Wait,
    /// Ends the process; the run continues when it is resumed.
    Park,
    /// Counts as a denial.
    Deny,
}
