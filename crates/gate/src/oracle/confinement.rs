#![expect(
    unsafe_code,
    reason = "a closure between fork and exec has no safe form"
)]
//! What becomes of a command's process between fork and exec.

use std::{ffi::CString, io, os::unix::process::CommandExt, process::Command};

use rustix::{
    process::{Resource, Rlimit},
    thread::CapabilitySet,
};

/// What root keeps inside: to read and to spoil every file of the jail, as it could outside.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID);

/// So that a miss does not eat the machine: bytes of a file, bytes of private memory.
const LIMITS: [(Resource, u64); 3] = [
    (Resource::Fsize, 32 << 20),
    (Resource::Data, 2 << 30),
    (Resource::Core, 0),
];

/// Lets the command start in `folder` of the tree below `root`, without rights over the machine.
pub(super) fn confine(command: &mut Command, root: CString, folder: CString) {
    let enter = move || -> io::Result<()> {
        rustix::process::chroot(root.as_c_str())?;
        rustix::process::chdir(folder.as_c_str())?;
        rustix::process::setsid()?;
        for (resource, most) in LIMITS {
            let limit = Rlimit {
                current: Some(most),
                maximum: Some(most),
            };
            rustix::process::setrlimit(resource, limit)?;
        }
        for capability in CapabilitySet::all().iter() {
            if KEPT.contains(capability) {
                continue;
            }
            match rustix::thread::remove_capability_from_bounding_set(capability) {
                // This kernel has no such capability.
                Ok(()) | Err(rustix::io::Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(rustix::thread::set_no_new_privs(true)?)
    };
    // SAFETY: the closure makes system calls on strings that it owns; it neither allocates nor
    // takes a lock.
    unsafe { command.pre_exec(enter) };
}
