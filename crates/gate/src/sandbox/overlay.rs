//! Folders shared by all whose changes stay private.

use std::{
    fs::{self, File},
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
};

use gyrus_contract::Layer;
use rustix::{
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
        fsconfig_set_string, fsmount, fsopen,
    },
    process::geteuid,
};

/// The layered folder, attached nowhere; folders for its changes are made. To be called while the upper folder is writable.
/// The second result has to be held for as long as the layer is used.
pub(super) fn layer(layer: &Layer) -> io::Result<(OwnedFd, File)> {
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
