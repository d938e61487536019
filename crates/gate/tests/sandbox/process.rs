#![expect(
    unsafe_code,
    reason = "a test needs a process that is init of a namespace"
)]
//! A keeper's work around a command, in short: a PID namespace, its init process, and the command
//! below it.

use std::{
    fs, io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{ffi::OsStrExt, process::CommandExt},
    },
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

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

/// Has a command enter rules of Landlock, as a keeper does.
pub(crate) fn enter_rules(command: &mut Command, rules: OwnedFd) {
    let enter = move || {
        // SAFETY: this takes a descriptor and no pointer.
        match unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes one system call.
    unsafe { command.pre_exec(enter) };
}

/// Refuses namespaces and mounts to this process and all that it starts, as containers do and as
/// some systems do to ordinary users; `also` refuses more calls.
pub(crate) fn refuse_namespaces(also: &[i64]) {
    let step = |code: u32, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let jump = |kind: u32, k: u32, jt, jf| libc::sock_filter {
        jt,
        jf,
        ..step(libc::BPF_JMP | kind | libc::BPF_K, k)
    };
    let load = |offset| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset);
    let end = |value| step(libc::BPF_RET | libc::BPF_K, value);
    let error = |number: i32| end(libc::SECCOMP_RET_ERRNO | number as u32);
    let mut program = vec![load(0)];
    let refused = [
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_mount,
        libc::SYS_open_tree,
        libc::SYS_fsopen,
        libc::SYS_move_mount,
        libc::SYS_mount_setattr,
    ];
    for call in refused.iter().chain(also) {
        program.extend([jump(libc::BPF_JEQ, *call as u32, 0, 1), error(libc::EPERM)]);
    }
    program.extend([
        jump(libc::BPF_JEQ, libc::SYS_clone3 as u32, 0, 1),
        error(libc::ENOSYS),
        jump(libc::BPF_JEQ, libc::SYS_clone as u32, 0, 3),
        load(16),
        // The flags of all namespaces.
        jump(libc::BPF_JSET, 0x7e02_0000, 0, 1),
        error(libc::EPERM),
        end(libc::SECCOMP_RET_ALLOW),
    ]);
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the program is as long as it says and lives until the calls are over.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(libc::SYS_seccomp, 1, 0, &raw const program) == 0
    };
    assert!(refused, "{}", io::Error::last_os_error());
}

/// Whether a process of this user can have namespaces here.
pub(crate) fn can_enter() -> bool {
    let entered = || i32::from(enter().is_err());
    in_child(entered).is_ok_and(|code| code == 0)
}

/// Runs `child` in a new process and does not wait for its end.
pub(crate) fn in_background(child: impl FnOnce() -> i32) -> io::Result<()> {
    // SAFETY: the process has a single thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => std::process::exit(child()),
        _ => Ok(()),
    }
}

/// An address as the kernel reads it.
pub(crate) type Address = [u8; 110];

pub(crate) fn unix_address(path: &Path) -> Address {
    let mut address = [0; 110];
    address[..2].copy_from_slice(&(libc::AF_UNIX as u16).to_ne_bytes());
    let path = path.as_os_str().as_bytes();
    address[2..2 + path.len()].copy_from_slice(path);
    address
}

