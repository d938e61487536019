//! The demo's folder: what the run finds in it, and a home of its own beside it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::{env::Environment, failure::Failure, home::Home};

/// The files that the task is about.
const FILES: [(&str, &str); 2] = [
    (
        "sales-january.csv",
        "product,units,price\nlamps,12,40\ndesks,2,150\n",
    ),
    (
        "sales-february.csv",
        "product,units,price\nlamps,10,40\nchairs,3,50\n",
    ),
];

/// What the ledger must hold in the end: each line once.
pub(super) const LEDGER: &str = "summary written\nposting: begun\nposting: done\n";

/// The demo's folders.
pub(super) struct World {
    folder: TempDir,
    /// What the run works in.
    pub(super) work: PathBuf,
    /// What the fork works in; it does not exist yet.
    pub(super) fork: PathBuf,
    /// `GYRUS_HOME` of everything that the demo starts.
    pub(super) home: PathBuf,
    /// The model of the run.
    pub(super) script: PathBuf,
    /// The model of the fork.
    pub(super) fork_script: PathBuf,
}

impl World {
    /// Makes it, below the system's folder for temporary files.
    pub(super) fn make() -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::failed("the demo's folder cannot be made").because(&error)
        };
        let folder = tempfile::Builder::new()
            .prefix("gyrus-demo-")
            .tempdir()
            .map_err(failed)?;
        // Spelled as processes see it.
        let root = folder.path().canonicalize().map_err(failed)?;
        let world = Self {
            work: root.join("work"),
            fork: root.join("fork"),
            home: root.join("home"),
            script: root.join("script.toml"),
            fork_script: root.join("fork.toml"),
            folder,
        };
        fs::create_dir(&world.work).map_err(failed)?;
        fs::write(&world.script, include_str!("script.toml")).map_err(failed)?;
        fs::write(&world.fork_script, include_str!("fork.toml")).map_err(failed)?;
        for (name, text) in FILES {
            fs::write(world.work.join(name), text).map_err(failed)?;
        }
        Ok(world)
    }

    /// The home that the demo's processes use.
    pub(super) fn gyrus_home(&self, environment: &Environment) -> Result<Home, Failure> {
        Home::find(&Environment {
            gyrus_home: Some(self.home.clone()),
            ..environment.clone()
        })
    }

    /// What the run wrote down about itself.
    pub(super) fn ledger(&self) -> String {
        fs::read_to_string(self.work.join("ledger.txt")).unwrap_or_default()
    }

    /// Leaves the folder for a person to look at.
    pub(super) fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    pub(super) fn root(&self) -> &Path {
        self.folder.path()
    }
}
