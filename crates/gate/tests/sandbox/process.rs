#![expect(
    unsafe_code,
    reason = "a test needs a process that is init of a namespace"
)]
//! What a keeper does around a command, in short: a PID namespace, its init process, and the
//! command below it.

use std::{fs, io};

use rustix::{
    process::{Pid, WaitOptions, getegid, geteuid, waitpid},
    thread::UnshareFlags,
};

/// Enters a new PID namespace, with a user namespace if it takes one.
pub(crate) fn enter() -> io::Result<()> {
    if geteuid().is_root() {
        // SAFETY: descriptors are not unshared.
        return Ok(unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWPID) }?);
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    // SAFETY: as above.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWPID) }?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Runs `child` in a new process and returns the code that it ends with.
pub(crate) fn in_child(child: impl FnOnce() -> i32) -> io::Result<i32> {
    // SAFETY: this process has a single thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => std::process::exit(child()),
        pid => {
            let status = waitpid(Pid::from_raw(pid), WaitOptions::empty())?;
            Ok(status
                .and_then(|(_, status)| status.exit_status())
                .unwrap_or(255))
        }
    }
}

/// Gives up every capability, so that no namespace can be made; of another user it cannot be kept
/// from making one.
pub(crate) fn forget_rights() {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).expect("less is always allowed");
}

/// Whether a process of this user can have namespaces here.
pub(crate) fn can_enter() -> bool {
    let entered = || i32::from(enter().is_err());
    in_child(entered).is_ok_and(|code| code == 0)
}
