//! System calls that a build never needs, refused by seccomp.
//!
//! Most of them need privileges that a confined process lacks anyway; refusing them keeps it away
//! from the kernel's rarely walked parts, and from namespaces in which it would have privileges
//! again. They fail as if the right were missing, so programs that can do without go on.

use std::{io, os::fd::OwnedFd};

use gyrus_contract::Network;

use super::{
    filter::{Filter, FilterAnswer, Test},
    linux,
};

/// Confinement beside the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OtherConfinement {
    /// Namespaces and a supervisor.
    Namespaces,
    /// Unix sockets have to be refused then: those outside can be reached by their names.
    NamespacesAlone,
    /// Landlock and a supervisor.
    Landlock(Folders, SocketMethod),
    /// Sockets have to be refused altogether then, as nothing else parts them.
    LandlockAlone,
}

/// Coverage of the writable folders by Landlock's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Folders {
    /// All files in the folders are writable.
    Whole,
    /// Not all files are writable; the supervisor decides about the rest.
    Mixed,
}

/// Way in which the supervisor obtains a socket of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SocketMethod {
    /// The supervisor takes the command's sockets when they are needed.
    Taken,
    /// The supervisor creates each socket, and keeps a twin of it.
    Made,
}

/// Types of Unix sockets that take a destination with each message. The kernel takes the second for
/// the first.
const UNCONNECTED: [libc::c_int; 2] = [libc::SOCK_DGRAM, libc::SOCK_RAW];

/// The bits of a socket's type that are not flags.
const SOCKET_TYPE: u32 = 0xf;

/// Calls refused with `EPERM`, whatever their arguments.
const REFUSED: &[i64] = &[
    // Mounts.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    SYS_OPEN_TREE_ATTR,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_open_by_handle_at,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Namespaces.
    libc::SYS_setns,
    // The kernel and the machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "aarch64")]
    294, // kexec_file_load
    libc::SYS_reboot,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_vhangup,
    libc::SYS_fanotify_init,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    // Keys that the kernel holds belong to the user, not to the run.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];

/// `open_tree_attr` of Linux 6.15.
const SYS_OPEN_TREE_ATTR: i64 = 467;
/// `fchmodat2` of Linux 6.6.
pub(super) const SYS_FCHMODAT2: i64 = 452;

/// Calls that seem unknown to the kernel: the C library then uses the older call, whose arguments a
/// filter can read.
const UNKNOWN: &[i64] = &[libc::SYS_clone3, libc::SYS_openat2];

/// Flags of every kind of namespace that clone(2) and unshare(2) can create.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    CLONE_NEWTIME,
];

/// The flag of unshare(2) alone: clone(2) keeps its signal number in these bits.
const CLONE_NEWTIME: libc::c_int = 0x80;

/// Arguments of personality(2) that programs use: usual, 32 bit, old version number, no randomising
/// of addresses (for debuggers and sanitizers), and the query of the present one.
const PERSONALITIES: &[u32] = &[0, 0x8, 0x2_0000, 0x2_0008, 0x4_0000, 0xffff_ffff];

/// Calls that the supervisor makes instead, if there is one.
const SUPERVISED: &[i64] = &[libc::SYS_connect];

/// Calls for folders that the supervisor makes instead, because a layer may be unable to move them.
pub(super) const MOVES: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_renameat,
    libc::SYS_renameat2,
];

/// Network calls that the supervisor makes instead where no namespace separates the network.
const NETWORK: &[i64] = &[libc::SYS_bind, libc::SYS_listen];

/// Calls that change what Landlock does not protect: rights, owners, times and attributes of files,
/// wherever they lie and however they were opened.
pub(super) const ATTRIBUTES: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];

/// System calls that create, rename or remove files, except those that open a file.
const ENTRIES: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    libc::SYS_mknodat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    libc::SYS_unlinkat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_renameat,
    libc::SYS_renameat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    libc::SYS_linkat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_truncate,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
];

