//! The additions of a person to the sandbox of a run, beside the workspace.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// Time limit of a command in seconds, if the person set no other one.
const COMMAND_SECONDS: u64 = 30 * 60;

/// The additions to the sandbox of a run. They are recorded at its start and hold for all that it
/// starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SandboxOptions {
    /// Names of the person's variables that commands see. Their values are never recorded.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub variables: BTreeSet<String>,
    /// The names of variables whose values are not secret.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub shown: BTreeSet<String>,
    /// Folders beside the workspace, real and absolute.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<AddedFolder>,
    /// Whether commands change the caches of package managers themselves, for all to come. Otherwise
    /// their changes stay with the run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shares_caches: bool,
    /// The longest time limit of a command, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_seconds: Option<u64>,
    /// The time after which a command goes on in the background, in seconds, where a person could
    /// put it there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_seconds: Option<u64>,
    /// Bytes of memory that each process of a command may write to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl SandboxOptions {
    /// Whether there are no additions.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the options of the previous run in a session.
    pub fn extend(&mut self, before: &Self) {
        self.variables.extend(before.variables.iter().cloned());
        self.shown.extend(before.shown.iter().cloned());
        for folder in &before.folders {
            if self.folder_of(&folder.path).is_none() {
                self.folders.push(folder.clone());
            }
        }
    }

    /// Returns the longest time limit of a command, in seconds.
    pub fn longest_command(&self) -> u64 {
        self.command_seconds.unwrap_or(COMMAND_SECONDS)
    }

    /// Returns the added folder that holds a real path, if one does.
    pub fn folder_of(&self, path: &Path) -> Option<&AddedFolder> {
        let mut folders = self.folders.iter();
        folders.find(|folder| path.starts_with(&folder.path))
    }
}

/// A folder beside the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedFolder {
    /// The real path of the folder.
    pub path: PathBuf,
    /// Whether the run may change files in the folder.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writable: bool,
}
