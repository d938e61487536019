//! A person's answer to an open question of a run, from whatever surface it comes. The kernel
//! decides whether the card takes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A person's answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Answer {
    /// Approval, or the answer to a question that asks for words.
    Approve {
        /// The answer in words, or the edited text that is approved in place of the card's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        words: Option<String>,
        /// The extent of the approval.
        #[serde(default, skip_serializing_if = "ApprovalScope::is_once")]
        scope: ApprovalScope,
    },
    /// Denial.
    Deny {
        /// The reason, for the model.
        reason: Option<String>,
    },
}

impl Answer {
    /// Returns an approval without words.
    pub fn yes(scope: ApprovalScope) -> Self {
        let words = None;
        Self::Approve { words, scope }
    }

    /// Returns the answer to a question for words, or the approval of an edited text.
    pub fn words(words: impl Into<String>) -> Self {
        Self::Approve {
            words: Some(words.into()),
            scope: ApprovalScope::Once,
        }
    }

    /// Returns a denial with a reason for the model.
    pub fn no(reason: impl Into<String>) -> Self {
        let reason = Some(reason.into());
        Self::Deny { reason }
    }

    /// Whether the answer is an approval.
    pub fn is_yes(&self) -> bool {
        matches!(self, Self::Approve { .. })
    }

    /// Whether the answer approves more than one call.
    pub fn is_wider(&self) -> bool {
        matches!(self, Self::Approve { scope, .. } if !scope.is_once())
    }

    /// Returns the words of an approval, or the reason of a denial.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Approve { words: text, .. } | Self::Deny { reason: text } => text.as_deref(),
        }
    }
}

/// The extent of a yes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Reach")]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// This one call.
    #[default]
    Once,
    /// Everything that the card offers, for the rest of the session.
    Session,
    /// Everything that the card offers, in this folder, until it is revoked.
    Always,
}

impl ApprovalScope {
    /// Whether the scope is the default, which is left out when a message is written.
    fn is_once(&self) -> bool {
        *self == Self::Once
    }
}
