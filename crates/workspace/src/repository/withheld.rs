//! Changes of a repository that wait for a person's approval.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use gyrus_text::counted;
use rustix::fs::readlinkat;
use serde::{Deserialize, Serialize};

use super::{
    RepositoryError,
    folder::{GitFolder, PathKind},
    settings::SettingChange,
};
use crate::change_set::{DiffSide, diff_of};

/// Maximum size of a content that can be shown and applied, in bytes.
pub(super) const MAX_CONTENT: u64 = 256 << 10;

/// A change that needs a person's approval to be carried over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithheldPath {
    /// The real git directory.
    pub repository: PathBuf,
    /// Path below the git directory, such as `hooks/pre-commit`.
    pub path: PathBuf,
    /// Reason for withholding the change, in a few words.
    pub reason: String,
    /// Present content; `None` for a new file.
    pub old: Option<FileContent>,
    /// New content; `None` for a removed file.
    pub new: Option<FileContent>,
    /// The settings of a configuration file that would change; the others are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<SettingChange>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileContent {
    /// Text in UTF-8.
    Text {
        /// The whole text.
        text: String,
        executable: bool,
    },
    /// Content that is not text.
    Binary {
        /// The bytes in hexadecimal digits.
        bytes: String,
        executable: bool,
    },
    /// A symbolic link with its target.
    Link(String),
    /// Content that can be neither shown nor applied: a large file, a device, a folder.
    Other(String),
}

impl WithheldPath {
    /// Whether the change can be applied after approval: the person has to make links, devices and
    /// large files.
    pub fn can_be_applied(&self) -> bool {
        let is_file = |content: &Option<FileContent>| {
            content
                .as_ref()
                .is_none_or(|content| content.bytes().is_some())
        };
        is_file(&self.old) && is_file(&self.new)
    }

    /// Returns the file's name for a person: its path below `folder`, otherwise the whole path.
    pub fn name(&self, folder: &Path) -> String {
        let path = self.repository.join(&self.path);
        let below = path.strip_prefix(folder).unwrap_or(&path);
        below.display().to_string()
    }

    /// Returns the change as text for a person: a unified diff of text, a line for other content.
    /// Paths are as [`Self::name`] says.
    pub fn diff(&self, folder: &Path) -> String {
        let side = |content: &Option<FileContent>| match content {
            None => DiffSide::Nothing,
            Some(FileContent::Text { text, .. }) => DiffSide::Text(text.clone()),
            Some(FileContent::Binary { bytes, .. }) => {
                DiffSide::Other(format!("a file of {}", counted(bytes.len() / 2, "byte")))
            }
            Some(FileContent::Link(target)) => DiffSide::Other(format!("a link to {target}")),
            Some(FileContent::Other(what)) => DiffSide::Other(what.clone()),
        };
        diff_of(&self.name(folder), &side(&self.old), &side(&self.new))
    }

    /// Drops the contents, so that the change can be reported but not applied.
    pub fn leave_out_content(&mut self) {
        let secret = || FileContent::Other("content with a secret, which was not kept".to_owned());
        self.old = self.old.as_ref().map(|_| secret());
        self.new = Some(secret());
        self.settings.clear();
    }
}

impl FileContent {
    /// Reads the content at a path, without following links.
    pub(super) fn read(git: &GitFolder, path: &Path) -> Result<Option<Self>, RepositoryError> {
        match git.kind(path)? {
            PathKind::Missing => Ok(None),
            PathKind::File => match git.read_with_mode(path, MAX_CONTENT) {
                Ok(content) => Ok(content.map(|(bytes, mode)| Self::of(bytes, mode))),
                Err(RepositoryError::TooLarge { .. }) => {
                    Ok(Some(Self::Other(format!("more than {MAX_CONTENT} bytes"))))
                }
                Err(error) => Err(error),
            },
            PathKind::Folder => Ok(Some(Self::Other("a folder".to_owned()))),
            PathKind::Other => Ok(Some(Self::Other("a device, pipe or socket".to_owned()))),
            PathKind::Link => {
                let (folder, name) = git.parent(path)?;
                let target = readlinkat(&folder, name, Vec::new());
                let target = target.map_err(|error| crate::root::failed(path, error))?;
                let target = OsStr::from_bytes(target.to_bytes());
                Ok(Some(Self::Link(target.to_string_lossy().into_owned())))
            }
        }
    }

    /// Returns a regular file's content.
    pub(super) fn of(bytes: Vec<u8>, mode: u32) -> Self {
        let executable = mode & 0o111 != 0;
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text { text, executable },
            Err(error) => {
                let bytes = error
                    .as_bytes()
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect();
                Self::Binary { bytes, executable }
            }
        }
    }

    /// Returns the bytes of a regular file, and whether it is executable; `None` for anything else.
    pub(super) fn bytes(&self) -> Option<(Vec<u8>, bool)> {
        match self {
            Self::Text { text, executable } => Some((text.clone().into_bytes(), *executable)),
            Self::Binary { bytes, executable } => {
                let digits = bytes.as_bytes().chunks(2);
                let bytes = digits.map(|pair| {
                    let pair = std::str::from_utf8(pair).ok()?;
                    u8::from_str_radix(pair, 16).ok()
                });
                Some((bytes.collect::<Option<_>>()?, *executable))
            }
            Self::Link(_) | Self::Other(_) => None,
        }
    }
}
