//! The times of a lease.

use std::time::Duration;

/// Minimum length of a lease: a network and a disk have hiccups of this length.
const SHORTEST: Duration = Duration::from_millis(500);

/// The times that follow from the length of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTimes {
    lease: Duration,
}

impl LeaseTimes {
    /// Returns the times of a lease; one that is too short is made longer.
    pub fn new(lease: Duration) -> Self {
        Self {
            lease: lease.max(SHORTEST),
        }
    }

    /// Time for which a run may be driven after the moment at which a message of its driver was
    /// sent that is in the log.
    pub fn lease(self) -> Duration {
        self.lease
    }

    /// Time without a message after which the driver sends a sign of life.
    pub fn renew_after(self) -> Duration {
        self.lease / 4
    }

    /// Time before the end of a lease at which its holder stops by itself, as it could no longer be
    /// sure to act within the lease.
    pub fn margin(self) -> Duration {
        self.lease / 8
    }

    /// Time that a successor waits after having seen the last message of a driver with such a
    /// lease. It is longer than the lease by the possible difference in the speed of two clocks,
    /// and by a possible delay of the kernel's kill.
    pub fn succession(self) -> Duration {
        self.lease + self.lease / 8
    }

    /// Pause before an attempt is repeated because of another write or a lagging replica.
    pub fn pause(self) -> Duration {
        (self.lease / 200).min(Duration::from_millis(50))
    }

    /// Time after which an unanswered attempt is repeated.
    pub fn attempt(self) -> Duration {
        (self.lease / 5).min(Duration::from_secs(5))
    }
}
