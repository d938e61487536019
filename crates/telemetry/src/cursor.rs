//! The position up to which a run was exported, so that the next process that drives it goes on from there.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gyrus_contract::{Digest, RunId};
use gyrus_journal::Store;
use gyrus_kernel::log_name;

/// The file that records how far a run was exported. A file that is missing, damaged or of another
/// destination is ignored: the run is then exported again, under the same ids.
#[derive(Debug)]
pub(crate) struct Cursor {
    path: PathBuf,
    destination: Digest,
}

impl Cursor {
    pub(crate) fn new(folder: &Path, run: RunId, destination: &str) -> Self {
        Self {
            path: folder.join(run.to_string()),
            destination: Digest::of(destination.as_bytes()),
        }
    }

    /// Returns the number of the last entry that was delivered; 0 if there is none.
    pub(crate) fn read(&self) -> u64 {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let read = text.trim().split_once(' ').and_then(|(destination, seq)| {
            let is_same = destination.parse() == Ok(self.destination);
            is_same.then(|| seq.parse().ok()).flatten()
        });
        read.unwrap_or(0)
    }

    /// Writes how far the run was delivered.
    pub(crate) fn write(&self, seq: u64) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let new = self.path.with_extension("new");
        fs::write(&new, format!("{} {seq}\n", self.destination))?;
        fs::rename(&new, &self.path)
    }

    /// Removes the cursor of a run that was completely delivered.
    pub(crate) fn remove(&self) {
        // One that stays says the same.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes the cursors of runs that no longer exist.
pub(crate) fn sweep(folder: &Path, store: &Store) {
    let Ok(files) = fs::read_dir(folder) else {
        return;
    };
    for file in files.flatten() {
        let path = file.path();
        let run = path
            .file_stem()
            .and_then(|name| name.to_str()?.parse().ok());
        if run.is_none_or(|run: RunId| !store.exists(&log_name(run))) {
            let _ = fs::remove_file(&path);
        }
    }
}
