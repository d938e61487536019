//! The error of everything that is done with a run as a whole.

use gyrus_contract::RunId;

use crate::{Stop, latch::AllStopped, runs::WorkspaceMoved};

/// The reason why a run cannot be started, taken up or read.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] gyrus_journal::Error),
    /// The loop does not exist, or its configuration is invalid.
    #[error("{0}")]
    Loop(String),
    /// A limit on cost needs prices, or a limit on tokens beside it.
    #[error(
        "the price of the model `{model}` is unknown, so a limit on cost cannot be kept; set a \
         limit on tokens too"
    )]
    UnknownPrice { model: String },
    /// The run has ended, so it cannot be resumed.
    #[error("run {run} is over: {what}")]
    Over { run: RunId, what: String },
    /// The log does not hold a run.
    #[error("run {run} cannot be read: {reason}")]
    NotARun { run: RunId, reason: String },
    /// The workspace is no longer where it was.
    #[error(transparent)]
    Moved(#[from] WorkspaceMoved),
    /// The step to fork from does not exist or is not complete.
    #[error("run {run} has no complete step {step}; the last one is {last}")]
    NoStep { run: RunId, step: u32, last: u32 },
    /// A person stopped all runs, and nobody has lifted the stop.
    #[error(transparent)]
    Latched(#[from] AllStopped),
    /// The run stopped at a place where it must not.
    #[error(transparent)]
    Stop(#[from] Stop),
}
