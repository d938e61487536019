#![expect(unsafe_code, reason = "these system calls have no safe wrapper")]
//! A timer of the kernel that kills this process.

use std::{io, mem, ptr};

use super::boot_time::BootTime;

const SECOND_MS: u64 = 1_000;

/// A timer that sends `SIGKILL` to this process. Dropping it disarms it.
///
/// The kernel reserves the signal when it makes the timer, so delivering it cannot fail.
#[derive(Debug)]
pub(super) struct KillTimer(libc::timer_t);

// SAFETY: the value is a number of the kernel's, and nothing is read through it. The calls below may
// be made by any thread.
unsafe impl Send for KillTimer {}
// SAFETY: as above; the kernel locks the timer.
unsafe impl Sync for KillTimer {}

impl KillTimer {
    /// Creates a timer that is not set.
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: all fields are numbers or unions of numbers and pointers, which may be zero.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = libc::SIGKILL;
        let mut timer: libc::timer_t = ptr::null_mut();
        // SAFETY: both pointers lead to live values of the right types.
        match unsafe { libc::timer_create(libc::CLOCK_BOOTTIME, &mut event, &mut timer) } {
            0 => Ok(Self(timer)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Sets the time of the signal, in place of an earlier setting.
    pub(super) fn set(&self, deadline: BootTime) -> io::Result<()> {
        // Zero would disarm the timer; the first millisecond has long passed.
        let deadline = deadline.as_ms().max(1);
        // SAFETY: all fields are numbers.
        let mut setting: libc::itimerspec = unsafe { mem::zeroed() };
        setting.it_value.tv_sec =
            libc::time_t::try_from(deadline / SECOND_MS).unwrap_or(libc::time_t::MAX);
        // Below a billion, which every `c_long` holds.
        setting.it_value.tv_nsec = (deadline % SECOND_MS * 1_000_000) as libc::c_long;
        let absolute = libc::TIMER_ABSTIME;
        // SAFETY: the timer lives as long as `self`, and the pointer leads to a live value.
        match unsafe { libc::timer_settime(self.0, absolute, &setting, ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for KillTimer {
    fn drop(&mut self) {
        // SAFETY: the timer exists, and nothing uses it any more. That cannot fail then.
        unsafe { libc::timer_delete(self.0) };
    }
}
