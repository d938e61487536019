//! Tasks of public suites, in the form in which their authors wrote them.
//!
//! Each form is told by its files, and read into tasks without a screen. What a task needs beyond a
//! folder (a container's packages, several services, a simulated user) is left out, and the task says
//! so as it is skipped.

mod dockerfile;
mod swe;
mod tau;
mod terminal_bench;

use std::{fs, path::Path};

use serde_json::Value;

use super::{folder::CHECKS, suite::listed, task::EvalTask};
use crate::LabError;

/// Steps of a task whose suite names no limit.
const STEPS: u64 = 100;

/// Returns the tasks of a file or folder in a form of its own; nothing if it has none of these.
///
/// # Errors
/// It has such a form, and cannot be read.
pub(super) fn read(path: &Path) -> Option<Result<Vec<EvalTask>, LabError>> {
    let ends = |end: &str| path.extension().is_some_and(|it| it == end);
    if path.is_file() {
        let is_list = ends("json") || ends("jsonl");
        return is_list.then(|| swe::read(path));
    }
    if path.join(tau::TASKS).is_file() {
        return Some(tau::read(path));
    }
    if path.join(terminal_bench::TASK).is_file() {
        return Some(terminal_bench::read(path).map(|task| vec![task]));
    }
    let mut folders: Vec<_> = fs::read_dir(path)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|folder| folder.join(terminal_bench::TASK).is_file())
        .collect();
    folders.sort();
    let tasks = || folders.iter().map(|it| terminal_bench::read(it)).collect();
    (!folders.is_empty()).then(tasks)
}

/// Returns a name of a suite as an id of a task: small letters, digits and `-`.
fn id(name: &str) -> String {
    let fit = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_lowercase() || c.is_ascii_digit() => c,
        _ => '-',
    };
    name.chars().map(fit).take(60).collect()
}

fn text(path: &Path) -> Result<String, LabError> {
    gyrus_process::read_regular_text(path).map_err(|error| {
        LabError::usage(format!("{} cannot be read", path.display())).because(error)
    })
}

fn json(path: &Path, text: &str) -> Result<Value, LabError> {
    serde_json::from_str(text).map_err(|error| wrong(path, &error.to_string()))
}

fn wrong(path: &Path, why: &str) -> LabError {
    LabError::usage(format!("{}: {why}", path.display()))
}

/// Returns a text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Reads the text files below a folder, by their paths in it.
///
/// # Errors
/// One is not text, or cannot be read; in words.
fn texts(folder: &Path) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(below) = open.pop() {
        for path in listed(&below).map_err(|error| error.to_string())? {
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
