//! Results of measurements of models, in a file that can be deleted: measuring makes it again.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{CallReader, Candidate, MEASURED_VERSION, Measured, apply};

const FILE: &str = "measured.json";

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
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(MeasuredError::Read { file, source }),
        };
        let values: BTreeMap<String, serde_json::Value> =
            serde_json::from_str(&text).unwrap_or_default();
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
        let file = folder.join(FILE);
        let write = || {
            let text = serde_json::to_vec_pretty(&all)?;
            let new = tempfile::NamedTempFile::new_in(folder)?;
            fs::write(new.path(), text)?;
            new.persist(&file)?;
            Ok(())
        };
        write().map_err(|source| MeasuredError::Write {
            file: file.clone(),
            source,
        })
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
        // A model whose calls are prompted was measured with them.
        let prompted = facts.tools == Some(false) && !candidate.is_prompted;
        Candidate {
            model: if prompted {
                Arc::new(CallReader::prompted(candidate.model))
            } else {
                candidate.model
            },
            is_prompted: candidate.is_prompted || prompted,
            latency_ms: measured.latency.map(|latency| latency.median_ms),
            facts,
            ..candidate
        }
    }
}
