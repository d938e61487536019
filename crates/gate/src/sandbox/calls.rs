//! System calls that a build never needs, refused by seccomp.
//!
//! Most of them need privileges that a confined process lacks anyway; refusing them keeps it away
//! from the kernel's rarely walked parts, and from namespaces in which it would have privileges
//! again. They fail as if the right were missing, so programs that can do without go on.

use std::collections::BTreeMap;

use gyrus_contract::Network;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// Where a filter applies beside namespaces, or instead of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    Namespaces,
    /// Sockets have to be refused altogether then, as nothing else parts them.
    Nothing,
}

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
const PERSONALITIES: &[u64] = &[0, 0x8, 0x2_0000, 0x2_0008, 0x4_0000, 0xffff_ffff];

/// The bit by which x86_64 marks calls with 32-bit pointers, which do the same under other
/// numbers.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Refuses the calls for this process and all that it starts, for good. Other calls than the
/// machine's own kind (as of 32-bit programs) end the process.
pub(super) fn refuse(network: Network, beside: Beside) -> Result<(), seccompiler::Error> {
    let errno = |errno: libc::c_int| SeccompAction::Errno(errno.unsigned_abs());
    for (rules, action) in [
        (refused()?, errno(libc::EPERM)),
        (
            UNKNOWN.iter().map(|call| (*call, Vec::new())).collect(),
            errno(libc::ENOSYS),
        ),
        (sockets(network, beside)?, errno(libc::EAFNOSUPPORT)),
    ] {
        let arch: TargetArch = std::env::consts::ARCH.try_into()?;
        let filter = SeccompFilter::new(with_x32(rules), SeccompAction::Allow, action, arch)?;
        let program: BpfProgram = filter.try_into()?;
        seccompiler::apply_filter(&program)?;
    }
    Ok(())
}

#[cfg(target_arch = "x86_64")]
fn with_x32(mut rules: Rules) -> Rules {
    let twins: Vec<_> = rules
        .iter()
        .map(|(call, rules)| (call | X32, rules.clone()))
        .collect();
    rules.extend(twins);
    rules
}

#[cfg(not(target_arch = "x86_64"))]
fn with_x32(rules: Rules) -> Rules {
    rules
}

fn refused() -> Result<Rules, seccompiler::Error> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    for flag in NAMESPACES {
        let bit = u64::from(flag.unsigned_abs());
        add(&mut rules, libc::SYS_unshare, &[masked(0, bit, bit)])?;
        if *flag != CLONE_NEWTIME {
            add(&mut rules, libc::SYS_clone, &[masked(0, bit, bit)])?;
        }
    }
    add(
        &mut rules,
        libc::SYS_personality,
        &PERSONALITIES
            .iter()
            .map(|known| (0, SeccompCmpOp::Ne, *known))
            .collect::<Vec<_>>(),
    )?;
    // Typing into a terminal.
    for request in [libc::TIOCSTI, libc::TIOCLINUX] {
        add(
            &mut rules,
            libc::SYS_ioctl,
            &[(1, SeccompCmpOp::Eq, request)],
        )?;
    }
    refuse_setuid(&mut rules)?;
    // These have numbers of their own there, among them execve, ptrace and kexec_load.
    #[cfg(target_arch = "x86_64")]
    rules.extend((512..=547).map(|call| (call | X32, Vec::new())));
    Ok(rules)
}

/// A setuid program that root leaves in the workspace would work outside.
fn refuse_setuid(rules: &mut Rules) -> Result<(), seccompiler::Error> {
    let setuid = u64::from(libc::S_ISUID);
    let create = u64::from(libc::O_CREAT.unsigned_abs());
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
        add(rules, call, &[masked(mode, setuid, setuid)])?;
    }
    for (call, flags) in [
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, 1),
        (libc::SYS_openat, 2),
    ] {
        // Without that flag there is no mode, but whatever stood there before.
        let conditions = [
            masked(flags, create, create),
            masked(flags + 1, setuid, setuid),
        ];
        add(rules, call, &conditions)?;
    }
    Ok(())
}

/// Only what a build needs. Others lead into rarely walked parts of the kernel, and some (vsock)
/// out of every network namespace.
fn sockets(network: Network, beside: Beside) -> Result<Rules, seccompiler::Error> {
    let mut families = vec![libc::AF_NETLINK];
    if beside == Beside::Namespaces {
        families.push(libc::AF_UNIX);
    }
    if beside == Beside::Namespaces || network == Network::Open {
        families.extend([libc::AF_INET, libc::AF_INET6]);
    }
    let mut rules = Rules::new();
    let none_of_them: Vec<_> = families
        .iter()
        .map(|family| (0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())))
        .collect();
    add(&mut rules, libc::SYS_socket, &none_of_them)?;
    // Of netlink, only what lists interfaces and addresses.
    let netlink = u64::from(libc::AF_NETLINK.unsigned_abs());
    let route = u64::from(libc::NETLINK_ROUTE.unsigned_abs());
    let conditions = [(0, SeccompCmpOp::Eq, netlink), (2, SeccompCmpOp::Ne, route)];
    add(&mut rules, libc::SYS_socket, &conditions)?;
    Ok(rules)
}

/// Which argument, compared how, with what.
type Condition = (u8, SeccompCmpOp, u64);

fn masked(argument: u8, mask: u64, value: u64) -> Condition {
    (argument, SeccompCmpOp::MaskedEq(mask), value)
}

/// Adds a case of a call: where all conditions hold. The kernel reads these arguments as 32 bits.
fn add(rules: &mut Rules, call: i64, conditions: &[Condition]) -> Result<(), seccompiler::Error> {
    let conditions = conditions
        .iter()
        .map(|(argument, operator, value)| {
            SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let rule = SeccompRule::new(conditions)?;
    rules.entry(call).or_default().push(rule);
    Ok(())
}