/// Returns an address on this machine's loopback interface.
pub(crate) fn internet_address(port: u16) -> Address {
    let mut address = [0; 110];
    address[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    address[2..4].copy_from_slice(&port.to_be_bytes());
    address[4..8].copy_from_slice(&[127, 0, 0, 1]);
    address
}

/// An address that one thread changes while another connects to it.
#[derive(Clone)]
pub(crate) struct Changing(Arc<[AtomicU8; 110]>);

impl Changing {
    pub(crate) fn new(address: &Address) -> Self {
        Self(Arc::new(address.map(AtomicU8::new)))
    }

    pub(crate) fn set(&self, address: &Address) {
        for (place, byte) in self.0.iter().zip(address) {
            place.store(*byte, Ordering::Relaxed);
        }
    }

    pub(crate) fn connect(&self, socket: &OwnedFd) -> bool {
        // SAFETY: the kernel reads as many bytes as are there, and it may find any in them.
        let done = unsafe { libc::connect(socket.as_raw_fd(), self.0.as_ptr().cast(), 110) };
        done == 0
    }
}

/// Puts a socket under a number.
pub(crate) fn put_at(socket: &OwnedFd, number: i32) {
    // SAFETY: whoever owns the number wants that.
    unsafe { libc::dup2(socket.as_raw_fd(), number) };
}

/// Tries to change another process by system calls; returns what worked.
pub(crate) fn interfere(process: Pid) -> Vec<&'static str> {
    let number = process.as_raw_pid();
    let mut byte = 0_u8;
    let ours = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let theirs = libc::iovec {
        iov_base: std::ptr::with_exposed_provenance_mut(0x40_0000),
        iov_len: 1,
    };
    // SAFETY: nothing of this process is changed but the byte.
    let results = unsafe {
        let handle = libc::syscall(libc::SYS_pidfd_open, number, 0);
        [
            (
                "trace",
                libc::syscall(libc::SYS_ptrace, libc::PTRACE_SEIZE, number, 0, 0),
            ),
            (
                "attach",
                libc::syscall(libc::SYS_ptrace, libc::PTRACE_ATTACH, number, 0, 0),
            ),
            (
                "read memory",
                libc::process_vm_readv(number, &ours, 1, &theirs, 1, 0) as i64,
            ),
            (
                "write memory",
                libc::process_vm_writev(number, &ours, 1, &theirs, 1, 0) as i64,
            ),
            (
                "take a descriptor",
                libc::syscall(libc::SYS_pidfd_getfd, handle, 0, 0),
            ),
            (
                "compare",
                libc::syscall(libc::SYS_kcmp, number, std::process::id(), 0, 0, 0),
            ),
        ]
    };
    let worked = results.into_iter().filter(|(_, result)| *result != -1);
    worked.map(|(what, _)| what).collect()
}

/// Tries to set what a process would hand on to the next command. Returns what worked.
pub(crate) fn burden(process: Pid) -> Vec<&'static str> {
    let number = process.as_raw_pid();
    let low = libc::rlimit {
        rlim_cur: 8,
        rlim_max: 8,
    };
    let first = 1_u64;
    let idle = libc::sched_param { sched_priority: 0 };
    // The best-effort class, at its end.
    let late = (2 << 13) | 7;
    let own = std::process::id();
    // SAFETY: what is pointed to lives until the calls are over.
    let results = unsafe {
        [
            (
                "limit",
                libc::syscall(
                    libc::SYS_prlimit64,
                    number,
                    libc::RLIMIT_NPROC,
                    &raw const low,
                    0,
                ),
            ),
            (
                "be nice",
                libc::syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, number, 19),
            ),
            (
                "be nice as a group",
                libc::syscall(libc::SYS_setpriority, libc::PRIO_PGRP, number, 19),
            ),
            (
                "be nice as a user",
                libc::syscall(libc::SYS_setpriority, libc::PRIO_USER, 0, 19),
            ),
            (
                "bind",
                libc::syscall(libc::SYS_sched_setaffinity, number, 8, &raw const first),
            ),
            (
                "schedule",
                libc::syscall(
                    libc::SYS_sched_setscheduler,
                    number,
                    libc::SCHED_IDLE,
                    &raw const idle,
                ),
            ),
            (
                "read late",
                libc::syscall(libc::SYS_ioprio_set, 1, number, late),
            ),
            (
                "read late as a group",
                libc::syscall(libc::SYS_ioprio_set, 2, number, late),
            ),
            (
                "read late as a user",
                libc::syscall(libc::SYS_ioprio_set, 3, 0, late),
            ),
            ("join", libc::syscall(libc::SYS_setpgid, 0, number)),
        ]
    };
    // What a program does to itself is its own. The lowest priority is always allowed, whatever the
    // tests themselves run with.
    // SAFETY: these take numbers.
    let own = unsafe { libc::syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, own, 19) };
    assert_eq!(own, 0);
    let worked = results.into_iter().filter(|(_, result)| *result != -1);
    worked.map(|(what, _)| what).collect()
}
