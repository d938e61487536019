//! The demo's folders: what the runs work in, and a home of their own beside it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::LabError;

/// The folders of the demo, which are removed when this is dropped.
pub(super) struct DemoFolders {
    folder: TempDir,
    root: PathBuf,
    /// The folder that runs work in.
    pub(super) work: PathBuf,
    /// The folder for the state of everything that the demo starts.
    pub(super) home: PathBuf,
}

impl DemoFolders {
    /// Creates the folders, below the system's folder for temporary files.
    pub(super) fn make() -> Result<Self, LabError> {
        let folder = tempfile::Builder::new()
            .prefix("gyrus-demo-")
            .tempdir()
            .map_err(failed)?;
        // Spelled as processes see it.
        let root = folder.path().canonicalize().map_err(failed)?;
        let folders = Self {
            work: root.join("work"),
            home: root.join("home"),
            root,
            folder,
        };
        fs::create_dir(&folders.work).map_err(failed)?;
        Ok(folders)
    }

    /// Returns another path beside the folder in which runs work.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a file beside the folder in which runs work.
    pub(super) fn write(&self, name: impl AsRef<Path>, text: &str) -> Result<PathBuf, LabError> {
        let path = self.root.join(name);
        fs::write(&path, text).map_err(failed)?;
        Ok(path)
    }

    /// Leaves the folder in place for a person to inspect.
    pub(super) fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}

fn failed(error: std::io::Error) -> LabError {
    LabError::failed("the demo's folder cannot be made").because(error)
}
