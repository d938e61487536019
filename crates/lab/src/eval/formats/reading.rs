//! Reading the files of public suites.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::LabError;

/// Steps of a task whose suite names no limit.
pub(super) const STEPS: u64 = 100;

/// Returns a name of a suite as an id of a task: small letters, digits and `-`.
pub(super) fn id(name: &str) -> String {
    let fit = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_lowercase() || c.is_ascii_digit() => c,
        _ => '-',
    };
    name.chars().map(fit).take(60).collect()
}

pub(super) fn text(path: &Path) -> Result<String, LabError> {
    gyrus_process::read_regular_text(path).map_err(|error| {
        LabError::usage(format!("{} cannot be read", path.display())).because(error)
    })
}

pub(super) fn json(path: &Path, text: &str) -> Result<Value, LabError> {
    serde_json::from_str(text).map_err(|error| wrong(path, &error.to_string()))
}

pub(super) fn wrong(path: &Path, why: &str) -> LabError {
    LabError::usage(format!("{}: {why}", path.display()))
}

/// Returns a text as one word of a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Reads the text files below a folder, by their paths in it.
///
/// # Errors
/// One is not text, or cannot be read; in words.
pub(super) fn texts(folder: &Path) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(below) = open.pop() {
        for path in files(&below).map_err(|error| error.to_string())? {
            let named = path.strip_prefix(folder).unwrap_or(&path);
            let named = named.to_string_lossy().into_owned();
            let text = gyrus_process::read_regular_text(&path);
            let text = text.map_err(|error| format!("its file {named} is not text: {error}"))?;
            found.push((named, text));
        }
        let entries = fs::read_dir(&below).map_err(|error| error.to_string())?;
        let folders = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            entry.file_type().ok()?.is_dir().then(|| entry.path())
        });
        open.extend(folders);
    }
    Ok(found)
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files = paths.collect::<io::Result<Vec<_>>>()?;
    files.retain(|path| path.is_file());
    Ok(files)
}
