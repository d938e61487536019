//! The folders in which gyrus keeps state and configuration.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus_gate::policy::PolicyFiles;
use gyrus_journal::{Replicas, Store};
use gyrus_kernel::{
    FolderTravels,
    latch::Latch,
    redact::{KeyError, Redactor, Secret, key_in},
};
use gyrus_memory::Vault;

use super::RuntimeError;

/// Values of environment variables with one of these in their name are secrets.
const SECRET_NAMES: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];

/// Number of files that must be left on the disk of the state for a run to begin.
const FILES_OF_RUN: u64 = 64;

/// The folders of one person's gyrus. They are created at their first use.
#[derive(Debug, Clone)]
pub struct Home {
    /// The folder of journals and keys. No run may see or change it.
    pub state: PathBuf,
    /// The configuration file, whether it exists or not.
    pub config: PathBuf,
    /// The person's own home folder.
    pub person: Option<PathBuf>,
    /// The state folder beside that of an ephemeral run, in which all runs can be stopped.
    pub beside: Option<PathBuf>,
    /// The memory of runs, if it is enabled.
    pub vault: Option<Vault>,
    /// The folder of the journals, if it is not below the state.
    pub journal: Option<PathBuf>,
    /// The replicas that journals must have for their entries to count; `None` means that this disk
    /// alone decides.
    pub replicas: Option<Arc<dyn Replicas>>,
    /// Whether other machines may continue the runs in folders of their own.
    pub travels: FolderTravels,
    /// Sockets of this machine that commands of runs may connect to.
    pub sockets: Vec<PathBuf>,
}

impl Home {
    /// Returns the home whose state and configuration are both in `folder`.
    pub fn at(folder: PathBuf, person: Option<PathBuf>) -> Self {
        Self {
            config: folder.join("config.toml"),
            state: folder,
            person,
            beside: None,
            vault: None,
            journal: None,
            replicas: None,
            travels: FolderTravels::No,
            sockets: Vec::new(),
        }
    }

    /// Returns the emergency stop for all runs, ephemeral ones included.
    pub fn latch(&self) -> Latch {
        Latch::of(self.beside.as_ref().unwrap_or(&self.state))
    }

    /// Returns the policy files for a workspace, whether they exist or not.
    pub fn policy_files(&self, workspace: &Path) -> PolicyFiles {
        PolicyFiles {
            own: self.config.with_file_name("policy.toml"),
            workspace: workspace.to_owned(),
            home: self.person.clone(),
        }
    }

    /// Returns the list of the system's folders in which the person allows runs, one a line.
    pub fn agreed_folders(&self) -> PathBuf {
        self.config.with_file_name("agreed-folders")
    }

    /// Whether the person allows runs in this folder of the system, or in one above it.
    pub(super) fn agrees_to(&self, folder: &Path) -> bool {
        let agreed = fs::read_to_string(self.agreed_folders()).unwrap_or_default();
        let mut lines = agreed.lines().filter(|line| !line.trim().is_empty());
        lines.any(|line| folder.starts_with(line.trim()))
    }

    /// Returns the folder of the configuration, if it is not with the state.
    pub fn configuration(&self) -> Option<PathBuf> {
        let folder = self.config.parent()?;
        (!folder.starts_with(&self.state)).then(|| folder.to_owned())
    }

    /// Returns all folders of gyrus's own. The memory is one of them, because what runs write into
    /// it must carry its provenance, which only its own tools add.
    pub fn own(&self) -> Vec<PathBuf> {
        let mut own = vec![self.state.clone()];
        own.extend(self.beside.clone());
        own.extend(self.configuration());
        let vault = self.vault.as_ref().filter(|vault| vault.is_wanted());
        own.extend(vault.map(|vault| vault.folder().to_owned()));
        own
    }

    /// Opens the journals, which are created if there are none.
    ///
    /// # Errors
    /// The folder cannot be used, or holds something else.
    pub fn store(&self) -> Result<Store, RuntimeError> {
        self.create_state()?;
        let folder = self.journal.clone();
        let folder = folder.unwrap_or_else(|| self.state.join("journal"));
        let store = Store::open(&folder).map_err(|error| match error {
            gyrus_journal::Error::Io { source, .. } => self.unusable(source),
            other => other.into(),
        })?;
        Ok(match &self.replicas {
            Some(replicas) => store.with_replicas(Arc::clone(replicas)),
            None => store,
        })
    }

    /// Returns the redactor that keeps secrets out of journals: it knows those of the environment,
    /// those in `read`, and a key for naming secrets that are found in text.
    ///
    /// # Errors
    /// The state folder or the key in it cannot be used.
    pub fn redactor(&self, read: Vec<Secret>) -> Result<Redactor, RuntimeError> {
        self.create_state()?;
        let key = key_in(&self.state).map_err(|error| match error {
            KeyError::Unusable(source) => self.unusable(source),
            error => error.into(),
        })?;
        let mut secrets = environment_secrets();
        secrets.extend(read);
        Ok(Redactor::new(key, secrets))
    }

    /// Creates the state folder, for this user only, if there is none.
    pub fn create_state(&self) -> Result<(), RuntimeError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.state)
            .map_err(|error| self.unusable(error))
    }

    /// Checks that a run can make its files and those of its sandbox, without which it would be refused
    /// everything. Where the folder does not exist yet, that is seen when it is made.
    ///
    /// # Errors
    /// The disk has no room for them.
    pub fn check_room(&self) -> Result<(), RuntimeError> {
        match rustix::fs::statvfs(&self.state) {
            Ok(disk) if disk.f_files > 0 && disk.f_favail < FILES_OF_RUN => {
                Err(self.unusable(rustix::io::Errno::NOSPC.into()))
            }
            _ => Ok(()),
        }
    }

    fn unusable(&self, source: io::Error) -> RuntimeError {
        RuntimeError::State {
            folder: self.state.clone(),
            source,
        }
    }
}

/// Returns the secrets in the environment, which must not reach a journal or a model.
fn environment_secrets() -> Vec<Secret> {
    let named = std::env::vars_os().filter_map(|(name, value)| {
        Some(Secret {
            name: name.into_string().ok()?,
            value: value.into_string().ok()?,
        })
    });
    named
        .filter(|secret| {
            let name = secret.name.to_ascii_uppercase();
            SECRET_NAMES.iter().any(|part| name.contains(part))
        })
        .collect()
}
