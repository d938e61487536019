//! The errors of a surface.

use std::{error::Error, io};

use gyrus_kernel::approvals::{AnswerMismatch, ApprovalError, VoidAnswer};
use gyrus_process::ProgramError;
use gyrus_text::visible;

/// The error of a surface that cannot show something or deliver an answer.
#[derive(Debug, thiserror::Error)]
pub enum SurfaceError {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] gyrus_journal::Error),
    /// An answer cannot be delivered.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// Standard output, standard error or the terminal cannot be used.
    #[error("the output cannot be written")]
    Output(#[from] io::Error),
    /// A program that the surface starts is not found.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The value has no JSON form.
    #[error("the output cannot be written")]
    Json(#[source] serde_json::Error),
    /// The person requested something that is not possible.
    #[error("{message}")]
    Usage {
        /// The error as one sentence.
        message: String,
        /// The cause, if the system gave one.
        source: Option<io::Error>,
        /// Advice on the next step.
        hint: Option<&'static str>,
    },
    /// A file cannot be written.
    #[error("{message}")]
    File {
        /// The event and the file.
        message: String,
        source: io::Error,
        /// Advice on the next step.
        hint: Option<&'static str>,
    },
    /// The task that shows the run ended early.
    #[error("the run can no longer be shown")]
    Watcher(#[source] tokio::task::JoinError),
}

impl From<VoidAnswer> for SurfaceError {
    fn from(void: VoidAnswer) -> Self {
        Self::Approval(void.into())
    }
}

impl SurfaceError {
    /// Returns the next step for the person, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. } | Self::File { hint, .. } => hint.map(str::to_owned),
            Self::Approval(ApprovalError::Void(void)) => Some(next_step(void)),
            Self::Journal(_)
            | Self::Approval(_)
            | Self::Output(_)
            | Self::Program(_)
            | Self::Json(_)
            | Self::Watcher(_) => None,
        }
    }

    /// Returns the error with its causes and the advice, for a person who continues.
    pub(crate) fn told(&self) -> String {
        let mut told = format!("error: {}", visible(&self.to_string()));
        let mut next = self.source();
        while let Some(cause) = next {
            told.push_str(&format!("\n  because: {}", visible(&cause.to_string())));
            next = cause.source();
        }
        if let Some(hint) = self.hint() {
            told.push_str(&format!("\n  hint: {}", visible(&hint)));
        }
        told.push('\n');
        told
    }
}

/// Returns the next step, as commands, after an answer that is void.
pub fn next_step(void: &VoidAnswer) -> String {
    match void {
        VoidAnswer::Answered { run, .. } => format!("to go on: gyrus resume {}", run.short()),
        VoidAnswer::NotAsked { .. } => "see what is asked: gyrus approvals".to_owned(),
        VoidAnswer::AskedAnew { .. } => "see what it asks now: gyrus approvals".to_owned(),
        VoidAnswer::Mismatch(mismatch) => {
            let command = match mismatch {
                AnswerMismatch::WordsMissing => ": gyrus approve RUN --answer WORDS",
                AnswerMismatch::UnaskedWords | AnswerMismatch::EmptyText => {
                    ": gyrus deny RUN --reason TEXT"
                }
                AnswerMismatch::OnlyOnce => ": gyrus approve RUN",
                AnswerMismatch::NothingToEdit | AnswerMismatch::TooLong { .. } => "",
            };
            format!("{}{command}", mismatch.hint())
        }
        VoidAnswer::Expired { run, .. } => {
            format!("to be asked anew: gyrus resume {}", run.short())
        }
    }
}
