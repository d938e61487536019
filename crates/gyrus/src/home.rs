//! The folders in which gyrus keeps what it knows: state and configuration of one person on this
//! machine.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, symlink},
    path::{Path, PathBuf},
};

use gyrus_gate::policy::PolicyFiles;
use gyrus_journal::Store;
use gyrus_kernel::{
    latch::Latch,
    redact::{KeyError, Redactor, Secret, key_in},
};
use tempfile::TempDir;

use crate::{
    env::{self, Environment},
    failure::Failure,
};

/// The folders of one person's gyrus.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    /// Journals and keys. No run may see or change it.
    pub(crate) state: PathBuf,
    /// The configuration file, whether it exists or not.
    pub(crate) config: PathBuf,
    /// The person's own home folder.
    pub(crate) person: Option<PathBuf>,
    /// The state folder of an ephemeral run's person: what stops all runs is there.
    pub(crate) beside: Option<PathBuf>,
}

impl Home {
    /// Returns the folders that the environment names; nothing is created yet.
    pub(crate) fn find(environment: &Environment) -> Result<Self, Failure> {
        let person = environment.home.clone();
        if let Some(given) = &environment.gyrus_home {
            let folder = std::path::absolute(given).map_err(|error| {
                Failure::usage(format!("{} names no folder", env::GYRUS_HOME)).because(&error)
            })?;
            let config = folder.join("config.toml");
            return Ok(Self {
                state: folder,
                config,
                person,
                beside: None,
            });
        }
        let below_home = |set: &Option<PathBuf>, default: &str| {
            set.clone()
                .or_else(|| Some(person.as_ref()?.join(default)))
                .ok_or_else(|| {
                    Failure::usage("there is no folder for gyrus's state: HOME is not set")
                        .hint(format!("name one: {}=/path gyrus …", env::GYRUS_HOME))
                })
        };
        let state = below_home(&environment.xdg_state_home, ".local/state")?.join("gyrus");
        let config = below_home(&environment.xdg_config_home, ".config")?;
        Ok(Self {
            state,
            config: config.join("gyrus/config.toml"),
            person,
            beside: None,
        })
    }

    /// The same home with its state in a new private folder, which goes when the guard does.
    pub(crate) fn ephemeral(self) -> Result<(Self, Ephemeral), Failure> {
        let folder = tempfile::Builder::new()
            .prefix("gyrus-")
            .tempdir()
            .map_err(|error| {
                Failure::failed("no folder for temporary state can be made").because(&error)
            })?;
        self.create_state()?;
        let names = self.ephemerals();
        let made = || {
            fs::create_dir_all(&names)?;
            let name = names.join(folder.path().file_name().unwrap_or_default());
            symlink(folder.path(), &name).map(|()| name)
        };
        let name = made().map_err(|error| self.unusable(&error))?;
        let state = folder.path().to_owned();
        let folder = Ephemeral {
            _folder: folder,
            name,
        };
        Ok((
            Self {
                beside: Some(self.state),
                state,
                ..self
            },
            folder,
        ))
    }

    /// Returns the latch that stops all runs, ephemeral ones included.
    pub(crate) fn latch(&self) -> Latch {
        Latch::of(self.beside.as_ref().unwrap_or(&self.state))
    }

    /// Returns the folder that names the folders of ephemeral runs while they live.
    fn ephemerals(&self) -> PathBuf {
        self.state.join("ephemeral")
    }

    /// The journals of ephemeral runs. Names that a crash left behind are removed.
    pub(crate) fn ephemeral_stores(&self) -> Vec<Store> {
        let names = fs::read_dir(self.ephemerals()).into_iter().flatten();
        names
            .filter_map(|name| {
                let name = name.ok()?.path();
                match name.join("journal").canonicalize() {
                    Ok(journal) => Store::open(&journal).ok(),
                    // Its folder may have been made this moment.
                    Err(_) => {
                        if fs::metadata(&name).is_err() {
                            let _ = fs::remove_file(&name);
                        }
                        None
                    }
                }
            })
            .collect()
    }

    /// The policy files that hold in a workspace, whether they exist or not.
    pub(crate) fn policy_files(&self, workspace: &Path) -> PolicyFiles {
        PolicyFiles {
            own: self.config.with_file_name("policy.toml"),
            workspace: workspace.to_owned(),
            home: self.person.clone(),
        }
    }

    /// Returns the folder of the configuration, if it is not with the state.
    pub(crate) fn configuration(&self) -> Option<PathBuf> {
        let folder = self.config.parent()?;
        (!folder.starts_with(&self.state)).then(|| folder.to_owned())
    }

    /// All folders of gyrus's own.
    pub(crate) fn own(&self) -> Vec<PathBuf> {
        let mut own = vec![self.state.clone()];
        own.extend(self.beside.clone());
        own.extend(self.configuration());
        own
    }

    /// The journals, created if there are none.
    pub(crate) fn store(&self) -> Result<Store, Failure> {
        self.create_state()?;
        Store::open(&self.state.join("journal")).map_err(|error| match error {
            gyrus_journal::Error::Io { source, .. } => self.unusable(&source),
            other => other.into(),
        })
    }

    /// Builds the redactor that keeps secrets out of journals: those of the environment, those that
    /// were read elsewhere, and a key for naming those that are found in text.
    pub(crate) fn redactor(&self, read: Vec<Secret>) -> Result<Redactor, Failure> {
        self.create_state()?;
        let key = key_in(&self.state).map_err(|error| match error {
            KeyError::Unusable(source) => self.unusable(&source),
            error => error.into(),
        })?;
        let mut secrets = env::secrets();
        secrets.extend(read);
        Ok(Redactor::new(key, secrets))
    }

    /// The state folder, created if there is none.
    pub(crate) fn create_state(&self) -> Result<(), Failure> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.state)
            .map_err(|error| self.unusable(&error))
    }

    fn unusable(&self, error: &io::Error) -> Failure {
        Failure::usage(format!(
            "the state folder {} cannot be used",
            self.state.display()
        ))
        .because(error)
        .hint(format!(
            "make it writable, or name another one: {}=/path gyrus …",
            env::GYRUS_HOME
        ))
    }
}

/// The folder of an ephemeral run, and its name among those that live. Both go with this.
pub(crate) struct Ephemeral {
    _folder: TempDir,
    name: PathBuf,
}

impl Drop for Ephemeral {
    fn drop(&mut self) {
        // What stays is removed by the next who looks.
        let _ = fs::remove_file(&self.name);
        if let Some(names) = self.name.parent() {
            // Fails while others are named there.
            let _ = fs::remove_dir(names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_folder_or_the_xdg_ones() {
        let path = |text: &str| Some(PathBuf::from(text));
        let at = |gyrus: &str, home: &str, state: &str| {
            let set = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
            Home::find(&Environment {
                gyrus_home: set(gyrus),
                home: set(home),
                xdg_state_home: set(state),
                ..Environment::default()
            })
        };
        for (gyrus, home, state, expected) in [
            ("/g", "/home/me", "/s", path("/g")),
            ("", "/home/me", "/s", path("/s/gyrus")),
            ("", "/home/me", "", path("/home/me/.local/state/gyrus")),
            ("", "", "", None),
        ] {
            assert_eq!(at(gyrus, home, state).map(|home| home.state).ok(), expected);
        }
        assert_eq!(
            at("/g", "", "").unwrap().config,
            PathBuf::from("/g/config.toml")
        );
        assert!(
            at("", "", "")
                .unwrap_err()
                .hint
                .unwrap()
                .contains("GYRUS_HOME=/path")
        );
    }
}
