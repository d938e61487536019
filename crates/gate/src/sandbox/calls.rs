//! System calls that a build never needs, refused by seccomp.
//!
//! Most of them need privileges that a confined process lacks anyway; refusing them keeps it away
//! from the kernel's rarely walked parts, and from namespaces in which it would have privileges
//! again. They fail as if the right were missing, so programs that can do without go on.

use std::{io, os::fd::OwnedFd};

use gyrus_contract::Network;

use super::{
    filter::{Answer, Filter, Test},
    linux,
};

/// Where a filter applies beside namespaces, or instead of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    Supervisor,
    /// Unix sockets have to be refused then: those outside can be reached by their names.
    Namespaces,
    /// Sockets have to be refused altogether then, as nothing else parts them.
    Nothing,
}

/// Types of Unix sockets that name whom they send to with each message. The kernel takes the
/// second for the first.
const UNCONNECTED: [libc::c_int; 2] = [libc::SOCK_DGRAM, libc::SOCK_RAW];

/// The bits of a socket's type that are no flags.
const SOCKET_TYPE: u32 = 0xf;

/// Refused with `EPERM`, whatever the arguments.
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
const SYS_FCHMODAT2: i64 = 452;

/// Unknown to the kernel, as it seems: the C library then uses the older call, whose arguments a
/// filter can read.
const UNKNOWN: &[i64] = &[libc::SYS_clone3, libc::SYS_openat2];

/// Every kind of namespace that clone(2) and unshare(2) can make.
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

/// For unshare(2) alone: clone(2) keeps its signal number in these bits.
const CLONE_NEWTIME: libc::c_int = 0x80;

/// Types of execution that programs ask for: usual, 32 bit, old version number, no randomising of
/// addresses (for debuggers and sanitizers), and the question which it is.
const PERSONALITIES: &[u32] = &[0, 0x8, 0x2_0000, 0x2_0008, 0x4_0000, 0xffff_ffff];

/// Calls that a supervisor makes instead, if there is one.
const SUPERVISED: &[i64] = &[libc::SYS_connect];

/// Refuses the calls for this process and all that it starts, for good. Other calls than the
/// machine's own kind (as of 32-bit programs) end the process. Returns where a supervisor gets its
/// calls, if there is to be one; fails with `EBUSY` if this process has one already.
pub(super) fn refuse(network: Network, beside: Beside) -> io::Result<Option<OwnedFd>> {
    let mut filter = Filter::new();
    // What is called often is decided first.
    refuse_setuid(&mut filter);
    refuse_sockets(&mut filter, network, beside);
    refuse_some(&mut filter);
    filter.all(REFUSED, Answer::Error(libc::EPERM));
    filter.all(UNKNOWN, Answer::Error(libc::ENOSYS));
    match beside {
        Beside::Supervisor => {
            filter.all(SUPERVISED, Answer::Notify);
            linux::install_with_listener(&mut filter.finish()).map(Some)
        }
        Beside::Namespaces | Beside::Nothing => linux::install(&mut filter.finish()).map(|()| None),
    }
}

/// Refuses calls that do harm with some arguments.
fn refuse_some(filter: &mut Filter) {
    let refused = Answer::Error(libc::EPERM);
    let all = NAMESPACES.iter().fold(0, |all, flag| all | flag);
    let bits = |flags: libc::c_int| Test::Has(flags.unsigned_abs());
    filter.when(libc::SYS_unshare, &[(0, bits(all))], refused);
    filter.when(libc::SYS_clone, &[(0, bits(all & !CLONE_NEWTIME))], refused);
    let unknown = PERSONALITIES.iter().map(|known| (0, Test::IsNot(*known)));
    let unknown: Vec<_> = unknown.collect();
    filter.when(libc::SYS_personality, &unknown, refused);
    // Typing into a terminal.
    for request in [libc::TIOCSTI, libc::TIOCLINUX] {
        #[expect(clippy::cast_possible_truncation, reason = "the kernel cuts it, too")]
        let request = request as u32;
        filter.when(libc::SYS_ioctl, &[(1, Test::Is(request))], refused);
    }
}

/// A setuid program that root leaves in the workspace would work outside.
fn refuse_setuid(filter: &mut Filter) {
    let refused = Answer::Error(libc::EPERM);
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

/// Only what a build needs passes. Others lead into rarely walked parts of the kernel, and some
/// (vsock) out of every network namespace.
fn refuse_sockets(filter: &mut Filter, network: Network, beside: Beside) {
    let refused = Answer::Error(libc::EAFNOSUPPORT);
    let mut families = vec![libc::AF_NETLINK];
    if beside == Beside::Supervisor {
        families.push(libc::AF_UNIX);
    }
    if beside != Beside::Nothing || network == Network::Open {
        families.extend([libc::AF_INET, libc::AF_INET6]);
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
