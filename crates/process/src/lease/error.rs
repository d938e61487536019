//! Reasons why there is no lease, or no longer one.

use std::io;

use super::boot_time::BootTime;

/// Reason why a lease was not begun or not extended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// Another lease of this process is in force.
    #[error("this process has a lease already; extend that one, or end it first")]
    Held,
    /// Keepers that were started without a lease would outlive this process.
    #[error("this process has started a keeper already; begin the lease before the first one")]
    HasKeepers,
    /// The kernel lets no timer kill the init process of a PID namespace.
    #[error(
        "this process is the init process of a container or a PID namespace, which its own timer \
         cannot kill; start it below another init process"
    )]
    IsInit,
    /// The deadline lies before the one in force.
    #[error("the deadline {asked} is earlier than {current}, which is in force")]
    Earlier {
        /// The deadline in force.
        current: BootTime,
        /// The requested deadline.
        asked: BootTime,
    },
    /// The kernel refused the timer.
    #[error("the timer of the lease cannot be set: {0}")]
    Timer(#[source] io::Error),
    /// The thread that starts keepers could not be started.
    #[error("the thread that starts keepers under the lease cannot be started: {0}")]
    Thread(#[source] io::Error),
}
