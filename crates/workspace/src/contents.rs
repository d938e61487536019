//! Where the contents of files go. One function decides for every file whether it may lie with the
//! rest or has to be kept apart, and nothing is stored past it.

use std::path::Path;

use gyrus_contract::BlobId;

/// Keeps the contents of files, and what says where they lie.
pub trait ContentStore {
    /// Why it failed.
    type Error;

    /// Whether the file at `path`, relative to the folder, is or holds a secret.
    fn is_secret(&self, path: &Path, content: &[u8]) -> bool;

    /// Stores bytes that hold no secret.
    ///
    /// # Errors
    /// The store's own.
    fn put(&mut self, bytes: &[u8]) -> Result<BlobId, Self::Error>;

    /// Stores bytes with a secret, apart from all others.
    ///
    /// # Errors
    /// The store's own.
    fn put_apart(&mut self, bytes: &[u8]) -> Result<BlobId, Self::Error>;
}

/// The content of a file, and which of the two places it belongs in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judged<'a> {
    content: &'a [u8],
    apart: bool,
}

impl<'a> Judged<'a> {
    pub(crate) fn new(store: &impl ContentStore, path: &Path, content: &'a [u8]) -> Self {
        // An empty file has nothing to hide, and many are empty.
        let apart = !content.is_empty() && store.is_secret(path, content);
        Self { content, apart }
    }

    pub(crate) fn content(&self) -> &'a [u8] {
        self.content
    }

    pub(crate) fn is_apart(&self) -> bool {
        self.apart
    }

    /// Stores it alone.
    pub(crate) fn put<S: ContentStore>(&self, store: &mut S) -> Result<BlobId, S::Error> {
        match self.apart {
            true => store.put_apart(self.content),
            false => store.put(self.content),
        }
    }
}
