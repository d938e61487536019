//! Marks of runs whose calls are changing a workspace itself, and not a layer over it.
//!
//! A mark that no process is behind any more means that such changes may stand there unjudged.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gyrus_contract::Digest;
use gyrus_journal::Store;

use crate::{Stop, core::Core};

/// The folder below the store with the marks, in a folder for each workspace.
const MARKS: &str = "unjudged";

/// Number of digits of a path's hash that name the folder of its marks.
const NAME_DIGITS: usize = 16;

/// Marks that a call of the run is changing its folder, and returns once that is on disk.
pub(crate) fn mark(core: &Core) -> Result<(), Stop> {
    let folder = folder(core.kernel.store(), &core.started.workspace);
    let marked = || {
        fs::create_dir_all(&folder)?;
        let path = folder.join(core.started.run.to_string());
        if !path.exists() {
            fs::File::create(path)?;
            fs::File::open(&folder)?.sync_all()?;
        }
        io::Result::Ok(())
    };
    marked().map_err(|error| Stop::Failed(format!("`{}`: {error}", folder.display())))
}

/// Removes the mark, since no call of the run is left unjudged.
pub(crate) fn unmark(core: &Core) {
    let folder = folder(core.kernel.store(), &core.started.workspace);
    // A mark that stays makes others look once more.
    let _ = fs::remove_file(folder.join(core.started.run.to_string()));
}

/// Returns the folder with the marks for a workspace, each named after its run.
pub(crate) fn folder(store: &Store, workspace: &Path) -> PathBuf {
    let digest = Digest::of(workspace.as_os_str().as_encoded_bytes()).to_string();
    let name: String = digest.chars().take(NAME_DIGITS).collect();
    store.root().join(MARKS).join(name)
}
