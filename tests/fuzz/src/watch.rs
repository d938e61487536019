//! Notes each input before it is tried, so that one that ends the process is known, and ends the
//! process itself when an input takes too long.

use std::{
    fs, io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// Seconds that one input may take.
const TIMEOUT: u64 = 20;

/// The note of the input that is being tried.
pub(crate) struct Watch {
    path: PathBuf,
    note: fs::File,
    tried: Arc<AtomicU64>,
}

impl Watch {
    /// Notes inputs in this file.
    pub(crate) fn new(note: &Path) -> io::Result<Self> {
        let tried = Arc::new(AtomicU64::new(0));
        let watched = Arc::downgrade(&tried);
        thread::Builder::new().spawn(move || {
            let mut last = u64::MAX;
            while let Some(tried) = watched.upgrade() {
                let now = tried.load(Ordering::Relaxed);
                drop(tried);
                if now == last {
                    // It is being tried for that long; the note says which it is.
                    std::process::exit(crate::campaign::TOO_LONG);
                }
                last = now;
                thread::park_timeout(Duration::from_secs(TIMEOUT));
            }
        })?;
        Ok(Self {
            path: note.to_owned(),
            note: fs::File::create(note)?,
            tried,
        })
    }

    /// This input is tried now.
    pub(crate) fn note(&self, input: &[u8]) -> io::Result<()> {
        self.tried.fetch_add(1, Ordering::Relaxed);
        self.note.write_all_at(input, 0)?;
        self.note.set_len(input.len() as u64)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // What is left of a note belongs to no failure.
        let _ = fs::remove_file(&self.path);
    }
}
