//! A plugin that stands on disk, read whole each time: what is used is what was hashed.

use std::{
    io,
    path::{Path, PathBuf},
};

use gyrus_skills::SkillFiles;

use crate::{
    Dependencies,
    dependencies::{self, FOLDER},
    manifest::PluginError,
    plugin::Plugin,
};

/// Folder with the files of the package, in the folder of an installed plugin.
pub const PACKAGE: &str = "package";

/// The reason why an installed plugin cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InstalledError {
    /// The package is not a plugin any more.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// The packages on which the plugin depends cannot be read.
    #[error("its dependencies cannot be read: {0}")]
    Dependencies(#[from] io::Error),
}

/// A plugin on disk.
#[derive(Debug)]
pub struct InstalledPlugin {
    pub plugin: Plugin,
    /// The folder of the plugin's package.
    pub package: PathBuf,
    /// The hash of all files of the plugin, as computed by [`Plugin::digest`].
    pub digest: String,
}

impl InstalledPlugin {
    /// Whether a plugin is installed in a folder.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(PACKAGE).is_dir()
    }

    /// Reads an installed plugin from its folder.
    ///
    /// # Errors
    /// The plugin cannot be used as it is.
    pub fn read(folder: &Path) -> Result<Self, InstalledError> {
        let package = folder.join(PACKAGE);
        let files = SkillFiles::read(&package).map_err(gyrus_skills::PackageError::from);
        let plugin = Plugin::read(files.map_err(PluginError::from)?)?;
        let modules = package.join(FOLDER);
        let modules = match modules.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => Some(dependencies::digest(&modules)?),
            Ok(_) => return Err(io::Error::other("`node_modules` is not a folder").into()),
            Err(_) => None,
        };
        Ok(Self {
            digest: whole(&plugin, modules.as_deref()),
            plugin,
            package,
        })
    }
}

impl Plugin {
    /// Returns the hash of all files of the plugin and of its dependencies.
    pub fn digest(&self, dependencies: Option<&Dependencies>) -> String {
        whole(self, dependencies.map(Dependencies::digest))
    }
}

fn whole(plugin: &Plugin, dependencies: Option<&str>) -> String {
    format!(
        "{}+{}",
        plugin.files.digest(),
        dependencies.unwrap_or("none")
    )
}
