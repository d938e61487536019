//! A world in which namespaces are refused, as in most containers and for ordinary users of some
//! systems.

mod filter;

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::Path,
    process::Command,
};

/// The user that commands run as, if the tests are root's.
const NOBODY: u32 = 65_534;

/// Has a command run where namespaces are refused, by an ordinary user to whom all in `folder` is
/// given.
pub(crate) fn refuse(command: &mut Command, folder: &Path) {
    if rustix::process::geteuid().is_root() {
        give(folder);
        command.uid(NOBODY).gid(NOBODY);
    }
    filter::refuse_namespaces(command);
}

/// Gives a folder with all in it to the user that commands run as.
fn give(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        std::os::unix::fs::lchown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        if path.is_dir() && !path.is_symlink() {
            left.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
    }
    chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
}
