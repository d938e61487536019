#![expect(unsafe_code, reason = "these system calls have no safe wrapper")]
//! The system calls of a keeper that need `unsafe`, and why each is sound here.
//!
//! All are made in a process that has one thread: the nursery, or a keeper before it starts one.

use std::{
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::Command,
};

use rustix::{process::Pid, thread::UnshareFlags};

/// Lets all threads allocate from few arenas: each of glibc's reserves 128 MB of addresses, and under
/// a limit on those (`ulimit -v`) the next thread cannot start then. To be called before there are
/// threads.
pub fn share_arenas() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no other thread allocates meanwhile, since there is none yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Closes every descriptor but the standard three: what leaked into the run's process from its
/// own parent must not leak on, and a lock held there must not outlive it here.
pub(super) fn close_inherited() -> io::Result<()> {
    // SAFETY: nothing in this process has opened or taken over a descriptor above 2 yet.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Resets every signal to its default action, because ignored ones would stay ignored in commands.
/// SIGPIPE is the exception: our own writes must fail instead, and the standard library resets it
/// in the children that it starts.
pub(super) fn default_signals() {
    const HIGHEST: libc::c_int = 64;
    for signal in (1..=HIGHEST).filter(|signal| *signal != libc::SIGPIPE) {
        // SAFETY: SIG_DFL runs no code of ours. Signals that cannot be set give an error, which
        // is as good.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Lets a write beyond the largest size of a file fail, instead of ending the process. Commands get the
/// default back.
pub(super) fn outlive_size_limit() {
    // SAFETY: SIG_IGN runs no code of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Moves this process, or its future children, into new namespaces.
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: only unsharing the descriptor table is dangerous, and only with several threads.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Makes a command enter a Landlock ruleset before its program starts.
pub(super) fn enter_rules(command: &mut Command, rules: OwnedFd) {
    let enter = move || {
        // SAFETY: this takes a descriptor and no pointer.
        let entered =
            unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) };
        match entered {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec, the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(enter) };
}

/// Splits this process in two; `None` is the child.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the process has one thread, so no lock is held by a thread that the child lacks.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}
