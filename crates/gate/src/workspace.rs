//! Folders that may be a workspace.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::paths::real_path;

/// A folder that must not be a workspace.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The folder does not exist, or cannot be read.
    #[error("the folder {folder} cannot be opened")]
    Unreadable {
        /// The folder as given.
        folder: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The path is a file or something else.
    #[error("{folder} is not a folder")]
    NotAFolder {
        /// The folder as given.
        folder: PathBuf,
    },
    /// The path is the root folder.
    #[error("the whole file system cannot be the workspace")]
    Root,
    #[error("{folder} is your home folder, with everything in it; name a folder below it")]
    Home {
        /// The path of the home folder.
        folder: PathBuf,
    },
    #[error(
        "{folder} and gyrus's own state in {state_home} lie within each other; name a folder \
         beside it"
    )]
    State {
        /// The real path of the folder.
        folder: PathBuf,
        /// Folder of gyrus's state.
        state_home: PathBuf,
    },
}

/// Returns the real path of a folder that may be a workspace: not `/`, not the home folder, and
/// apart from gyrus's own state.
///
/// # Errors
/// Each says what is wrong with the folder.
pub fn check_workspace(
    folder: &Path,
    home: Option<&Path>,
    state_home: &Path,
) -> Result<PathBuf, WorkspaceError> {
    let unreadable = |source| WorkspaceError::Unreadable {
        folder: folder.to_owned(),
        source,
    };
    let real = fs::canonicalize(folder).map_err(unreadable)?;
    if !fs::metadata(&real).map_err(unreadable)?.is_dir() {
        return Err(WorkspaceError::NotAFolder {
            folder: folder.to_owned(),
        });
    }
    if real.parent().is_none() {
        return Err(WorkspaceError::Root);
    }
    if home.is_some_and(|home| fs::canonicalize(home).is_ok_and(|home| home == real)) {
        return Err(WorkspaceError::Home { folder: real });
    }
    // A home that does not exist yet is compared by the path that it will have.
    let state_home = real_path(state_home).unwrap_or_else(|_| state_home.to_owned());
    if state_home.starts_with(&real) || real.starts_with(&state_home) {
        return Err(WorkspaceError::State {
            folder: real,
            state_home,
        });
    }
    Ok(real)
}

const SYSTEM: [&str; 12] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr",
    "/var",
];

/// Whether a real folder belongs to the system or to the configuration of a person's programs: what is
/// changed there changes what other programs do.
pub fn is_of_system(real: &Path, home: Option<&Path>) -> bool {
    let home = home.and_then(|home| fs::canonicalize(home).ok());
    if let Some(home) = home.filter(|home| real.starts_with(home)) {
        return real.starts_with(home.join(".config"));
    }
    let is_system = SYSTEM.iter().any(|folder| real.starts_with(folder));
    let temporary = [Path::new("/var/tmp"), Path::new("/dev/shm")];
    let is_temporary = temporary.iter().any(|place| lies_below(real, place));
    is_system && !is_temporary && !lies_below(real, &std::env::temp_dir())
}

fn lies_below(real: &Path, place: &Path) -> bool {
    fs::canonicalize(place)
        .is_ok_and(|place| place.parent().is_some() && real != place && real.starts_with(&place))
}

/// Whether a folder may be lost without regret: it is empty, or lies below the system's folder for
/// temporary files.
pub fn is_throwaway(folder: &Path) -> bool {
    let Ok(real) = fs::canonicalize(folder) else {
        return false;
    };
    let empty = fs::read_dir(&real).is_ok_and(|mut entries| entries.next().is_none());
    empty || lies_below(&real, &std::env::temp_dir())
}
