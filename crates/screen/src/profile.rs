//! Profiles: the folder in which a browser keeps logins, cookies and its cache.
//!
//! An ephemeral one is made for a session and removed with it. A named one stays; one session at
//! a time has it, by a lock that the operating system takes back when its holder dies.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

use crate::temporary::TemporaryFolder;

/// A folder in which a browser keeps its profile.
#[derive(Debug)]
pub struct Profile {
    folder: PathBuf,
    /// The temporary folder, removed at the end.
    temporary: Option<TemporaryFolder>,
    /// Lock of a permanent profile, held while the browser runs.
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
    #[error(
        "the browser profile `{name}` is in use by another session; wait for it, stop it, or take another --profile"
    )]
    Leased { name: String },
    #[error("the browser profile in `{}` cannot be used: {source}", folder.display())]
    Folder {
        folder: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Checks that a profile name is valid.
///
/// # Errors
/// The name is invalid.
pub fn check_profile_name(name: &str) -> Result<(), ProfileError> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if (1..=40).contains(&name.len()) && name.bytes().all(is_part) {
        return Ok(());
    }
    let name = gyrus_text::shorten(name, 60).into_owned();
    Err(ProfileError::Name { name })
}

impl Profile {
    /// Creates a temporary profile.
    ///
    /// # Errors
    /// When no folder can be made.
    pub fn ephemeral() -> Result<Self, ProfileError> {
        let made = TemporaryFolder::of_browser();
        let temporary = made.map_err(|source| ProfileError::Folder {
            folder: std::env::temp_dir(),
            source,
        })?;
        Ok(Self {
            folder: temporary.path().to_owned(),
            temporary: Some(temporary),
            _lease: None,
        })
    }

    /// Opens the profile of this name below `profiles`, and creates it if it does not exist.
    ///
    /// # Errors
    /// When the name is invalid, another session uses it, or its folder cannot be made.
    pub fn named(profiles: &Path, name: &str) -> Result<Self, ProfileError> {
        check_profile_name(name)?;
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

    /// Returns the folder of the profile.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the file with the logins that sites asked for, if the profile is permanent. The
    /// browser does not use this file.
    pub(crate) fn logins(&self) -> Option<PathBuf> {
        let stays = !self.is_ephemeral();
        stays.then(|| self.folder.with_extension("logins"))
    }

    /// Whether the profile is deleted afterwards.
    pub fn is_ephemeral(&self) -> bool {
        self.temporary.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

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
}
