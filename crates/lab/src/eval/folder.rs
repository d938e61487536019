//! The folder of an attempt: filled before the run, checked after it.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use super::task::EvalTask;
use crate::{CommandEnd, Installation, LabError};

/// A folder that may be lost, with the files of a task.
pub(super) struct TaskFolder(TempDir);

impl TaskFolder {
    /// Makes the folder with the files of the suite and those of the task.
    pub(super) fn new(
        task: &EvalTask,
        suite_files: &BTreeMap<OsString, Vec<u8>>,
    ) -> Result<Self, LabError> {
        let made = || {
            let folder = tempfile::Builder::new().prefix("gyrus-eval-").tempdir()?;
            for (name, bytes) in suite_files {
                fs::write(folder.path().join(name), bytes)?;
            }
            if let Some(from) = &task.folder {
                copy(from, folder.path())?;
            }
            for (path, text) in &task.files {
                let file = folder.path().join(path);
                fs::create_dir_all(file.parent().unwrap_or(folder.path()))?;
                fs::write(file, text)?;
            }
            Ok(Self(folder))
        };
        made().map_err(|error: io::Error| {
            LabError::failed(format!(
                "the folder for an attempt at `{}` cannot be made",
                task.id
            ))
            .because(error)
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs the task's own preparation. An evaluation cannot go on without it.
    pub(super) async fn set_up(
        &self,
        task: &EvalTask,
        gyrus: &dyn Installation,
    ) -> Result<(), LabError> {
        let Some(setup) = &task.setup else {
            return Ok(());
        };
        match gyrus.run_command(self.path(), setup).await? {
            CommandEnd::Succeeded => Ok(()),
            CommandEnd::Failed(said) => Err(LabError::usage(format!(
                "the `setup` of the task `{}` failed: {said}",
                task.id
            ))),
        }
    }

    /// Makes the task's checks and says which failed first. Nothing of the run is left that could
    /// still change the folder.
    pub(super) async fn failed_check(
        &self,
        task: &EvalTask,
        gyrus: &dyn Installation,
    ) -> Result<Option<String>, LabError> {
        for check in &task.checks {
            if let CommandEnd::Failed(said) = gyrus.run_command(self.path(), check).await? {
                let said = if said.is_empty() {
                    said
                } else {
                    format!(": {said}")
                };
                return Ok(Some(format!("the check `{}` failed{said}", check.trim())));
            }
        }
        Ok(None)
    }
}

/// Copies the files below a folder; links and devices are not copied.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_the_files_of_suite_and_task() {
        let beside = tempfile::tempdir().unwrap();
        fs::create_dir(beside.path().join("deep")).unwrap();
        fs::write(beside.path().join("deep/a b.txt"), "copied").unwrap();
        let mut task: EvalTask =
            toml::from_str("id = \"a\"\ngoal = \"g\"\nfiles = { \"x/ü.txt\" = \"inline\" }")
                .unwrap();
        task.folder = Some(beside.path().to_owned());
        let files = BTreeMap::from([("s.txt".into(), b"suite".to_vec())]);
        let folder = TaskFolder::new(&task, &files).unwrap();
        for (path, text) in [
            ("deep/a b.txt", "copied"),
            ("x/ü.txt", "inline"),
            ("s.txt", "suite"),
        ] {
            assert_eq!(fs::read_to_string(folder.path().join(path)).unwrap(), text);
        }
    }
}
