//! Where the contents of files go. One function decides for every file whether it may lie with the
//! rest or has to be kept apart, and nothing is stored past it.

use std::{panic::resume_unwind, path::Path, sync::OnceLock, thread};

use gyrus_contract::BlobId;

/// Threads that judge contents at once, at most.
const MAX_THREADS: usize = 4;
/// Fewer bytes than this are judged by one thread.
const MIN_SHARED_BYTES: usize = 128 << 10;

/// Tells which files are or hold secrets. Asked by several threads at once.
pub trait Secrecy: Sync {
    /// Whether the file at `path`, relative to the folder, is or holds a secret.
    fn is_secret(&self, path: &Path, content: &[u8]) -> bool;
}

/// Keeps the contents of files, and what says where they lie.
pub trait ContentStore {
    /// Why it failed.
    type Error;

    /// What tells which contents are to be kept apart.
    fn secrecy(&self) -> &dyn Secrecy;

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
    pub(crate) fn new(secrecy: &dyn Secrecy, path: &Path, content: &'a [u8]) -> Self {
        // An empty file has nothing to hide, and many are empty.
        let apart = !content.is_empty() && secrecy.is_secret(path, content);
        Self { content, apart }
    }

    /// As [`Self::new`], of several files.
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
                    // Without a thread it takes longer and is done all the same.
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

    /// Stores it alone.
    pub(crate) fn put<S: ContentStore>(&self, store: &mut S) -> Result<BlobId, S::Error> {
        match self.apart {
            true => store.put_apart(self.content),
            false => store.put(self.content),
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
