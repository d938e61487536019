//! Whether a job may have been carried out before.

/// Whether a job may have been carried out before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobAttempt {
    First,
    /// An earlier process may have begun the job.
    Again,
}
