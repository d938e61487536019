//! The state folder: how many journals it has, and how large it is.

use std::{
    collections::BTreeMap,
    fs, io,
    path::Path,
    time::{Duration, Instant},
};

use gyrus_journal::Store;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

/// Time for which the sizes of files are added up; what comes after it is left out.
const SIZED_FOR: Duration = Duration::from_secs(1);

/// Interval at which the state folder is measured: a page that is open asks often.
const SIZED_EVERY: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(crate) struct LastLook(Mutex<Option<(Instant, StateFolder)>>);

impl LastLook {
    pub(crate) fn now(&self, store: &Store, folder: &Path) -> io::Result<StateFolder> {
        let mut last = self.0.lock();
        if let Some((at, state)) = &*last
            && at.elapsed() < SIZED_EVERY
        {
            return Ok(state.clone());
        }
        let state = StateFolder::look(store, folder)?;
        *last = Some((Instant::now(), state.clone()));
        Ok(state)
    }
}

/// The folder with journals and keys, as it was at most half a minute ago.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct StateFolder {
    /// The folder.
    pub(crate) path: String,
    /// Number of journals by their kind: `runs` are the runs.
    pub(crate) journals: BTreeMap<String, usize>,
    /// Size of all files in bytes.
    pub(crate) bytes: u64,
    /// Number of files.
    pub(crate) files: usize,
    /// Whether there are more files than were counted in a second.
    pub(crate) more: bool,
}

impl StateFolder {
    fn look(store: &Store, folder: &Path) -> io::Result<Self> {
        let journals = store.root();
        let mut state = Self {
            path: folder.display().to_string(),
            ..Self::default()
        };
        for kind in fs::read_dir(journals)? {
            let kind = kind?;
            let name = kind.file_name().to_string_lossy().into_owned();
            if let Ok(names) = store.names(&name)
                && !names.is_empty()
            {
                state.journals.insert(name, names.len());
            }
        }
        state.size(folder, Instant::now());
        Ok(state)
    }

    /// Adds up the files of a folder. What vanishes meanwhile is left out.
    fn size(&mut self, folder: &Path, began: Instant) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if began.elapsed() > SIZED_FOR {
                self.more = true;
                return;
            }
            // Links are not followed: of a link, it is the link itself.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if metadata.is_dir() {
                self.size(&entry.path(), began);
            } else {
                self.files += 1;
                self.bytes = self.bytes.saturating_add(metadata.len());
            }
        }
    }
}
