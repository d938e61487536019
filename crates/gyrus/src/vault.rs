//! Finds the folder of notes that runs remember by.

use std::{
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use gyrus::runtime::Home;
use gyrus_memory::Vault;

use crate::{config::Config, embeddings::EmbeddingServer, env::Environment, failure::Failure};

/// The default place, below the person's home.
const DEFAULT: &str = "Documents/gyrus";

/// Returns the memory: the folder that the environment names, or the configuration, or the default
/// one; `None` if it has no place. Creates nothing.
///
/// # Errors
/// The folder is one that holds more than notes: as the memory it would be closed to every tool.
pub(crate) fn find(environment: &Environment, home: &Home) -> Result<Option<Vault>, Failure> {
    let person = environment.home.as_deref();
    let named = environment
        .vault
        .clone()
        .and_then(|given| std::path::absolute(given).ok())
        .or_else(|| configured(home, person));
    let Some(folder) = named else {
        let vault = |person: &Path| Vault::at(&person.join(DEFAULT), false, &home.state);
        return Ok(person.map(vault).map(|vault| embedding(vault, home)));
    };
    let folder = without_parents(&folder);
    let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let holds = |other: &Path| other.starts_with(&folder) || other.starts_with(&real);
    if person.is_some_and(holds) || holds(&home.state) || real.starts_with(&home.state) {
        let error = format!("the memory cannot be in {}", folder.display());
        return Err(Failure::usage(error).hint(
            "name a folder of its own, in GYRUS_VAULT or in the section [memory] of config.toml",
        ));
    }
    let vault = Vault::at(&folder, true, &home.state);
    Ok(Some(embedding(vault, home)))
}

/// Returns the memory with the server that the configuration names for finding notes by meaning.
fn embedding(vault: Vault, home: &Home) -> Vault {
    let Ok(config) = Config::read(&home.config) else {
        return vault;
    };
    match config.memory.embeddings {
        Some(server) => vault.with_embedder(Arc::new(EmbeddingServer::new(server, config.keys))),
        None => vault,
    }
}

/// Returns the folder of the memory that the configuration names. A mistake in the file is told by
/// every command that needs its settings.
fn configured(home: &Home, person: Option<&Path>) -> Option<PathBuf> {
    let given = Config::read(&home.config).ok()?.memory.vault?;
    let folder = match given.strip_prefix("~") {
        Ok(below) => person?.join(below),
        Err(_) => given,
    };
    folder.is_absolute().then_some(folder)
}

/// Returns a path without `..`, which means the same unless a link is on the way.
fn without_parents(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}
