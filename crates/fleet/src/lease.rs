//! The times of a lease.

use std::time::Duration;

/// Smallest lease: a network and a disk have hiccups of this length.
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

    /// Time without a message of the driver after which it sends one that only says that it lives.
    pub fn renew_after(self) -> Duration {
        self.lease / 4
    }

    /// Time before the end of a lease at which its holder stops by itself: it could not be sure of
    /// anything that it asked for then.
    pub fn margin(self) -> Duration {
        self.lease / 8
    }

    /// Time that a successor waits after having seen the last message of a driver that holds such a
    /// lease. Longer than the lease by what two clocks may differ in speed, and by what a kernel may
    /// be late in killing.
    pub fn succession(self) -> Duration {
        self.lease + self.lease / 8
    }

    /// Time between two attempts at what another write or a lagging replica is in the way of.
    pub fn pause(self) -> Duration {
        (self.lease / 200).min(Duration::from_millis(50))
    }

    /// Time after which an attempt without an answer is made again.
    pub fn attempt(self) -> Duration {
        (self.lease / 5).min(Duration::from_secs(5))
    }
}
