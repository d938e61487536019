//! Temporary folders of browsers and desktops. They are locked while they are used, by locks that the
//! operating system takes back, so those of processes that were killed can be told and swept.

use std::{
    fs::{self, DirEntry, File, Permissions},
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use rustix::{
    fs::{CWD, FlockOperation, Mode, OFlags, flock, openat},
    process::geteuid,
};
use tempfile::TempDir;

/// User `nobody`, as which root's browser runs: it has none of root's rights, and its own sandbox
/// works.
pub(crate) const NOBODY: u32 = 65_534;

/// Prefixes of the names of the folders.
const OF_BROWSER: &str = "gyrus-browser-";
const OF_DESKTOP: &str = "gyrus-desktop-";

/// Maximum number of attempts to make a folder, as a concurrent sweep may remove it.
const MAX_ATTEMPTS: usize = 8;

/// Maximum number of folders that are removed at one time.
const MAX_SWEPT: usize = 20;

/// A locked temporary folder, which is removed when the value is dropped.
#[derive(Debug)]
pub struct TemporaryFolder {
    folder: TempDir,
    _lock: File,
}

impl TemporaryFolder {
    pub(crate) fn of_browser() -> io::Result<Self> {
        Self::named(OF_BROWSER)
    }

    /// Makes a folder for a desktop. Its path is short, as those of sockets must be.
    ///
    /// # Errors
    /// No folder can be made.
    pub fn of_desktop() -> io::Result<Self> {
        Self::named(OF_DESKTOP)
    }

    fn named(prefix: &str) -> io::Result<Self> {
        for _ in 0..MAX_ATTEMPTS {
            let folder = tempfile::Builder::new()
                .prefix(prefix)
                .permissions(Permissions::from_mode(0o700))
                .tempdir()?;
            // Before it is locked, another process may sweep it away.
            let Ok(lock) = File::open(folder.path()) else {
                continue;
            };
            let is_locked = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
            if is_locked && folder.path().exists() {
                return Ok(Self {
                    folder,
                    _lock: lock,
                });
            }
        }
        Err(io::Error::other("other processes keep removing it"))
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes temporary folders of browsers and desktops that killed processes left behind, at most 20
/// of them. Those in use are locked, and stay.
pub fn sweep_temporary_folders() {
    sweep(&std::env::temp_dir());
}

/// Removes unlocked folders of ours, or of the user that root's browser runs as.
fn sweep(below: &Path) {
    let entries = fs::read_dir(below).into_iter().flatten().flatten();
    let own = |entry: &DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.starts_with(OF_BROWSER) || name.starts_with(OF_DESKTOP)
    };
    let ours = [geteuid().as_raw(), browser_user()];
    let mut swept = 0;
    for entry in entries.filter(own) {
        let path = entry.path();
        // Never a link: another user could have put one here.
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(folder) = openat(CWD, &path, flags, Mode::empty()).map(File::from) else {
            continue;
        };
        let is_ours = folder
            .metadata()
            .is_ok_and(|data| ours.contains(&data.uid()));
        if is_ours && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(&path);
            swept += 1;
        }
        if swept == MAX_SWEPT {
            return;
        }
    }
}

/// Returns the user that browsers run as.
fn browser_user() -> u32 {
    match geteuid() {
        user if user.is_root() => NOBODY,
        user => user.as_raw(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_one_left_behind_is_swept_and_nothing_else() {
        let below = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = below.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("cookies"), "x").unwrap();
            path
        };
        let (left, held) = (folder("gyrus-browser-left"), folder("gyrus-desktop-held"));
        let other = folder("somebody-else");
        let link = below.path().join("gyrus-browser-link");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let lease = File::open(&held).unwrap();
        flock(&lease, FlockOperation::NonBlockingLockExclusive).unwrap();
        sweep(below.path());
        assert!(!left.exists());
        assert!(held.exists() && other.join("cookies").exists() && link.is_symlink());
    }
}
