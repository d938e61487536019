//! The home of the person whose gyrus is tried, as the program's sandbox asks for it.

use std::path::PathBuf;

/// The folders of one person's gyrus.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    /// Journals and keys. No run may see or change it.
    pub(crate) state: PathBuf,
    /// The person's own home folder.
    pub(crate) person: Option<PathBuf>,
}

impl Home {
    /// All folders of gyrus's own.
    pub(crate) fn own(&self) -> Vec<PathBuf> {
        let configuration = self.person.iter().map(|home| home.join(".config/gyrus"));
        configuration.chain([self.state.clone()]).collect()
    }
}
