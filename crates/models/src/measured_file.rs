//! Results of measurements of models, in a file that can be deleted: measuring makes it again.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use crate::{
    CallReader, CallStyle, Candidate, MEASURED_VERSION, Measurements, apply,
    learned::{MeasuredError, read_file, write_file},
};

const FILE: &str = "measured.json";

/// Results of measurements, by the model's name.
#[derive(Debug, Default)]
pub struct MeasuredModels(BTreeMap<String, Measurements>);

impl MeasuredModels {
    /// Reads the file in a folder. Entries of another version, and invalid ones, are ignored.
    pub fn read(folder: &Path) -> Result<Self, MeasuredError> {
        let file = folder.join(FILE);
        let values: BTreeMap<String, serde_json::Value> = read_file(&file)?;
        let measured = values
            .into_iter()
            .filter_map(|(name, value)| {
                Some((name, serde_json::from_value::<Measurements>(value).ok()?))
            })
            .filter(|(_, measured)| measured.version == MEASURED_VERSION);
        Ok(Self(measured.collect()))
    }

    /// Adds the results for one model to the file in a folder.
    pub fn add(folder: &Path, name: &str, measured: &Measurements) -> Result<(), MeasuredError> {
        let mut all = Self::read(folder)?.0;
        all.insert(name.to_owned(), measured.clone());
        write_file(&folder.join(FILE), &all)
    }

    /// Whether the model was measured.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the candidate with the measured facts.
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
