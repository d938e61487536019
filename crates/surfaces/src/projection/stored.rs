//! Values of entries, wherever they are stored.

use gyrus_contract::Text;
use gyrus_journal::Reader;
use gyrus_kernel::{Inline, Stop};

/// Reads a value, wherever it is stored, or returns words that say why it cannot be shown.
pub fn stored<T>(value: &Inline<T>, reader: &Reader) -> Result<T, String>
where
    T: serde::Serialize + serde::de::DeserializeOwned + Clone,
{
    let fetched = value.read(|id| reader.blob(id).map_err(Stop::from));
    fetched.map_err(|error| format!("(it cannot be shown: {error})"))
}

/// Returns the goal of a run, wherever it is stored.
pub fn goal(goal: &Inline<Text>, reader: &Reader) -> String {
    stored(goal, reader).map_or_else(|gone| gone, |text: Text| text.text)
}
