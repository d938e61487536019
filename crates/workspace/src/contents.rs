//! Stores the contents of files. One function decides for every file whether it may be stored with
//! the rest or has to be kept apart; all contents pass through it.

use std::{panic::resume_unwind, path::Path, sync::OnceLock, thread};

use gyrus_contract::BlobId;

/// Maximum number of threads that judge contents at once.
const MAX_THREADS: usize = 4;
/// Size in bytes below which one thread judges all contents.
const MIN_SHARED_BYTES: usize = 128 << 10;

/// Decides which files are secret or contain secrets. Called by several threads at once.
pub trait Secrecy: Sync {
    /// Whether the file at `path`, relative to the folder, is secret or contains a secret.
    fn is_secret(&self, path: &Path, content: &[u8]) -> bool;
}

/// Store for the contents of files and for the manifests.
pub trait ContentStore {
    /// Error of the store.
    type Error;

    /// Returns the judge that decides which contents are stored apart as secrets.
    fn secrecy(&self) -> &dyn Secrecy;

    /// Stores bytes that contain no secret.
    fn put(&mut self, bytes: &[u8]) -> Result<BlobId, Self::Error>;

    /// Stores bytes with a secret, apart from all others.
    fn put_apart(&mut self, bytes: &[u8]) -> Result<BlobId, Self::Error>;
}

/// The content of a file, and whether it is stored apart as a secret.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContentToKeep<'a> {
    content: &'a [u8],
    apart: bool,
}

impl<'a> ContentToKeep<'a> {
    pub(crate) fn new(secrecy: &dyn Secrecy, path: &Path, content: &'a [u8]) -> Self {
        // An empty file has no secret, and many are empty.
        let apart = !content.is_empty() && secrecy.is_secret(path, content);
        Self { content, apart }
    }

    /// Like [`Self::new`], for several files.
    pub(crate) fn all(secrecy: &dyn Secrecy, files: &[(&Path, &'a [u8])]) -> Vec<Self> {
        let judge = |files: &[(&Path, &'a [u8])]| -> Vec<Self> {
            let judged = files
                .iter()
                .map(|(path, content)| Self::new(secrecy, path, content));
            judged.collect()
        };
        let bytes: usize = files.iter().map(|(_, content)| content.len()).sum();
        if bytes < MIN_SHARED_BYTES || files.len() < 2 {
            return judge(files);
        }
        let shares = files.chunks(files.len().div_ceil(threads()));
        thread::scope(|scope| {
            let judging: Vec<_> = shares
                .map(|share| {
                    let thread = thread::Builder::new().spawn_scoped(scope, move || judge(share));
                    // If no thread can be started, it takes longer.
                    thread.map_err(|_| judge(share))
                })
                .collect();
            let judged = judging.into_iter().flat_map(|share| match share {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(judged) => judged,
            });
            judged.collect()
        })
    }

    pub(crate) fn content(&self) -> &'a [u8] {
        self.content
    }

    pub(crate) fn is_apart(&self) -> bool {
        self.apart
    }

    /// Stores the content in a blob of its own.
    pub(crate) fn put<S: ContentStore>(&self, store: &mut S) -> Result<BlobId, S::Error> {
        if self.apart {
            store.put_apart(self.content)
        } else {
            store.put(self.content)
        }
    }
}

fn threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| {
        let available = thread::available_parallelism().map_or(1, usize::from);
        available.min(MAX_THREADS)
    })
}
