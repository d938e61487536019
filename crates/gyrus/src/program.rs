//! The environment, and the folders and files that follow from it.

use std::{path::PathBuf, sync::Arc};

use gyrus::runtime::Home;
use gyrus_journal::{Replicas, Store};
use gyrus_kernel::FolderTravels;
use gyrus_surfaces::notify::NotifyCommand;

use crate::{
    config::Config,
    env::{self, Environment},
    failure::Failure,
    state_folder,
};

#[derive(Clone)]
pub(crate) struct Gyrus {
    pub(crate) environment: Environment,
    /// The folder of the journals, if they are not this person's own.
    pub(crate) journal: Option<PathBuf>,
    /// The second copies of journals, in a process that drives a run for a fleet.
    pub(crate) replicas: Option<Arc<dyn Replicas>>,
    /// Whether the folder of the driven run travels.
    pub(crate) travels: FolderTravels,
    /// Returns the commands and flags, for commands that describe them.
    pub(crate) command_line: fn() -> clap::Command,
}

impl Gyrus {
    /// Whether the journals are copies of runs that the workers of a fleet drive.
    pub(crate) fn is_of_a_fleet(&self) -> bool {
        self.journal.is_some()
    }

    /// Whether the current folder does not choose which runs are meant: those of a fleet work in
    /// folders of other machines, and a command that a server carries out came from one.
    pub(crate) fn is_anywhere(&self) -> bool {
        self.environment.anywhere || self.is_of_a_fleet()
    }

    pub(crate) fn home(&self) -> Result<Home, Failure> {
        let home = state_folder::find(&self.environment)?;
        Ok(Home {
            journal: self.journal.clone(),
            replicas: self.replicas.clone(),
            travels: self.travels.clone(),
            ..home
        })
    }

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

    pub(crate) fn config(&self) -> Result<Config, Failure> {
        Config::read(&self.home()?.config)
    }
}
