//! Small values stand in the entry, large ones in a blob that the entry names.

use gyrus_contract::BlobId;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{Stop, log::Log};

/// Values whose JSON is longer than this, in bytes, go into a blob.
pub const INLINE_LIMIT: usize = 4096;

/// A value, or where it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inline<T> {
    /// Here.
    Is(T),
    /// In this blob, as JSON.
    Blob(BlobId),
}

impl<T: Serialize + DeserializeOwned + Clone> Inline<T> {
    /// Stores `value`: in a blob if it is large.
    pub(crate) fn store(value: &T, log: &Log) -> Result<Self, Stop> {
        let json = serde_json::to_vec(value).map_err(|error| Stop::Failed(error.to_string()))?;
        if json.len() <= INLINE_LIMIT {
            return Ok(Inline::Is(value.clone()));
        }
        Ok(Inline::Blob(log.put_blob(&json)?))
    }

    /// The value, wherever it is.
    pub(crate) fn load(&self, log: &Log) -> Result<T, Stop> {
        self.read(|id| log.blob(id))
    }

    /// The value, with blobs fetched by `fetch`.
    ///
    /// # Errors
    /// What `fetch` says, or that the blob is not the JSON it should be.
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

/// A blob does not hold what its entry promises.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("blob {blob} does not hold what its entry promises: {reason}")]
pub struct BadBlob {
    /// Which.
    pub blob: BlobId,
    /// Why.
    pub reason: String,
}
