//! A lease on the life of this process: unless it is extended, the kernel kills the process at a
//! deadline, and with it everything that its keepers started.
//!
//! Whoever takes over the work of this process after the deadline can rely on its end without any
//! message from it: no code of this process has to run, so it may be stopped, stuck or cut off
//! from the network. A timer of the kernel sends `SIGKILL` to the process, and the death of each
//! process on the way to a command makes the kernel kill the next one (`PR_SET_PDEATHSIG`): the
//! nursery of the keepers, each guard, each server, and with the server its PID namespace.
//!
//! A tree in a PID namespace ends so whatever is stopped. At the level of a subreaper
//! ([`Level::Subreaper`](crate::keeper::Level)) the kernel continues a stopped guard, which then
//! kills its tree. A tree survives there if its guard is killed, or stopped once more, before it is
//! done, while the server is stopped or killed too; a command with the rights of the same user can
//! do that. Processes that a guard may not kill, such as setuid programs, survive as well.
//!
//! Not covered: processes that this one starts by itself, without a keeper; a process in an
//! uninterruptible wait, which ends with that wait; and time during which a host pauses the virtual
//! machine, if the host hides it from the machine's clock.

mod boot_time;
mod children;
mod timer;

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use rustix::process::getpid;

use self::{children::Claim, timer::KillTimer};

pub use boot_time::BootTime;
pub(crate) use children::start_child;

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
        /// The deadline that was asked for.
        asked: BootTime,
    },
    /// The kernel refused the timer.
    #[error("the timer of the lease cannot be set: {0}")]
    Timer(#[source] io::Error),
    /// The thread that starts keepers could not be started.
    #[error("the thread that starts keepers under the lease cannot be started: {0}")]
    Thread(#[source] io::Error),
}

/// A lease on the life of this process, in force until it is ended or dropped. A forgotten one
/// stays in force.
///
/// The kernel also forgets it when this process replaces its program (`exec`), which kills the
/// keepers at once; and a forked process has none. Once a lease has begun, keepers die as soon as
/// this process does, even if that is before the deadline or after the end of the lease: a command
/// then gets no grace.
#[derive(Debug)]
#[must_use = "dropping a lease ends it"]
pub struct Lease {
    // Dropped first: who begins the next lease must find no timer of this one.
    timer: KillTimer,
    deadline: Mutex<BootTime>,
    _claim: Claim,
}

impl Lease {
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
        let claim = Claim::take()?;
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
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the deadline to a later time. Read the clock *before* asking for the extension: what
    /// counts for the other side is when it granted that, not when the answer arrived.
    ///
    /// # Errors
    /// If the deadline in force is later, or the kernel refuses; it then stays in force.
    pub fn extend(&self, deadline: BootTime) -> Result<(), LeaseError> {
        let mut current = self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Ends the lease: the run is over, or another process may take it over at any time. Nothing is
    /// killed. Another lease may begin.
    pub fn end(self) {}
}