/// Means of communication between processes of one user that only an IPC namespace separates.
const SHARED: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    SYS_PROCESS_MRELEASE,
    libc::SYS_process_madvise,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
];

/// Calls that set something of a process, which is their first argument. Landlock guards no process
/// of the same user against them.
const OF_PROCESSES: &[i64] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
];

/// The number of the process that starts commands, and of its group, in its own PID namespace.
/// Changes to it would last for the next command.
const KEEPER: u32 = 1;

/// `process_mrelease` of Linux 5.15.
const SYS_PROCESS_MRELEASE: i64 = 448;
/// `setxattrat` and `removexattrat` of Linux 6.13, whose arguments lie in memory.
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;
/// `file_setattr` of Linux 6.17; nobody has judged it and what came later.
const SYS_FILE_SETATTR: i64 = 469;

/// Kinds of requests of ioctl(2) to file systems, which change even what was opened for reading
/// alone, and those among them that do not: `FS_IOC_GETFLAGS` of both sizes of words and
/// `FS_IOC_FIEMAP`; `FS_IOC_FSGETXATTR`; `FS_IOC_GETVERSION`; `FICLONE`, `FICLONERANGE` and
/// `FIDEDUPERANGE`, which write to what was opened for that.
const FILE_REQUESTS: [(u32, &[u32]); 4] = [
    (0x6600, &[0x8008_6601, 0x8004_6601, 0xc020_660b]),
    (0x5800, &[0x801c_581f]),
    (0x7600, &[0x8008_7601]),
    (0x9400, &[0x4004_9409, 0x4020_940d, 0xc018_9436]),
];

/// Bits of an ioctl request that give its kind.
const REQUEST_KIND: u32 = 0xff00;

/// Flag by which send(2) and its kin connect a TCP socket.
const FAST_OPEN: u32 = 0x2000_0000;

/// Refuses the calls for this process and all that it starts, for good. Other calls than the
/// machine's own kind (as of 32-bit programs) end the process. Returns where a supervisor gets its
/// calls, if there is to be one; fails with `EBUSY` if this process has one already.
pub(super) fn refuse(network: Network, beside: OtherConfinement) -> io::Result<Option<OwnedFd>> {
    let mut filter = Filter::new();
    if let OtherConfinement::Landlock(..) | OtherConfinement::LandlockAlone = beside {
        filter.from(SYS_FILE_SETATTR, FilterAnswer::Error(libc::ENOSYS));
    }
    // What is called often is decided first.
    refuse_setuid(&mut filter);
    refuse_sockets(&mut filter, network, beside);
    refuse_some(&mut filter);
    filter.all(REFUSED, FilterAnswer::Error(libc::EPERM));
    filter.all(UNKNOWN, FilterAnswer::Error(libc::ENOSYS));
    match beside {
        OtherConfinement::Namespaces => {
            refuse_of_keeper(&mut filter);
            filter.all(SUPERVISED, FilterAnswer::Notify);
            filter.all(MOVES, FilterAnswer::Notify);
        }
        OtherConfinement::NamespacesAlone => refuse_of_keeper(&mut filter),
        OtherConfinement::Landlock(folders, sockets) => {
            refuse_unguarded(&mut filter);
            for calls in [SUPERVISED, NETWORK, ATTRIBUTES] {
                filter.all(calls, FilterAnswer::Notify);
            }
            if folders == Folders::Mixed {
                notify_of_entries(&mut filter);
            }
            if sockets == SocketMethod::Made {
                filter.all(&[libc::SYS_socket], FilterAnswer::Notify);
            }
        }
        OtherConfinement::LandlockAlone => {
            refuse_unguarded(&mut filter);
            filter.all(ATTRIBUTES, FilterAnswer::Error(libc::EPERM));
        }
    }
    match beside {
        OtherConfinement::Namespaces | OtherConfinement::Landlock(..) => {
            linux::install_with_listener(&mut filter.finish()).map(Some)
        }
        OtherConfinement::NamespacesAlone | OtherConfinement::LandlockAlone => {
            linux::install(&mut filter.finish()).map(|()| None)
        }
    }
}

