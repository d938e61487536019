//! Work trees of a repository, in which runs work apart from each other and from the person.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::RunId;

/// A work tree that was made for one run, and goes when the run is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunWorktree {
    /// The folder that it stands for.
    pub stands_for: PathBuf,
    /// The folder that the run works in.
    pub folder: PathBuf,
    /// The root of the work tree, which has that folder in it.
    pub root: PathBuf,
    /// The directory in which git keeps its state.
    pub git_dir: PathBuf,
    /// The commit that it began with.
    pub base: String,
    /// The branch that its changes become.
    pub branch: String,
}

/// Makes work trees. Its methods block.
pub trait Worktrees: Send + Sync {
    /// Makes the work tree of a run for a folder, or returns it if it is there.
    ///
    /// # Errors
    /// Returns the reason in words: the folder is in no repository, or git failed.
    fn add(&self, folder: &Path, run: RunId) -> Result<RunWorktree, String>;

    /// Makes what was changed in a work tree a branch of its repository, and removes the work tree.
    /// Returns in words what came of it.
    ///
    /// # Errors
    /// Returns the reason in words; nothing is lost then.
    fn bring_back(&self, worktree: &RunWorktree) -> Result<String, String>;
}
