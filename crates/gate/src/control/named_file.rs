//! A file that another file names.

use std::path::{Path, PathBuf};

use gyrus_text::fits;

/// A file, or a folder with its contents, that a control file names as read by its program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReadByControl {
    /// Path below the workspace; parts may have stars.
    pub(super) path: PathBuf,
    pub(super) is_folder: bool,
    /// Whether make reads the file, which make first rebuilds from other files.
    pub(super) by_make: bool,
}

impl ReadByControl {
    pub(super) fn is(&self, path: &Path) -> bool {
        if !self.path.as_os_str().as_encoded_bytes().contains(&b'*') {
            return *path == *self.path || (self.is_folder && path.starts_with(&self.path));
        }
        let (wanted, mut parts) = (self.path.iter(), path.iter());
        let mut each = wanted.map(|wanted| (wanted, parts.next()));
        each.all(|(wanted, part)| {
            part.is_some_and(|part| fits(&wanted.to_string_lossy(), &part.to_string_lossy()))
        }) && (self.is_folder || parts.next().is_none())
    }
}
