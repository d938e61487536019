//! Properties of models that were learned while they were asked, in a file that can be deleted: asking
//! makes it again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use gyrus_contract::Simplification;
use serde::{Serialize, de::DeserializeOwned};

const FILE: &str = "learned.json";

/// Error: the results cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum MeasuredError {
    /// The file cannot be read.
    #[error("{} cannot be read", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("{} cannot be written", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The properties of requests that servers do not accept, by the model's name.
#[derive(Debug, Default)]
pub struct LearnedModels(BTreeMap<String, BTreeSet<Simplification>>);

impl LearnedModels {
    /// Reads the file in a folder. One that is invalid counts as empty.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(folder: &Path) -> Result<Self, MeasuredError> {
        Ok(Self(read_file(&folder.join(FILE))?))
    }

    /// Adds that the server of a model does not accept this.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn add(folder: &Path, model: &str, step: Simplification) -> Result<(), MeasuredError> {
        let mut all = Self::read(folder)?.0;
        all.entry(model.to_owned()).or_default().insert(step);
        write_file(&folder.join(FILE), &all)
    }

    /// Returns what the server of a model does not accept.
    pub fn refuses(&self, model: &str) -> impl Iterator<Item = Simplification> {
        self.0.get(model).into_iter().flatten().copied()
    }
}

/// Reads a file of JSON. One that is missing or invalid counts as empty.
pub(crate) fn read_file<T: DeserializeOwned + Default>(file: &Path) -> Result<T, MeasuredError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(serde_json::from_str(&text).unwrap_or_default()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        Err(source) => Err(MeasuredError::Read {
            file: file.to_owned(),
            source,
        }),
    }
}

/// Replaces a file of JSON at once.
pub(crate) fn write_file(file: &Path, all: &impl Serialize) -> Result<(), MeasuredError> {
    let write = || {
        let text = serde_json::to_vec_pretty(all)?;
        let new = tempfile::NamedTempFile::new_in(file.parent().unwrap_or(Path::new(".")))?;
        fs::write(new.path(), text)?;
        new.persist(file)?;
        Ok(())
    };
    write().map_err(|source| MeasuredError::Write {
        file: file.to_owned(),
        source,
    })
}