/// Notifies the supervisor of calls that create, remove or write files.
fn notify_of_entries(filter: &mut Filter) {
    let flags = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
    let changes = Test::Has(flags.unsigned_abs());
    #[cfg(target_arch = "x86_64")]
    filter.when(libc::SYS_open, &[(1, changes)], FilterAnswer::Notify);
    filter.when(libc::SYS_openat, &[(2, changes)], FilterAnswer::Notify);
    filter.all(ENTRIES, FilterAnswer::Notify);
}

/// Refuses access to other processes and files outside that Landlock leaves open and only
/// namespaces would prevent.
fn refuse_unguarded(filter: &mut Filter) {
    let refused = FilterAnswer::Error(libc::EPERM);
    filter.all(SHARED, refused);
    filter.all(
        &[SYS_SETXATTRAT, SYS_REMOVEXATTRAT],
        FilterAnswer::Error(libc::ENOSYS),
    );
    refuse_of_processes(filter, Test::IsNot(0));
    for (kind, harmless) in FILE_REQUESTS {
        let mut tests = vec![(1, Test::Masked(REQUEST_KIND, kind))];
        tests.extend(harmless.iter().map(|known| (1, Test::IsNot(*known))));
        filter.when(libc::SYS_ioctl, &tests, FilterAnswer::Error(libc::ENOTTY));
    }
    // A lease holds up whoever opens the file.
    let lease = Test::Is(libc::F_SETLEASE.unsigned_abs());
    filter.when(libc::SYS_fcntl, &[(1, lease)], refused);
    for (call, flags) in [
        (libc::SYS_sendto, 3),
        (libc::SYS_sendmsg, 2),
        (libc::SYS_sendmmsg, 3),
    ] {
        let connects = Test::Has(FAST_OPEN);
        filter.when(
            call,
            &[(flags, connects)],
            FilterAnswer::Error(libc::EOPNOTSUPP),
        );
    }
}

/// Refuses to change settings that the process which starts commands passes on to the next one.
fn refuse_of_keeper(filter: &mut Filter) {
    let keeper = Test::Is(KEEPER);
    refuse_of_processes(filter, keeper);
    // From within its group its priority could be set without naming it.
    filter.when(
        libc::SYS_setpgid,
        &[(1, keeper)],
        FilterAnswer::Error(libc::EPERM),
    );
}

/// Refuses to set limits and priorities of some processes, and of all of a user.
fn refuse_of_processes(filter: &mut Filter, some: Test) {
    let refused = FilterAnswer::Error(libc::EPERM);
    for call in OF_PROCESSES {
        filter.when(*call, &[(0, some)], refused);
    }
    for (call, user) in [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)] {
        filter.when(call, &[(0, Test::Is(user))], refused);
        filter.when(call, &[(1, some)], refused);
    }
}

/// Refuses calls that do harm with certain arguments.
fn refuse_some(filter: &mut Filter) {
    let refused = FilterAnswer::Error(libc::EPERM);
    let all = NAMESPACES.iter().fold(0, |all, flag| all | flag);
    let bits = |flags: libc::c_int| Test::Has(flags.unsigned_abs());
    filter.when(libc::SYS_unshare, &[(0, bits(all))], refused);
    filter.when(libc::SYS_clone, &[(0, bits(all & !CLONE_NEWTIME))], refused);
    let unknown = PERSONALITIES.iter().map(|known| (0, Test::IsNot(*known)));
    let unknown: Vec<_> = unknown.collect();
    filter.when(libc::SYS_personality, &unknown, refused);
    // Typing into a terminal.
    for request in [libc::TIOCSTI, libc::TIOCLINUX] {
        // The kernel cuts it, too.
        let request = request as u32;
        filter.when(libc::SYS_ioctl, &[(1, Test::Is(request))], refused);
    }
}

