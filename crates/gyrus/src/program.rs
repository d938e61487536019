//! The environment, and the folders and files that follow from it.

use gyrus::runtime::Home;
use gyrus_journal::Store;

use crate::{config::Config, env::Environment, failure::Failure, state_folder};

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

    /// The configuration file.
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        Config::read(&self.home()?.config)
    }
}
