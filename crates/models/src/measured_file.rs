//! Results of measurements of models, and what was learned while they were asked, in two files that
//! can be deleted: measuring and asking make them again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gyrus_contract::Simplification;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{CallReader, CallStyle, Candidate, MEASURED_VERSION, Measured, apply};

const FILE: &str = "measured.json";
const LEARNED_FILE: &str = "learned.json";

/// Results of measurements, by the model's name.
#[derive(Debug, Default)]
pub struct MeasuredModels(BTreeMap<String, Measured>);

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

impl MeasuredModels {
    /// Reads the file in a folder. Entries of another version, and invalid ones, are ignored.
    pub fn read(folder: &Path) -> Result<Self, MeasuredError> {
        let file = folder.join(FILE);
        let values: BTreeMap<String, serde_json::Value> = read_file(&file)?;
        let measured = values
            .into_iter()
            .filter_map(|(name, value)| {
                Some((name, serde_json::from_value::<Measured>(value).ok()?))
            })
            .filter(|(_, measured)| measured.version == MEASURED_VERSION);
        Ok(Self(measured.collect()))
    }

    /// Adds the results for one model to the file in a folder.
    pub fn add(folder: &Path, name: &str, measured: &Measured) -> Result<(), MeasuredError> {
        let mut all = Self::read(folder)?.0;
        all.insert(name.to_owned(), measured.clone());
        write_file(&folder.join(FILE), &all)
    }

    /// Whether the model was measured.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the candidate with the facts that were measured.
    pub fn applied(&self, candidate: Candidate) -> Candidate {
        let Some(measured) = self.0.get(candidate.model.name()) else {
            return candidate;
        };
        let facts = apply(measured, candidate.facts.clone());
        let style = measured.call_style().unwrap_or_default();
        let is_new = match style {
            CallStyle::Native => false,
            CallStyle::Prompted => !candidate.is_prompted,
            CallStyle::Bound => true,
        };
        Candidate {
            model: if is_new {
                Arc::new(CallReader::new(candidate.model, style))
            } else {
                candidate.model
            },
            is_prompted: candidate.is_prompted || is_new,
            latency_ms: measured.latency.map(|latency| latency.median_ms),
            facts,
            ..candidate
        }
    }
}

/// Properties of models that were learned while they were asked.
#[derive(Debug, Default)]
pub struct LearnedModels(BTreeMap<String, LearnedModel>);

/// Properties of one model that were learned while it was asked.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(from = "LearnedForm")]
struct LearnedModel {
    /// The properties of requests that its server does not accept.
    refuses: BTreeSet<Simplification>,
    /// Median time of its replies, in milliseconds.
    latency_ms: Option<u64>,
}

/// The forms of an entry: before times were kept, it was the list of refusals alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum LearnedForm {
    Refusals(BTreeSet<Simplification>),
    Whole {
        #[serde(default)]
        refuses: BTreeSet<Simplification>,
        latency_ms: Option<u64>,
    },
}

impl From<LearnedForm> for LearnedModel {
    fn from(form: LearnedForm) -> Self {
        let (refuses, latency_ms) = match form {
            LearnedForm::Refusals(refuses) => (refuses, None),
            LearnedForm::Whole {
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
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(folder: &Path) -> Result<Self, MeasuredError> {
        Ok(Self(read_file(&folder.join(LEARNED_FILE))?))
    }

    /// Adds that the server of a model does not accept this.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn add_refusal(
        folder: &Path,
        model: &str,
        step: Simplification,
    ) -> Result<(), MeasuredError> {
        let mut all = Self::read(folder)?.0;
        let learned = all.entry(model.to_owned()).or_default();
        learned.refuses.insert(step);
        write_file(&folder.join(LEARNED_FILE), &all)
    }

    /// Sets the median time of a model's replies.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn add_latency(folder: &Path, model: &str, median: Duration) -> Result<(), MeasuredError> {
        let mut all = Self::read(folder)?.0;
        let learned = all.entry(model.to_owned()).or_default();
        learned.latency_ms = u64::try_from(median.as_millis()).ok();
        write_file(&folder.join(LEARNED_FILE), &all)
    }

    /// Returns the candidate with what was learned about it.
    pub fn applied(&self, mut candidate: Candidate) -> Candidate {
        if let Some(learned) = self.0.get(candidate.model.name()) {
            candidate.latency_ms = learned.latency_ms.or(candidate.latency_ms);
            candidate.refuses.extend(&learned.refuses);
            if learned.refuses.contains(&Simplification::NoPictures) {
                candidate.facts.images = Some(false);
            }
        }
        candidate
    }
}

fn read_file<T: DeserializeOwned + Default>(file: &Path) -> Result<T, MeasuredError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(serde_json::from_str(&text).unwrap_or_default()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        Err(source) => Err(MeasuredError::Read {
            file: file.to_owned(),
            source,
        }),
    }
}

fn write_file(file: &Path, all: &impl Serialize) -> Result<(), MeasuredError> {
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
