//! The errors of triggers.

use super::signature::HookRefusal;
use crate::{BusError, ledger::LedgerError};

#[derive(Debug, thiserror::Error)]
pub enum TriggerError {
    /// The log of triggers cannot be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The bus cannot be used, or refuses the event.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The agent has no trigger of this name.
    #[error("the agent `{agent}` has no trigger `{trigger}`")]
    NotFound { agent: String, trigger: String },
    /// A delivery to a webhook is refused.
    #[error(transparent)]
    Refused(#[from] HookRefusal),
    /// The webhook has no secret, so every delivery is refused.
    #[error("this webhook has no secret on this server")]
    NoSecret,
    #[error("the body is not JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    /// The webhook had too many deliveries lately.
    #[error("too many deliveries; try again later")]
    TooMany,
}

impl From<gyrus_journal::Error> for TriggerError {
    fn from(error: gyrus_journal::Error) -> Self {
        Self::Ledger(error.into())
    }
}
