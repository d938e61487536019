//! Binds a keeper's processes to the life of the run's process, which has a lease.
//!
//! The kernel signals the death of a parent to its child: from the run's process to the nursery, to
//! each guard, to its server. So none of them has to notice anything, and all may be stopped.

use std::{env, io, os::fd::OwnedFd};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, getpid, pidfd_open, set_parent_process_death_signal, setsid,
    },
};

/// Second argument of a nursery whose run's process has a lease.
pub(super) const ARGUMENT: &str = "leased";

/// The tie between keepers and the run's process.
pub(super) enum KeeperTie {
    /// Keepers notice the end of the run's process by themselves.
    None,
    /// Keepers die with their nursery, and the nursery dies with the run's process.
    Nursery(OwnedFd),
}

impl KeeperTie {
    /// Binds this process, a nursery, to its parent if its arguments ask for that.
    pub(super) fn of_nursery() -> io::Result<Self> {
        if env::args_os().nth(2).is_none_or(|asked| asked != ARGUMENT) {
            return Ok(Self::None);
        }
        // A run's process that has ended already gets no answer from a keeper, so it has ordered no
        // command.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        Ok(Self::Nursery(pidfd_open(getpid(), PidfdFlags::empty())?))
    }

    /// Binds this process, a guard, to the nursery that it was forked from: `signal` comes when the
    /// nursery ends.
    pub(super) fn bind_guard(&self, signal: Signal) -> io::Result<()> {
        let Self::Nursery(nursery) = self else {
            return Ok(());
        };
        if signal != Signal::KILL {
            // The end of the nursery would leave its process group to nobody, and the kernel sends
            // SIGHUP to the stopped processes of such a group. A session of its own costs a
            // keeper time on a busy machine.
            setsid()?;
        }
        set_parent_process_death_signal(Some(signal))?;
        let at_once = Timespec::default();
        match poll(&mut [PollFd::new(nursery, PollFlags::IN)], Some(&at_once))? {
            0 => Ok(()),
            _ => Err(io::Error::other("the nursery has ended")),
        }
    }

    /// Binds this process, a server, to its guard: `signal` is sent when the guard ends. The server
    /// must then check whether the guard still lives.
    pub(super) fn bind_server(&self, signal: Signal) -> io::Result<()> {
        match self {
            Self::None => Ok(()),
            Self::Nursery(_) => Ok(set_parent_process_death_signal(Some(signal))?),
        }
    }

    /// Waits for the end of the nursery, or of a child that has not been waited for. Returns at once
    /// if there is no nursery to die with.
    pub(super) fn wait_with(&self, child: Pid) -> io::Result<()> {
        let Self::Nursery(nursery) = self else {
            return Ok(());
        };
        let child = pidfd_open(child, PidfdFlags::empty())?;
        loop {
            let mut watched = [
                PollFd::new(nursery, PollFlags::IN),
                PollFd::new(&child, PollFlags::IN),
            ];
            match poll(&mut watched, None) {
                Err(Errno::INTR) => {}
                ended => return Ok(ended.map(drop)?),
            }
        }
    }
}
