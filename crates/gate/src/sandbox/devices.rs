//! A `/dev` with what every program may use, and nothing of the machine's.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{CWD, Mode, OFlags, mkdirat, openat, symlinkat},
    mount::{OpenTreeFlags, open_tree},
};

use super::{
    confined::{ConfineError, refused},
    linux::{Attributes, MountReach, set_attributes},
    trees::{self, FollowLinks},
};

/// Devices without state, the same for all processes.
pub(super) const HARMLESS: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("fd/0", "stdin"),
    ("fd/1", "stdout"),
    ("fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// The future `/dev`, attached nowhere yet.
pub(super) struct Devices {
    folder: OwnedFd,
    harmless: Vec<(&'static str, OwnedFd)>,
    terminals: OwnedFd,
    shared_memory: OwnedFd,
}

/// Opens the devices while they may still be used. `temporary` will stand for shared memory.
pub(super) fn take(temporary: &Path) -> Result<Devices, ConfineError> {
    let shared_memory = trees::take(temporary)?;
    let devices = (|| {
        let options = [("size", "64k"), ("nr_inodes", "64"), ("mode", "0755")];
        let folder = trees::new_file_system(c"tmpfs", &options)?;
        let mut harmless = Vec::new();
        for device in HARMLESS {
            let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
            // What this machine lacks, the command does too.
            let Ok(tree) = open_tree(CWD, device, flags) else {
                continue;
            };
            // That keeps root from changing its rights, not from writing to it.
            let attributes = Attributes {
                read_only: true,
                devices: true,
                ..Attributes::default()
            };
            set_attributes(tree.as_fd(), c"", MountReach::One, attributes)?;
            let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
            let name = device.trim_start_matches("/dev/");
            openat(&folder, name, flags, Mode::from_raw_mode(0o444))?;
            harmless.push((device, tree));
        }
        for name in [c"pts", c"shm"] {
            mkdirat(&folder, name, Mode::from_raw_mode(0o755))?;
        }
        for (target, name) in LINKS {
            symlinkat(target, &folder, name)?;
        }
        let options = [("ptmxmode", "0666"), ("mode", "0620")];
        let terminals = trees::new_file_system(c"devpts", &options)?;
        io::Result::Ok(Devices {
            folder,
            harmless,
            terminals,
            shared_memory,
        })
    })()
    .map_err(refused("making devices"))?;
    trees::read_only(&devices.folder)?;
    Ok(devices)
}

impl Devices {
    /// Attaches all devices at their places.
    pub(super) fn attach(&self) -> Result<(), ConfineError> {
        trees::attach(&self.folder, Path::new("/dev"), FollowLinks::Followed)?;
        for (place, device) in &self.harmless {
            trees::attach(device, Path::new(place), FollowLinks::Refused)?;
        }
        for (place, tree) in [
            ("/dev/pts", &self.terminals),
            ("/dev/shm", &self.shared_memory),
        ] {
            trees::attach(tree, Path::new(place), FollowLinks::Refused)?;
        }
        Ok(())
    }
}
