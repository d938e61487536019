//! The store that pictures are read from.

use gyrus_contract::BlobId;

/// Source of the bytes of pictures.
pub trait Blobs: Send + Sync {
    /// Returns the content with this id, or the reason why there is none.
    fn load(&self, id: &BlobId) -> Result<Vec<u8>, String>;
}

/// A store without any content, for runs that show no pictures.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBlobs;

impl Blobs for NoBlobs {
    fn load(&self, _id: &BlobId) -> Result<Vec<u8>, String> {
        Err("this run has no blob store".to_owned())
    }
}
