//! Tasks of public suites, in the form in which their authors wrote them.
//!
//! Each form is told by its files, and read into tasks without a screen. What a task needs beyond a
//! folder (a container's packages, several services, a simulated user) is left out, and the task says
//! so as it is skipped.

mod dockerfile;
mod reading;
mod swe;
mod tau;
mod terminal_bench;

use std::{fs, path::Path};

use super::task::EvalTask;
use crate::LabError;

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
