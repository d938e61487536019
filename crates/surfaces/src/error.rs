//! The errors of a surface.

use std::io;

use gyrus_kernel::approvals::{ApprovalError, VoidAnswer};
use gyrus_process::ProgramError;

/// A surface that cannot show something or deliver an answer.
#[derive(Debug, thiserror::Error)]
pub enum SurfaceError {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] gyrus_journal::Error),
    /// An answer cannot be delivered.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// An answer came too late.
    #[error(transparent)]
    Void(#[from] VoidAnswer),
    /// Standard output, standard error or the terminal cannot be used.
    #[error("the output cannot be written")]
    Output(#[from] io::Error),
    /// A program that the surface starts is not found.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The value has no JSON form.
    #[error("the output cannot be written")]
    Json(#[source] serde_json::Error),
    /// The person asked for something that cannot be had.
    #[error("{message}")]
    Usage {
        /// What cannot be had.
        message: String,
        /// The cause, if the system gave one.
        source: Option<io::Error>,
        /// What the person can do instead.
        hint: Option<&'static str>,
    },
    /// A file cannot be written.
    #[error("{message}")]
    File {
        /// What happened to which file.
        message: String,
        /// The cause.
        source: io::Error,
        /// What the person can do.
        hint: Option<&'static str>,
    },
    /// The task that shows the run ended early.
    #[error("the run can no longer be shown")]
    Watcher(#[source] tokio::task::JoinError),
}

impl SurfaceError {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage {
            message: message.into(),
            source: None,
            hint: None,
        }
    }
}
