//! Properties of models that were learned while they were asked, in a file that can be deleted: asking
//! makes it again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use gyrus_contract::Simplification;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

const FILE: &str = "learned.json";

/// The error of results that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum MeasuredError {
    #[error("{} cannot be read", file.display())]
    Read {
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    #[error("{} cannot be written", file.display())]
    Write {
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Properties of models, learned from requests to them.
#[derive(Debug, Default)]
pub struct LearnedModels(BTreeMap<String, LearnedModel>);

/// Properties of one model, learned from requests to it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(from = "LearnedEntryForm")]
struct LearnedModel {
    /// The properties of requests that the model's server does not accept.
    refuses: BTreeSet<Simplification>,
    /// Median time of the model's replies, in milliseconds.
    latency_ms: Option<u64>,
}

/// The forms of an entry: before times were kept, it was the list of refusals alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum LearnedEntryForm {
    Refusals(BTreeSet<Simplification>),
    Whole {
        #[serde(default)]
        refuses: BTreeSet<Simplification>,
        latency_ms: Option<u64>,
    },
}

impl From<LearnedEntryForm> for LearnedModel {
    fn from(form: LearnedEntryForm) -> Self {
        let (refuses, latency_ms) = match form {
            LearnedEntryForm::Refusals(refuses) => (refuses, None),
            LearnedEntryForm::Whole {
                refuses,
                latency_ms,
            } => (refuses, latency_ms),
        };
        Self {
            refuses,
            latency_ms,
        }
    }
}

impl LearnedModels {
    /// Reads the file in a folder. One that is invalid counts as empty.
    pub fn read(folder: &Path) -> Result<Self, MeasuredError> {
        Ok(Self(read_file(&folder.join(FILE))?))
    }

    /// Adds a property of requests that a model's server does not accept.
    pub fn add_refusal(
        folder: &Path,
        model: &str,
        step: Simplification,
    ) -> Result<(), MeasuredError> {
        let mut all = Self::read(folder)?.0;
        let learned = all.entry(model.to_owned()).or_default();
        learned.refuses.insert(step);
        write_file(&folder.join(FILE), &all)
    }

    /// Sets the median time of a model's replies.
    pub fn add_latency(folder: &Path, model: &str, median: Duration) -> Result<(), MeasuredError> {
        let mut all = Self::read(folder)?.0;
        let learned = all.entry(model.to_owned()).or_default();
        learned.latency_ms = u64::try_from(median.as_millis()).ok();
        write_file(&folder.join(FILE), &all)
    }

    /// Returns the properties of requests that a model's server does not accept.
    pub fn refuses(&self, model: &str) -> impl Iterator<Item = Simplification> {
        let learned = self.0.get(model).into_iter();
        learned.flat_map(|learned| &learned.refuses).copied()
    }

    /// Returns the median time of a model's replies, in milliseconds.
    pub fn latency_ms(&self, model: &str) -> Option<u64> {
        self.0.get(model)?.latency_ms
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
