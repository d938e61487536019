//! Trees of files that are attached nowhere yet, and attaching them.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use gyrus_contract::Layer;
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
        fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
    },
    process::geteuid,
};

use super::{
    confined::{ConfineError, refused},
    linux::{Attributes, MountReach, set_attributes},
};

/// Returns a detached copy of a file, or of a folder with all mounts below it.
pub(super) fn take(folder: &Path) -> Result<OwnedFd, ConfineError> {
    take_with(folder, Attributes::default())
}

pub(super) fn take_with(folder: &Path, attributes: Attributes) -> Result<OwnedFd, ConfineError> {
    let taken = (|| {
        let folder = open_plain(folder)?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH
            | OpenTreeFlags::AT_RECURSIVE;
        let tree = open_tree(&folder, c"", flags)?;
        set_attributes(tree.as_fd(), c"", MountReach::Below, attributes)?;
        io::Result::Ok(tree)
    })();
    taken.map_err(at("taking", folder))
}

/// Opens a path without following links, which a command may have put there.
pub(super) fn open_plain(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// A new file system of this kind, attached nowhere, from which no program can be started.
pub(super) fn new_file_system(
    kind: &std::ffi::CStr,
    options: &[(&str, &str)],
) -> rustix::io::Result<OwnedFd> {
    let system = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(&system, *key, *value)?;
    }
    fsconfig_create(&system)?;
    // Devices can be in none of them, but for terminals.
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Makes a mount read-only, with its other attributes unchanged.
pub(super) fn read_only(mount: &OwnedFd) -> Result<(), ConfineError> {
    let attributes = Attributes {
        read_only: true,
        ..Attributes::default()
    };
    set_attributes(mount.as_fd(), c"", MountReach::One, attributes)
        .map_err(refused("making a mount read-only"))
}

/// Whether links on the way to a place are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FollowLinks {
    Followed,
    Refused,
}

pub(super) fn attach(tree: &OwnedFd, place: &Path, links: FollowLinks) -> Result<(), ConfineError> {
    let attached = (|| {
        let target = match links {
            FollowLinks::Refused => open_plain(place)?,
            FollowLinks::Followed => {
                let flags = OFlags::PATH | OFlags::CLOEXEC;
                openat(CWD, place, flags, Mode::empty())?
            }
        };
        move_mount(
            tree,
            c"",
            &target,
            c"",
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH,
        )
    })();
    attached.map_err(at("putting in its place", place))
}

pub(super) fn at<E: Into<io::Error>>(
    doing: &'static str,
    path: &Path,
) -> impl FnOnce(E) -> ConfineError {
    let path = path.to_owned();
    move |source| ConfineError::At {
        doing,
        path,
        source: source.into(),
    }
}

/// Mounts the layered folder without a path, and makes the folders for its changes. It must be called
/// while the upper folder is writable. The lock in the result is held for as long as the layer is used.
pub(super) fn overlay(layer: &Layer) -> io::Result<(OwnedFd, File)> {
    for folder in [&layer.upper, &layer.work] {
        fs::create_dir_all(folder)?;
    }
    // Two mounts with the same changes would spoil them.
    let lock = File::open(&layer.upper)?;
    lock.try_lock()?;
    let system = fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    // Colons separate several lower folders; the others are a single one.
    fsconfig_set_string(&system, c"lowerdir", escaped(&layer.lower, b"\\:"))?;
    fsconfig_set_string(&system, c"upperdir", escaped(&layer.upper, b"\\"))?;
    fsconfig_set_string(&system, c"workdir", escaped(&layer.work, b"\\"))?;
    if !geteuid().is_root() {
        // Its marks on files are then such that a user may make.
        fsconfig_set_flag(&system, c"userxattr")?;
    } else {
        // Each change is then whole in the upper folder. An ordinary user's overlays have neither.
        for option in [c"redirect_dir", c"metacopy"] {
            fsconfig_set_string(&system, option, c"off")?;
        }
    }
    fsconfig_create(&system)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let tree = fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    Ok((tree, lock))
}

fn escaped(path: &Path, special: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        if special.contains(byte) {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    text
}
