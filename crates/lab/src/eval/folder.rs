//! The folder of an attempt: filled before the run, checked after it.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    path::{Component, Path, PathBuf},
};

use gyrus_process::Programs;
use tempfile::TempDir;

use super::{copies::copy, stand_in, task::EvalTask};
use crate::{CommandEnd, Installation, LabError};

/// The folder of the task's folder in which files for the checks are laid. Nothing that a run leaves
/// there is kept.
pub(super) const CHECKS: &str = ".gyrus-checks";

pub(super) struct TaskFolder(TempDir);

impl TaskFolder {
    pub(super) fn new(
        task: &EvalTask,
        suite_files: &BTreeMap<OsString, Vec<u8>>,
    ) -> Result<Self, LabError> {
        let made = || {
            let folder = tempfile::Builder::new().prefix("gyrus-eval-").tempdir()?;
            for (name, bytes) in suite_files {
                fs::write(folder.path().join(name), bytes)?;
            }
            let at = folder.path();
            if let Some((repository, commit)) = &task.commit {
                check_out(repository, commit, at)?;
            }
            let whole = task
                .folder
                .iter()
                .map(|from| (from.clone(), PathBuf::new()));
            for (from, to) in whole.chain(task.copies.iter().cloned()) {
                copy(&from, &at.join(to))?;
            }
            stand_in::replace_in_files(&task.stand_ins, at)?;
            let this = Self(folder);
            this.lay(task, &task.files)?;
            Ok(this)
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

    /// Writes these files. What stands in their way is removed, links above all: nothing is written
    /// outside of the folder.
    fn lay(&self, task: &EvalTask, files: &BTreeMap<String, String>) -> io::Result<()> {
        for (path, text) in files {
            let mut at = self.path().to_owned();
            for part in Path::new(path).components() {
                let Component::Normal(part) = part else {
                    return Err(io::Error::other(format!("{path} leads out of the folder")));
                };
                at.push(part);
                let is_last = at == self.path().join(path);
                match fs::symlink_metadata(&at) {
                    Ok(there) if there.is_dir() && is_last => fs::remove_dir_all(&at)?,
                    Ok(there) if !there.is_dir() => fs::remove_file(&at)?,
                    Ok(_) | Err(_) => {}
                }
                if !is_last && !at.exists() {
                    fs::create_dir(&at)?;
                }
            }
            fs::write(at, task.placed(text, self.path()))?;
        }
        Ok(())
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
        let setup = task.placed(setup, self.path());
        match gyrus.run_command(self.path(), &setup).await? {
            CommandEnd::Succeeded => Ok(()),
            CommandEnd::Failed(said) => Err(LabError::usage(format!(
                "the `setup` of the task `{}` failed: {said}",
                task.id
            ))),
        }
    }

    /// Runs the task's checks and returns the first failure. Nothing of the run is left that could
    /// still change the folder.
    pub(super) async fn failed_check(
        &self,
        task: &EvalTask,
        gyrus: &dyn Installation,
    ) -> Result<Option<String>, LabError> {
        let checks = self.path().join(CHECKS);
        match fs::symlink_metadata(&checks) {
            Ok(there) if there.is_dir() => fs::remove_dir_all(&checks)?,
            Ok(_) => fs::remove_file(&checks)?,
            Err(_) => {}
        }
        self.lay(task, &task.hidden)?;
        for check in &task.checks {
            let check = &task.placed(check, self.path());
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

/// Has a folder be a repository of one commit, with nothing that came later in the original.
fn check_out(repository: &Path, commit: &str, folder: &Path) -> io::Result<()> {
    let programs = Programs::of_this_process();
    let git = programs.find("git").map_err(io::Error::other)?;
    let repository = fs::canonicalize(repository)?;
    let repository = repository.to_string_lossy();
    for arguments in [
        &["init", "-q"][..],
        &["fetch", "-q", "--depth", "1", "--", &repository, commit],
        &["checkout", "-q", "-B", "main", "FETCH_HEAD"],
    ] {
        let mut command = programs.command(&git.path);
        command
            .args(["-c", "core.hooksPath=/dev/null"])
            .args(arguments);
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        let said = command.current_dir(folder).output()?;
        if !said.status.success() {
            let why = String::from_utf8_lossy(&said.stderr);
            let why = format!("{commit} of {repository}: {}", why.trim());
            return Err(io::Error::other(why));
        }
    }
    fs::remove_file(folder.join(".git/FETCH_HEAD"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run can leave links where the files for the checks are laid.
    #[test]
    fn hidden_files_are_laid_in_the_folder_alone() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("a.txt"), "mine").unwrap();
        let task: EvalTask =
            toml::from_str("id = \"a\"\ngoal = \"g\"\nhidden = { \"x/a.txt\" = \"theirs\" }")
                .unwrap();
        let folder = TaskFolder::new(&task, &BTreeMap::new()).unwrap();
        let at = |path: &str| folder.path().join(path);
        std::os::unix::fs::symlink(outside.path(), at("x")).unwrap();
        folder.lay(&task, &task.hidden).unwrap();
        assert_eq!(fs::read_to_string(at("x/a.txt")).unwrap(), "theirs");
        fs::remove_file(at("x/a.txt")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("a.txt"), at("x/a.txt")).unwrap();
        folder.lay(&task, &task.hidden).unwrap();
        fs::remove_file(at("x/a.txt")).unwrap();
        fs::create_dir(at("x/a.txt")).unwrap();
        folder.lay(&task, &task.hidden).unwrap();
        assert_eq!(fs::read_to_string(at("x/a.txt")).unwrap(), "theirs");
        let kept = fs::read_to_string(outside.path().join("a.txt")).unwrap();
        assert_eq!(kept, "mine");
    }

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
