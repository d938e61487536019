//! The program around a surface that has runs carried out.

use gyrus_contract::BoxedFuture;

use crate::request::{RefusedRequest, RunRequest};

/// The program around a surface.
pub trait RunHost: Send + Sync + 'static {
    /// Checks a request for a run as `gyrus run` would, and completes it. May block for the disk.
    ///
    /// # Errors
    /// No run can be started so.
    fn check(&self, request: RunRequest) -> Result<RunRequest, RefusedRequest>;

    /// Carries out a command of the command line; returns what it printed.
    ///
    /// # Errors
    /// A message if the command failed.
    fn command(&self, arguments: Vec<String>) -> BoxedFuture<'_, Result<String, String>>;
}
