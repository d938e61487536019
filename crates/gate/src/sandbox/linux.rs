#![expect(unsafe_code, reason = "these system calls have no safe wrapper")]
//! The system calls of the sandbox that need `unsafe`, and why each is sound here.

use std::{
    ffi::CStr,
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
};

use rustix::thread::UnshareFlags;

/// Attributes that [`set_attributes`] sets on a mount, see mount_setattr(2).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Attributes {
    /// Whether nothing in the mount can be changed.
    pub(super) read_only: bool,
    /// Whether later mounts outside are kept away from here.
    pub(super) private: bool,
    /// Whether device files work.
    pub(super) devices: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountReach {
    /// The mount alone.
    One,
    /// The mount and all mounts attached below.
    Below,
}

/// Sets attributes of mounts. Setuid programs in them then run like any other program.
pub(super) fn set_attributes(
    at: BorrowedFd<'_>,
    path: &CStr,
    reach: MountReach,
    attributes: Attributes,
) -> io::Result<()> {
    let attr = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_NOSUID
            | if attributes.devices {
                0
            } else {
                libc::MOUNT_ATTR_NODEV
            }
            | if attributes.read_only {
                libc::MOUNT_ATTR_RDONLY
            } else {
                0
            },
        attr_clr: 0,
        propagation: if attributes.private {
            libc::MS_PRIVATE
        } else {
            0
        },
        userns_fd: 0,
    };
    let flags = match reach {
        MountReach::One => libc::AT_EMPTY_PATH,
        MountReach::Below => libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
    };
    // SAFETY: the path ends with a zero, and the structure has the length that is given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const attr,
            size_of_val(&attr),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Moves this process into new namespaces.
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: only unsharing the descriptor table is dangerous, and only with several threads.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Installs a filter for this process and its descendants.
pub(super) fn install(program: &mut [libc::sock_filter]) -> io::Result<()> {
    install_as(program, 0).map(drop)
}

/// Installs a filter for this process and its descendants. Returns the listener that gets the calls
/// for which the filter says so. Fails with `EBUSY` if there is one around this process.
pub(super) fn install_with_listener(program: &mut [libc::sock_filter]) -> io::Result<OwnedFd> {
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let killable = flags | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let listener = match install_as(program, killable) {
        // Before Linux 5.19; a signal makes a thread call again there.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => install_as(program, flags)?,
        listener => listener?,
    };
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(listener) })
}

fn install_as(program: &mut [libc::sock_filter], flags: libc::c_ulong) -> io::Result<RawFd> {
    let program = libc::sock_fprog {
        len: program.len().try_into().map_err(io::Error::other)?,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the program has the length that is given and lives until the call is over.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => result.try_into().map_err(io::Error::other),
    }
}
