//! Profiles: the folder in which a browser keeps logins, cookies and its cache.
//!
//! An ephemeral one is made for a session and removed with it. A named one stays; one session at
//! a time has it, by a lock that the operating system takes back when its holder dies.

use std::{
    fs::{self, DirBuilder, DirEntry, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, FlockOperation, Mode, OFlags, flock, openat},
    process::geteuid,
};
use tempfile::TempDir;

/// User `nobody`, as which root's browser runs: it has none of root's rights, and its own sandbox
/// works.
pub(crate) const NOBODY: u32 = 65_534;

/// A folder that a browser may use.
#[derive(Debug)]
pub struct Profile {
    folder: PathBuf,
    /// The temporary folder, removed at the end.
    temporary: Option<TempDir>,
    /// Lock held while the browser runs.
    _lease: Option<File>,
}

/// Reason why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The name is invalid.
    #[error("`{name}` cannot name a profile: up to 40 letters, digits, `-` and `_`")]
    Name {
        /// The given name, truncated.
        name: String,
    },
    /// Another session uses it.
    #[error(
        "the browser profile `{name}` is in use by another session; wait for it, stop it, or take another --profile"
    )]
    Leased {
        /// Its name.
        name: String,
    },
    /// The folder cannot be used.
    #[error("the browser profile in `{}` cannot be used: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Prefix of the names of ephemeral profiles.
const PREFIX: &str = "gyrus-browser-";

/// Prefix of the names of the folders of desktops, which are locked as profiles are.
#[cfg_attr(
    not(feature = "desktop"),
    expect(unreachable_pub, reason = "there are none")
)]
pub const DESKTOP_PREFIX: &str = "gyrus-desktop-";

/// Maximum number of attempts to make a folder that a sweep does not take away.
const MAX_ATTEMPTS: usize = 8;

/// Maximum number of folders that are removed at once.
const MAX_SWEPT: usize = 20;

/// Removes ephemeral profiles and folders of desktops that killed processes left behind, at most 20 of
/// them. Those in use are locked, and stay.
pub fn sweep_temporary_folders() {
    sweep(&std::env::temp_dir());
}

/// Removes unlocked folders of ours, or of the user that root's browser runs as.
fn sweep(below: &Path) {
    let entries = fs::read_dir(below).into_iter().flatten().flatten();
    let own = |entry: &DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        [PREFIX, DESKTOP_PREFIX]
            .iter()
            .any(|prefix| name.starts_with(prefix))
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

impl Profile {
    /// Creates a temporary profile.
    ///
    /// # Errors
    /// When no folder can be made.
    pub fn ephemeral() -> Result<Self, ProfileError> {
        let below = std::env::temp_dir();
        let made = Self::temporary_below(&below);
        made.map_err(|source| ProfileError::Folder {
            folder: below,
            source,
        })
    }

    fn temporary_below(below: &Path) -> io::Result<Self> {
        for _ in 0..MAX_ATTEMPTS {
            let temporary = tempfile::Builder::new()
                .prefix(PREFIX)
                .permissions(fs::Permissions::from_mode(0o700))
                .tempdir_in(below)?;
            // Before it is locked, another process may sweep it away.
            let Ok(lease) = File::open(temporary.path()) else {
                continue;
            };
            let is_locked = flock(&lease, FlockOperation::NonBlockingLockExclusive).is_ok();
            if is_locked && temporary.path().exists() {
                return Ok(Self {
                    folder: temporary.path().to_owned(),
                    temporary: Some(temporary),
                    _lease: Some(lease),
                });
            }
        }
        Err(io::Error::other("other processes keep removing it"))
    }

    /// Opens the profile of this name below `profiles`, and creates it if it does not exist.
    ///
    /// # Errors
    /// When the name is invalid, another session uses it, or its folder cannot be made.
    pub fn named(profiles: &Path, name: &str) -> Result<Self, ProfileError> {
        let is_name = !name.is_empty()
            && name.len() <= 40
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if !is_name {
            let name = gyrus_text::shorten(name, 60).into_owned();
            return Err(ProfileError::Name { name });
        }
        let folder = profiles.join(name);
        let unusable = |source| ProfileError::Folder {
            folder: folder.clone(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o711)
            .create(profiles)
            .map_err(unusable)?;
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(unusable(error));
            }
            _ => {}
        }
        // Beside it: what is inside is the browser's.
        let lease = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(profiles.join(format!("{name}.lock")))
            .map_err(unusable)?;
        flock(&lease, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            ProfileError::Leased {
                name: name.to_owned(),
            }
        })?;
        Ok(Self {
            folder,
            temporary: None,
            _lease: Some(lease),
        })
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the file with the logins that sites asked the browser for, if the profile stays. It is
    /// not the browser's.
    pub(crate) fn logins(&self) -> Option<PathBuf> {
        let stays = !self.is_ephemeral();
        stays.then(|| self.folder.with_extension("logins"))
    }

    /// Whether the profile is deleted afterwards.
    pub fn is_ephemeral(&self) -> bool {
        self.temporary.is_some()
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
    fn one_session_at_a_time_has_a_profile() {
        let below = tempfile::tempdir().unwrap();
        let mine = Profile::named(below.path(), "work").unwrap();
        let error = Profile::named(below.path(), "work").unwrap_err();
        assert!(matches!(error, ProfileError::Leased { .. }), "{error}");
        let mode = fs::metadata(mine.folder()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(mine);
        Profile::named(below.path(), "work").unwrap();
        for name in ["", ".", "..", "a/b", "a b", "ä", &"x".repeat(41)] {
            let error = Profile::named(below.path(), name).unwrap_err();
            assert!(matches!(error, ProfileError::Name { .. }), "{error}");
        }
    }

    #[test]
    fn what_a_killed_one_left_behind_is_swept_and_nothing_else() {
        let below = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = below.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("cookies"), "x").unwrap();
            path
        };
        let (left, held) = (folder("gyrus-browser-left"), folder("gyrus-browser-held"));
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
