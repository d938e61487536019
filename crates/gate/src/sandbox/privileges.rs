//! Giving up privileges, and limits on what a process may use.

use std::{fs, io};

use gyrus_contract::ResourceLimits;
use rustix::{
    io::Errno,
    process::{DumpableBehavior, Resource, Rlimit, geteuid, set_dumpable_behavior, setrlimit},
    thread::{
        CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    },
};

/// Capabilities that root keeps: enough to unpack archives with foreign owners, to work on files of
/// others and to start programs as others, all of which happens to files and processes only, and
/// only to those that mounts and namespaces let it see. Nothing of it touches the machine.
const KEPT_BY_ROOT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID);

/// One more than the highest capability that a kernel may know.
const CAPABILITIES: u32 = 64;

/// Gives up all privileges of this process beyond its user's rights, for good and for its children.
pub(super) fn give_up() -> io::Result<()> {
    set_no_new_privs(true)?;
    let kept = if geteuid().is_root() {
        KEPT_BY_ROOT
    } else {
        CapabilitySet::empty()
    };
    let held = capabilities(None)?;
    clear_ambient_capability_set()?;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        for number in 0..CAPABILITIES {
            let capability = CapabilitySet::from_bits_retain(1 << number);
            if kept.contains(capability) {
                continue;
            }
            match remove_capability_from_bounding_set(capability) {
                Ok(()) => {}
                // The first that this kernel does not know.
                Err(Errno::INVAL) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    keep_only(held.permitted & kept)
}

fn keep_only(kept: CapabilitySet) -> io::Result<()> {
    set_capabilities(
        None,
        CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    // Processes with the same user may not look into this one, nor take over its descriptors.
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Gives up the privileges that a supervisor does not need. It keeps those of a command, and may
/// look into processes that are not dumpable or have changed users.
pub(super) fn keep_for_supervising() -> io::Result<()> {
    set_no_new_privs(true)?;
    let kept = CapabilitySet::SYS_PTRACE.union(if geteuid().is_root() {
        KEPT_BY_ROOT
    } else {
        CapabilitySet::empty()
    });
    keep_only(capabilities(None)?.permitted & kept)
}

/// Returns the number of processes and threads of this machine; 0 if it is unknown.
pub(super) fn tasks_of_machine() -> u64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    // `0.00 0.01 0.05 1/234 5678`
    let tasks = text.split_ascii_whitespace().nth(3);
    let tasks = tasks.and_then(|tasks| tasks.split_once('/')?.1.parse().ok());
    tasks.unwrap_or(0)
}

/// Limits each process, and the number of this user's processes, of which `outside` exist already.
pub(super) fn limit(limits: &ResourceLimits, outside: u64) -> io::Result<()> {
    for (resource, value) in [
        (Resource::Nproc, limits.processes.saturating_add(outside)),
        // What a program writes to; reserved addresses, of which some reserve a lot, do not count.
        (Resource::Data, limits.memory_bytes),
        (Resource::Cpu, limits.cpu_seconds),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Core, 0),
    ] {
        let held = rustix::process::getrlimit(resource);
        // A limit from outside may be lower.
        let value = held.maximum.map_or(value, |held| held.min(value));
        let limit = Rlimit {
            current: Some(value),
            maximum: Some(value),
        };
        setrlimit(resource, limit)?;
    }
    Ok(())
}

/// Makes the confined process die first if memory runs out. Best effort: nothing depends on it.
pub(super) fn yield_memory() {
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}

/// Reverts [`yield_memory`] for the process that has to end the command. Best effort, too.
pub(super) fn keep_memory() {
    let _ = fs::write("/proc/self/oom_score_adj", "0");
}
