//! A lease on the life of this process: unless it is extended, the kernel kills the process at a
//! deadline, and with it everything that its keepers started.
//!
//! Whoever takes over the work of this process after the deadline can rely on its end without any
//! message from it: no code of this process has to run, so it may be stopped, stuck or cut off
//! from the network. A timer of the kernel sends `SIGKILL` to the process, and the death of each
//! process on the way to a command makes the kernel kill the next one (`PR_SET_PDEATHSIG`): the
//! nursery of the keepers, each guard, each server, and with the server its PID namespace.
//!
//! A tree in a PID namespace ends so, whatever is stopped. At the level of a subreaper
//! ([`KeeperLevel::Subreaper`](crate::keeper::KeeperLevel)) the kernel continues a stopped guard, which then
//! kills its tree. A tree survives there if its guard is killed, or stopped once more before it has
//! killed the tree, while the server is stopped or killed too; a command with the rights of the
//! same user can do that. Processes that a guard may not kill, such as setuid programs, survive as
//! well.
//!
//! Not covered: what this process starts by itself, without a keeper; a process in an
//! uninterruptible wait or frozen by a control group of version 1, which ends when it goes on; and
//! time during which a host pauses the virtual machine, if the host hides that from the machine's
//! clock. The end takes milliseconds from the deadline on, so leave a margin for it.

mod boot_time;
mod children;
mod error;
mod timer;

use parking_lot::Mutex;
use rustix::process::getpid;

use self::{children::SoleLease, timer::KillTimer};

pub use boot_time::BootTime;
pub(crate) use children::start_child;
pub use error::LeaseError;

/// A lease on the life of this process, in force until it is ended or dropped. A forgotten one
/// stays in force.
///
/// Once a lease has begun, keepers die as soon as this process does, even if that is before the
/// deadline or after the end of the lease, and a command gets no grace then. They also die if the
/// nursery is killed, or if this process replaces its program (`exec`), which ends the lease too. A
/// process that this one forks has no lease.
#[derive(Debug)]
#[must_use = "dropping a lease ends it"]
pub struct LifeLease {
    // Dropped first: who begins the next lease must find no timer of this one.
    timer: KillTimer,
    deadline: Mutex<BootTime>,
    _claim: SoleLease,
}

impl LifeLease {
    /// Begins a lease. Must precede the first keeper of this process. A deadline in the past kills
    /// the process at once.
    ///
    /// # Errors
    /// If a lease is in force, a keeper was started without one, this process is an init process,
    /// or the kernel refuses a timer or a thread.
    pub fn begin(deadline: BootTime) -> Result<Self, LeaseError> {
        if getpid().is_init() {
            return Err(LeaseError::IsInit);
        }
        let claim = SoleLease::take()?;
        let timer = KillTimer::new().map_err(LeaseError::Timer)?;
        timer.set(deadline).map_err(LeaseError::Timer)?;
        Ok(Self {
            timer,
            deadline: Mutex::new(deadline),
            _claim: claim,
        })
    }

    /// Returns the deadline in force.
    pub fn deadline(&self) -> BootTime {
        *self.deadline.lock()
    }

    /// Moves the deadline to a later time. Read the clock *before* asking for the extension: what
    /// counts for the other side is when it granted that, not when the answer arrived.
    ///
    /// # Errors
    /// If the deadline in force is later, or the kernel refuses; it then stays in force.
    pub fn extend(&self, deadline: BootTime) -> Result<(), LeaseError> {
        let mut current = self.deadline.lock();
        if deadline < *current {
            return Err(LeaseError::Earlier {
                current: *current,
                asked: deadline,
            });
        }
        self.timer.set(deadline).map_err(LeaseError::Timer)?;
        *current = deadline;
        Ok(())
    }

    /// Ends the lease, when the run is over or another process may take it over. Nothing is killed,
    /// and another lease may begin.
    pub fn end(self) {}
}