/// A setuid program that root leaves in the workspace would work outside.
fn refuse_setuid(filter: &mut Filter) {
    let refused = FilterAnswer::Error(libc::EPERM);
    let setuid = Test::Has(libc::S_ISUID);
    for (call, flags) in [
        (libc::SYS_openat, 2),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, 1),
    ] {
        // Without that flag there is no mode, but whatever stood there before.
        let creates = Test::Has(libc::O_CREAT.unsigned_abs());
        filter.when(call, &[(flags, creates), (flags + 1, setuid)], refused);
    }
    for (call, mode) in [
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_chmod, 1),
        (libc::SYS_fchmod, 1),
        (libc::SYS_fchmodat, 2),
        (SYS_FCHMODAT2, 2),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_creat, 1),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_mknod, 1),
        (libc::SYS_mknodat, 2),
    ] {
        filter.when(call, &[(mode, setuid)], refused);
    }
}

/// Allows only the sockets that a build needs. Others lead into rarely walked parts of the kernel,
/// and some (vsock) out of every network namespace.
fn refuse_sockets(filter: &mut Filter, network: Network, beside: OtherConfinement) {
    let refused = FilterAnswer::Error(libc::EAFNOSUPPORT);
    let mut families = vec![libc::AF_NETLINK];
    if let OtherConfinement::Namespaces | OtherConfinement::Landlock(..) = beside {
        families.push(libc::AF_UNIX);
    }
    if beside != OtherConfinement::LandlockAlone || network == Network::Open {
        families.extend([libc::AF_INET, libc::AF_INET6]);
    }
    if matches!(beside, OtherConfinement::Landlock(..)) && network != Network::Open {
        refuse_all_but_tcp(filter);
    }
    let none_of_them = families
        .iter()
        .map(|family| (0, Test::IsNot(family.unsigned_abs())));
    let none_of_them: Vec<_> = none_of_them.collect();
    filter.when(libc::SYS_socket, &none_of_them, refused);
    // Of netlink, only what lists interfaces and addresses.
    let netlink = Test::Is(libc::AF_NETLINK.unsigned_abs());
    let other = Test::IsNot(libc::NETLINK_ROUTE.unsigned_abs());
    filter.when(libc::SYS_socket, &[(0, netlink), (2, other)], refused);
    let unix = Test::Is(libc::AF_UNIX.unsigned_abs());
    for kind in UNCONNECTED {
        let kind = Test::Masked(SOCKET_TYPE, kind.unsigned_abs());
        for call in [libc::SYS_socket, libc::SYS_socketpair] {
            filter.when(call, &[(0, unix), (1, kind)], refused);
        }
    }
}

/// Refuses to send anything over the network but TCP, which the supervisor judges.
fn refuse_all_but_tcp(filter: &mut Filter) {
    let refused = FilterAnswer::Error(libc::EACCES);
    let stream = [libc::SOCK_STREAM, libc::SOCK_STREAM | libc::SOCK_NONBLOCK]
        .into_iter()
        .flat_map(|kind| [kind, kind | libc::SOCK_CLOEXEC]);
    let other: Vec<_> = stream
        .map(|kind| (1, Test::IsNot(kind.unsigned_abs())))
        .collect();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let family = (0, Test::Is(family.unsigned_abs()));
        let other = [&[family], &other[..]].concat();
        filter.when(libc::SYS_socket, &other, refused);
        let protocols = [0, libc::IPPROTO_TCP].map(|known| (2, Test::IsNot(known.unsigned_abs())));
        let other = [&[family], &protocols[..]].concat();
        filter.when(libc::SYS_socket, &other, refused);
    }
}
