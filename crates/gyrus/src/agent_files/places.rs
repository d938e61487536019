//! The folder of the files of agents and of roles of sub-runs.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gyrus::runtime::Home;

/// Maximum size of a file in bytes.
pub(super) const MAX_FILE: u64 = 256 << 10;

const MAX_FILES: usize = 2_000;

pub(crate) fn folder(home: &Home) -> PathBuf {
    home.config.with_file_name("agents")
}

/// Returns the files of a folder, sorted by name; none if there is no folder.
pub(super) fn paths(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
        if paths.len() > MAX_FILES {
            let message = format!("there are more than {MAX_FILES} agent files");
            return Err(io::Error::other(message));
        }
    }
    paths.sort();
    Ok(paths)
}
