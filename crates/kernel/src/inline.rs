//! Small values are stored in the entry, large ones in a blob that the entry names.

use gyrus_contract::BlobId;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Size of a value's JSON in bytes above which it is stored in a blob.
pub const INLINE_LIMIT: usize = 4096;

/// A value, or the id of the blob that holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inline<T> {
    /// The value itself.
    Is(T),
    /// A blob that holds the value as JSON.
    Blob(BlobId),
}

impl<T: Serialize + DeserializeOwned + Clone> Inline<T> {
    /// Returns the value, fetching a blob with `fetch`.
    ///
    /// # Errors
    /// Returns the error of `fetch`, or one if the blob is not valid JSON of the value.
    pub fn read<E: From<BadBlob>>(
        &self,
        fetch: impl FnOnce(&BlobId) -> Result<Vec<u8>, E>,
    ) -> Result<T, E> {
        match self {
            Inline::Is(value) => Ok(value.clone()),
            Inline::Blob(id) => serde_json::from_slice(&fetch(id)?).map_err(|error| {
                BadBlob {
                    blob: *id,
                    reason: error.to_string(),
                }
                .into()
            }),
        }
    }
}

/// A blob has other content than its entry requires.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("blob {blob} does not hold what its entry promises: {reason}")]
pub struct BadBlob {
    pub blob: BlobId,
    pub reason: String,
}
