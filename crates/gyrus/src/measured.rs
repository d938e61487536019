//! What was measured of models, by `gyrus models check`. A file that can be deleted: measuring
//! makes it again.

use std::{collections::BTreeMap, fs, io, sync::Arc};

use gyrus_models::{Candidate, MEASURED_VERSION, Measured, Prompted, apply};

use crate::{Gyrus, failure::Failure};

/// By the model's name.
pub(crate) type All = BTreeMap<String, Measured>;

const FILE: &str = "measured.json";

/// Everything that was measured. What another version wrote, or nobody can read, counts for
/// nothing.
pub(crate) fn read(gyrus: &Gyrus) -> Result<All, Failure> {
    let path = gyrus.home()?.state.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(All::new()),
        Err(error) => {
            return Err(
                Failure::usage(format!("{} cannot be read", path.display())).because(&error)
            );
        }
    };
    let values: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(&text).unwrap_or_default();
    Ok(values
        .into_iter()
        .filter_map(|(name, value)| Some((name, serde_json::from_value::<Measured>(value).ok()?)))
        .filter(|(_, measured)| measured.version == MEASURED_VERSION)
        .collect())
}

/// Adds what was measured of one model.
pub(crate) fn add(gyrus: &Gyrus, name: &str, measured: &Measured) -> Result<(), Failure> {
    let mut all = read(gyrus)?;
    all.insert(name.to_owned(), measured.clone());
    let home = gyrus.home()?;
    home.store()?;
    let path = home.state.join(FILE);
    let failed = |error: io::Error| {
        Failure::failed(format!("{} cannot be written", path.display())).because(&error)
    };
    let text = serde_json::to_vec_pretty(&all)
        .map_err(|error| Failure::failed("what was measured is no JSON").because(&error))?;
    let file = tempfile::NamedTempFile::new_in(&home.state).map_err(failed)?;
    fs::write(file.path(), text).map_err(failed)?;
    file.persist(&path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// The candidate as it was measured to be.
pub(crate) fn applied(all: &All, candidate: Candidate) -> Candidate {
    let Some(measured) = all.get(candidate.model.name()) else {
        return candidate;
    };
    let facts = apply(measured, candidate.facts.clone());
    // One whose calls are prompted was measured with them.
    let prompted = facts.tools == Some(false) && !candidate.is_prompted;
    Candidate {
        model: match prompted {
            true => Arc::new(Prompted::new(candidate.model)),
            false => candidate.model,
        },
        is_prompted: candidate.is_prompted || prompted,
        latency_ms: measured.latency.map(|latency| latency.median_ms),
        facts,
        ..candidate
    }
}
