//! The machine's folders that belong to gyrus, and those that belong to the person.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::paths::{below_same_folder, real_path};

/// The folders of the machine's owner: home, state and configuration.
#[derive(Debug, Clone)]
pub struct OwnPaths {
    /// The folders of gyrus's own: its state, and its configuration if that is elsewhere. They
    /// need not exist yet.
    pub own: Vec<PathBuf>,
    /// The person's home folder.
    pub person: Option<PathBuf>,
}

impl OwnPaths {
    /// Returns the same folders by their real paths.
    pub(crate) fn real(self) -> Self {
        let real = |path: PathBuf| real_path(&path).unwrap_or(path);
        Self {
            own: self.own.into_iter().map(real).collect(),
            person: self.person.map(real),
        }
    }

    /// Returns a path into gyrus's own state under its usual name, if it was given under another
    /// one (a bind mount, another letter case).
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

    /// Whether the path is one of gyrus's own, or below one.
    pub(crate) fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| path.starts_with(own))
    }

    /// Whether gyrus's own server listens, or last listened, on this port of loopback.
    pub(crate) fn is_own_port(&self, port: u16) -> bool {
        let files = self.own.iter().map(|own| own.join("serve/address"));
        let mut addresses = files.filter_map(|file| fs::read_to_string(file).ok());
        addresses.any(|address| address.trim().ends_with(&format!(":{port}")))
    }

    /// Whether the folder contains something of gyrus's own.
    pub(crate) fn holds_own(&self, folder: &Path) -> bool {
        self.own.iter().any(|own| own.starts_with(folder))
    }
}
