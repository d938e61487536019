//! The environment, and the folders and files that follow from it.

use std::path::PathBuf;

use gyrus::runtime::Home;
use gyrus_journal::Store;
use gyrus_surfaces::notify::NotifyCommand;

use crate::{
    config::Config,
    env::{self, Environment},
    failure::Failure,
    state_folder,
};

/// The surroundings that every command starts from.
#[derive(Clone)]
pub(crate) struct Gyrus {
    /// The environment at the start.
    pub(crate) environment: Environment,
}

impl Gyrus {
    /// Returns the folders of state and configuration.
    pub(crate) fn home(&self) -> Result<Home, Failure> {
        state_folder::find(&self.environment)
    }

    /// The journals.
    pub(crate) fn store(&self) -> Result<Store, Failure> {
        Ok(self.home()?.store()?)
    }

    /// Returns a command line of the person, to be run in their home folder.
    pub(crate) fn persons_command(&self, line: String) -> NotifyCommand {
        let folder = self.environment.home.clone();
        NotifyCommand {
            line,
            folder: folder.unwrap_or_else(|| PathBuf::from("/")),
            environment: env::all(),
        }
    }

    /// The configuration file.
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        Config::read(&self.home()?.config)
    }
}
