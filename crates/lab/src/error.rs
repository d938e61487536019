//! The error type: the reason why something could not be tried.

use std::{error::Error, fmt, io};

use gyrus_kernel::approvals::ApprovalError;
use gyrus_surfaces::SurfaceError;

/// The reason why something could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The request is invalid.
    #[error(transparent)]
    Usage(Complaint),
    /// An operation failed.
    #[error(transparent)]
    Failed(Complaint),
    /// A journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] gyrus_journal::Error),
    /// A question of a run cannot be read or answered.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// A run cannot be shown.
    #[error(transparent)]
    Surface(#[from] SurfaceError),
    /// Standard output or a file cannot be read or written, or a process not be started.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The tested program reported an error.
    #[error(transparent)]
    Program(Box<dyn Error + Send + Sync>),
}

/// An error with its causes and advice.
#[derive(Debug)]
pub struct Complaint {
    /// The error, as one sentence.
    pub message: String,
    pub cause: Option<Box<dyn Error + Send + Sync>>,
    /// Advice on the next step.
    pub hint: Option<String>,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Complaint {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let cause: &(dyn Error + 'static) = self.cause.as_deref()?;
        Some(cause)
    }
}

impl Complaint {
    fn new(message: impl fmt::Display) -> Self {
        Self {
            message: message.to_string(),
            cause: None,
            hint: None,
        }
    }
}

impl LabError {
    /// Creates an error for a request that is not possible.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::Usage(Complaint::new(message))
    }

    pub(crate) fn failed(message: impl fmt::Display) -> Self {
        Self::Failed(Complaint::new(message))
    }

    pub(crate) fn because(mut self, cause: impl Error + Send + Sync + 'static) -> Self {
        if let Self::Usage(complaint) | Self::Failed(complaint) = &mut self {
            complaint.cause = Some(Box::new(cause));
        }
        self
    }

    /// Adds advice on the next step.
    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Self {
        if let Self::Usage(complaint) | Self::Failed(complaint) = &mut self {
            complaint.hint = Some(hint.to_string());
        }
        self
    }
}
