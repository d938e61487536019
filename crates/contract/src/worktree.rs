//! Work trees of a repository, in which runs work apart from each other and from the person.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::RunId;

/// A work tree that was made for one run, and is removed when the run is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunWorktree {
    /// The folder that the work tree stands for.
    pub stands_for: PathBuf,
    /// The folder in which the run works.
    pub folder: PathBuf,
    /// The root of the work tree, which contains the run's folder.
    pub root: PathBuf,
    /// The git directory with the state of the work tree.
    pub git_dir: PathBuf,
    /// The commit with which the work tree began.
    pub base: String,
    /// The name of the branch for the work tree's changes.
    pub branch: String,
}

/// Creates work trees for runs. Its methods block.
pub trait Worktrees: Send + Sync {
    /// Creates the work tree of a run for a folder, or returns the existing one.
    ///
    /// # Errors
    /// A message: the folder is in no repository, or git failed.
    fn add(&self, folder: &Path, run: RunId) -> Result<RunWorktree, String>;

    /// Turns the changes in a work tree into a branch of its repository, and removes the work tree.
    /// Returns a description of the result.
    ///
    /// # Errors
    /// A message with the reason; nothing is lost then.
    fn bring_back(&self, worktree: &RunWorktree) -> Result<String, String>;
}
