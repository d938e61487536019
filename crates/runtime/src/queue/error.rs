//! The error of a queue, and waiting for it no longer than people do.

use std::time::Duration;

use gyrus_contract::RunId;

use super::command::MAX_COMMAND;
use crate::{BusError, ledger::LedgerError};

#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The queue's log cannot be read or written.
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
    /// The queue did not answer in time.
    #[error(
        "the queue did not answer within {} s, and whether it took this is not known: look before you \
         send it again, or give it a `key`",
        PATIENCE.as_secs()
    )]
    NoAnswer,
    #[error("too many commands wait already; take some back, or wait until they are done")]
    Full,
    #[error("the command is {bytes} bytes long; at most {MAX_COMMAND} are accepted")]
    TooLarge { bytes: usize },
    #[error("there is no command `{id}`; is it long over?")]
    NotFound {
        /// The unknown id.
        id: String,
    },
    /// The command has begun and can no longer be cancelled.
    #[error("command {id} has begun: stop its run {} instead", run.short())]
    Begun { id: String, run: RunId },
}

/// Time limit for a change of the queue. The servers of a fleet may be down.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for a change of the queue on behalf of somebody who waits for the answer, and no longer.
///
/// # Errors
/// [`QueueError::NoAnswer`], or the change's own.
pub async fn in_time<T>(
    change: impl Future<Output = Result<T, QueueError>>,
) -> Result<T, QueueError> {
    let answered = tokio::time::timeout(PATIENCE, change).await;
    answered.unwrap_or(Err(QueueError::NoAnswer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_queue_that_says_nothing() {
        let silent = in_time(std::future::pending::<Result<(), QueueError>>()).await;
        assert!(matches!(silent, Err(QueueError::NoAnswer)));
        assert!(matches!(in_time(async { Ok(1) }).await, Ok(1)));
    }
}
