//! The error of a queue.

use gyrus_contract::RunId;

use super::command::MAX_COMMAND;
use crate::{BusError, ledger::LedgerError};

/// The error of a queue.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// It cannot be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The journal of a run cannot be read.
    #[error(transparent)]
    Journal(#[from] gyrus_journal::Error),
    /// The question of a run cannot be read.
    #[error(transparent)]
    Approval(#[from] gyrus_kernel::approvals::ApprovalError),
    /// The end of a command cannot be published.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// It is full.
    #[error("too many commands wait already; take some back, or wait until they are done")]
    Full,
    /// The command is too large.
    #[error("the command is {bytes} bytes long; at most {MAX_COMMAND} are accepted")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// There is no such command.
    #[error("there is no command `{id}`; is it long over?")]
    NotFound {
        /// The id that was given.
        id: String,
    },
    /// The command cannot be taken back any more.
    #[error("command {id} has begun: stop its run {} instead", run.short())]
    Begun {
        /// The command.
        id: String,
        /// Its run.
        run: RunId,
    },
}
