//! The errors of agents, and the limits that they name.

use crate::{BusError, ledger::LedgerError};

/// Maximum number of agents.
pub const MAX_AGENTS: usize = 10_000;

/// Maximum length of a name.
pub(super) const MAX_NAME: usize = 40;

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A log cannot be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The bus cannot be used.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The name is not usable.
    #[error("invalid name `{name}` of an agent: 1 to {MAX_NAME} of a-z, 0-9 and single dashes")]
    BadName {
        /// The name, cut.
        name: String,
    },
    #[error("there are {MAX_AGENTS} agents already")]
    TooMany,
    #[error("there is no agent `{name}`")]
    NotFound { name: String },
    #[error("there is an agent `{name}` already")]
    Exists { name: String },
    /// The agent is retired for good.
    #[error("the agent `{name}` is retired; create one of another name")]
    Retired { name: String },
}
