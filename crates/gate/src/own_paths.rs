//! The machine's folders that belong to gyrus, and those that belong to the person.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::paths::{below_same_folder, real_path};

/// The machine's owner: home, state and configuration.
#[derive(Debug, Clone)]
pub struct OwnPaths {
    /// The folders of gyrus's own: its state, and its configuration if that is elsewhere. They
    /// need not exist yet.
    pub own: Vec<PathBuf>,
    /// The person's home folder.
    pub person: Option<PathBuf>,
}

impl OwnPaths {
    /// The same, by real paths.
    pub(crate) fn real(self) -> Self {
        let real = |path: PathBuf| real_path(&path).unwrap_or(path);
        Self {
            own: self.own.into_iter().map(real).collect(),
            person: self.person.map(real),
        }
    }

    /// A path into gyrus's own state that goes by another name (a bind mount, another letter
    /// case), by its own name.
    pub(crate) fn by_its_own_name(&self, path: PathBuf) -> PathBuf {
        for own in &self.own {
            if let Some(below) = below_same_folder(&path, own) {
                return if below.as_os_str().is_empty() {
                    own.clone()
                } else {
                    own.join(below)
                };
            }
        }
        path
    }

    /// Whether it is gyrus's own, or lies there.
    pub(crate) fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| path.starts_with(own))
    }

    /// Whether gyrus's own server listens, or last listened, on this port of loopback.
    pub(crate) fn is_own_port(&self, port: u16) -> bool {
        let files = self.own.iter().map(|own| own.join("serve/address"));
        let mut addresses = files.filter_map(|file| fs::read_to_string(file).ok());
        addresses.any(|address| address.trim().ends_with(&format!(":{port}")))
    }

    /// Whether something of gyrus's own lies in this folder.
    pub(crate) fn holds_own(&self, folder: &Path) -> bool {
        self.own.iter().any(|own| own.starts_with(folder))
    }
}
