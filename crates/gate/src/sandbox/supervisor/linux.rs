#![expect(unsafe_code, reason = "these system calls have no safe wrapper")]
//! The system calls of the supervisor that need `unsafe`, and why each is sound here.
//!
//! See seccomp_unotify(2) for those on a listener.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

use rustix::{io::Errno, process::Pid};

/// `SECCOMP_ADDFD_FLAG_SEND` of Linux 5.14.
const SECCOMP_ADDFD_FLAG_SEND: u32 = 2;

/// A supervised call, in which its thread waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct SupervisedCall {
    /// Identifies the call to the listener.
    pub(super) id: u64,
    /// The thread that makes the call.
    pub(super) thread: u32,
    /// Number of the system call.
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
}

/// Splits this process in two; `None` is the child.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: whoever confines a process has one thread, so no lock is held by a thread that the
    // child lacks.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Closes every descriptor from `first` on. Their owners must never be used again.
pub(super) fn close_from(first: libc::c_uint) -> io::Result<()> {
    // SAFETY: only the new supervisor calls this, which never returns to what owned them.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) }).map(drop)
}

/// Makes the kernel run a thread and its supervisor in turn on one processor, which is faster.
/// Since Linux 6.6.
pub(super) fn wake_in_turn(listener: BorrowedFd<'_>) -> io::Result<()> {
    const SYNC_WAKE_UP: libc::c_ulong = 1;
    // SAFETY: this request takes a number, no pointer.
    check(unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS,
            SYNC_WAKE_UP,
        )
    })
    .map(drop)
}

/// Waits for the next call. Fails with `ENOENT` if its thread was killed meanwhile.
pub(super) fn receive(listener: BorrowedFd<'_>) -> io::Result<SupervisedCall> {
    // SAFETY: the structure consists of integers, and the kernel demands zeros.
    let mut received: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the request is made for this structure.
    check(unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_RECV,
            &raw mut received,
        )
    })?;
    Ok(SupervisedCall {
        id: received.id,
        thread: received.pid,
        number: received.data.nr.into(),
        arguments: received.data.args,
    })
}

/// Whether the thread still waits in the call. If so, its number is not another's.
pub(super) fn is_waiting(listener: BorrowedFd<'_>, call: &SupervisedCall) -> bool {
    // SAFETY: the request is made for a number of this size.
    let checked = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
            &raw const call.id,
        )
    };
    checked == 0
}

/// Lets the kernel carry out a call as if there were no supervisor.
pub(super) fn pass(listener: BorrowedFd<'_>, call: &SupervisedCall) -> io::Result<()> {
    respond(
        listener,
        libc::seccomp_notif_resp {
            id: call.id,
            val: 0,
            error: 0,
            flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        },
    )
}

/// Ends a call by giving the caller a new descriptor, a duplicate of `descriptor`.
pub(super) fn answer_with(
    listener: BorrowedFd<'_>,
    call: &SupervisedCall,
    descriptor: BorrowedFd<'_>,
    flags: u32,
) -> Result<(), Errno> {
    let added = libc::seccomp_notif_addfd {
        id: call.id,
        flags: SECCOMP_ADDFD_FLAG_SEND,
        srcfd: descriptor.as_raw_fd().unsigned_abs(),
        newfd: 0,
        newfd_flags: flags,
    };
    add(listener, &added)
}

/// Ends a call with zero or an error. The kernel itself never carries it out.
pub(super) fn answer(
    listener: BorrowedFd<'_>,
    call: &SupervisedCall,
    result: Result<(), Errno>,
) -> io::Result<()> {
    respond(
        listener,
        libc::seccomp_notif_resp {
            id: call.id,
            val: 0,
            error: result.err().map_or(0, |error| -error.raw_os_error()),
            flags: 0,
        },
    )
}

fn respond(listener: BorrowedFd<'_>, mut response: libc::seccomp_notif_resp) -> io::Result<()> {
    // SAFETY: the request is made for this structure.
    check(unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SEND,
            &raw mut response,
        )
    })
    .map(drop)
}

/// Replaces the descriptor with a given number in the calling process.
pub(super) fn replace(
    listener: BorrowedFd<'_>,
    call: &SupervisedCall,
    descriptor: BorrowedFd<'_>,
    number: u32,
    flags: u32,
) -> Result<(), Errno> {
    let added = libc::seccomp_notif_addfd {
        id: call.id,
        flags: libc::SECCOMP_ADDFD_FLAG_SETFD as u32,
        srcfd: descriptor.as_raw_fd().unsigned_abs(),
        newfd: number,
        newfd_flags: flags,
    };
    add(listener, &added)
}

fn add(listener: BorrowedFd<'_>, added: &libc::seccomp_notif_addfd) -> Result<(), Errno> {
    // The number of the new descriptor, where there is no error.
    // SAFETY: the request is made for this structure.
    let number = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_ADDFD,
            &raw const *added,
        )
    };
    check_errno(number)
}

/// Copies memory of a thread's process.
pub(super) fn read_memory(thread: u32, address: u64, into: &mut [u8]) -> Result<(), Errno> {
    let Ok(process) = libc::pid_t::try_from(thread) else {
        return Err(Errno::SRCH);
    };
    let ours = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let theirs = libc::iovec {
        iov_base: std::ptr::with_exposed_provenance_mut(
            usize::try_from(address).map_err(|_| Errno::FAULT)?,
        ),
        iov_len: into.len(),
    };
    // SAFETY: the kernel writes to the slice only, and looks whether the other address is one.
    let read =
        unsafe { libc::process_vm_readv(process, &raw const ours, 1, &raw const theirs, 1, 0) };
    match usize::try_from(read) {
        Ok(read) if read == into.len() => Ok(()),
        Ok(_) => Err(Errno::FAULT),
        Err(_) => Err(last_errno()),
    }
}

/// Connects a socket to an address in the form of its family.
pub(super) fn connect(socket: BorrowedFd<'_>, address: &[u8]) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::INVAL)?;
    // SAFETY: the kernel copies that many bytes, however they are aligned.
    check_errno(unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) })
}

/// Number of the process that listens at the other end of a Unix socket, or that did so before it
/// ended; 0 if it is not in this process's PID namespace.
pub(super) fn listener_of(socket: BorrowedFd<'_>) -> Result<libc::pid_t, Errno> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = size_of_val(&peer) as libc::socklen_t;
    // SAFETY: the option fills this structure, whose length is given.
    check_errno(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    })?;
    Ok(peer.pid)
}

fn check(result: impl Into<i64>) -> io::Result<i64> {
    match result.into() {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

fn check_errno(result: libc::c_int) -> Result<(), Errno> {
    match result {
        -1 => Err(last_errno()),
        _ => Ok(()),
    }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}
