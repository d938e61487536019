//! Copies of files and folders, without links.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Copies a file, or the files below a folder; links and devices are not copied.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_file() {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir_all(to)?;
    let mut open: Vec<PathBuf> = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(from.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                fs::create_dir_all(to.join(&path))?;
                open.push(path);
            } else if kind.is_file() {
                fs::copy(entry.path(), to.join(&path))?;
            }
        }
    }
    Ok(())
}
