//! Finds the state folder of the person who types: the one that the environment names, or one that
//! goes when an ephemeral run does.

use std::{fs, io, os::unix::fs::symlink, path::PathBuf};

use gyrus::runtime::{Home, RuntimeError};
use gyrus_journal::Store;
use tempfile::TempDir;

use crate::{
    env::{self, Environment},
    failure::Failure,
    vault,
};

/// Returns the home that the environment names; nothing is created yet.
pub(crate) fn find(environment: &Environment) -> Result<Home, Failure> {
    let home = folders(environment)?;
    let vault = vault::find(environment, &home)?;
    Ok(Home { vault, ..home })
}

fn folders(environment: &Environment) -> Result<Home, Failure> {
    let person = environment.home.clone();
    if let Some(given) = &environment.gyrus_home {
        let folder = std::path::absolute(given).map_err(|error| {
            Failure::usage(format!("{} names no folder", env::GYRUS_HOME)).because(&error)
        })?;
        return Ok(Home::at(folder, person));
    }
    let below_home = |set: &Option<PathBuf>, default: &str| {
        set.clone()
            .or_else(|| Some(person.as_ref()?.join(default)))
            .ok_or_else(|| {
                Failure::usage(
                    "there is no folder for gyrus's state: HOME is not set, or not absolute",
                )
                .hint(format!("name one: {}=/path gyrus …", env::GYRUS_HOME))
            })
    };
    let state = below_home(&environment.xdg_state_home, ".local/state")?.join("gyrus");
    let config = below_home(&environment.xdg_config_home, ".config")?;
    Ok(Home {
        state,
        config: config.join("gyrus/config.toml"),
        person,
        beside: None,
        vault: None,
        journal: None,
        replicas: None,
        travels: gyrus_kernel::FolderTravels::No,
        sockets: Vec::new(),
    })
}

/// Returns the same home with its state in a new private folder, removed when the guard is dropped.
pub(crate) fn ephemeral(home: Home) -> Result<(Home, Ephemeral), Failure> {
    let folder = tempfile::Builder::new()
        .prefix("gyrus-")
        .tempdir()
        .map_err(|error| {
            Failure::failed("no folder for temporary state can be made").because(&error)
        })?;
    home.create_state()?;
    // Whoever sweeps sees by this that it is in use.
    let lock = fs::File::open(folder.path()).and_then(|folder| folder.lock().map(|()| folder));
    let lock = lock.map_err(|error| unusable(&home, error))?;
    let names = ephemerals(&home);
    let made = || {
        fs::create_dir_all(&names)?;
        let name = names.join(folder.path().file_name().unwrap_or_default());
        symlink(folder.path(), &name).map(|()| name)
    };
    let name = made().map_err(|error| unusable(&home, error))?;
    let state = folder.path().to_owned();
    let folder = Ephemeral {
        _folder: folder,
        _lock: lock,
        name,
    };
    Ok((
        Home {
            beside: Some(home.state),
            state,
            ..home
        },
        folder,
    ))
}

/// Returns the folder that names the state folders of ephemeral runs while these live.
fn ephemerals(home: &Home) -> PathBuf {
    home.state.join("ephemeral")
}

/// Returns the journals of ephemeral runs. Names that a crash left behind are removed.
pub(crate) fn ephemeral_stores(home: &Home) -> Vec<Store> {
    let names = fs::read_dir(ephemerals(home)).into_iter().flatten();
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

/// Removes the folders of ephemeral runs that were killed.
pub(crate) fn sweep(home: &Home) {
    for name in fs::read_dir(ephemerals(home))
        .into_iter()
        .flatten()
        .flatten()
    {
        let Ok(folder) = fs::read_link(name.path()) else {
            continue;
        };
        let is_ours = folder
            .file_name()
            .is_some_and(|own| own == name.file_name());
        let is_free = || fs::File::open(&folder).is_ok_and(|folder| folder.try_lock().is_ok());
        // Its name goes only with it: by that it is found again.
        if is_ours && is_free() && fs::remove_dir_all(&folder).is_ok() {
            let _ = fs::remove_file(name.path());
        }
    }
}

fn unusable(home: &Home, error: io::Error) -> Failure {
    RuntimeError::State {
        folder: home.state.clone(),
        source: error,
    }
    .into()
}

/// The folder of an ephemeral run, and its name among the live ones, both removed on drop.
pub(crate) struct Ephemeral {
    _folder: TempDir,
    /// Held while the run lives.
    _lock: fs::File,
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
            find(&Environment {
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
