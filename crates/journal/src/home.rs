//! The folder of a store, as all logs in it share it.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{Disk, Error, LogName, identity::StoreIdentity};

/// A store's disk and root, and the logs that this process writes in it.
#[derive(Debug)]
pub(crate) struct StoreHome {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) root: PathBuf,
    /// The identity of the store, by which a log that was born here is known.
    pub(crate) identity: StoreIdentity,
    /// The version of the store, if it is newer than this program's.
    pub(crate) newer: Option<u32>,
    /// Size in bytes from which a segment is followed by a new one.
    pub(crate) segment_bytes: u64,
    /// The number of the last durable entry of each log that this process writes.
    pub(crate) writing: Mutex<BTreeMap<LogName, watch::Receiver<u64>>>,
}

impl StoreHome {
    pub(crate) fn shared_blobs(&self) -> PathBuf {
        self.root.join("blobs")
    }

    /// Returns the number of the last entry on disk, as it grows, of a log whose writer is in this
    /// process. The sender is dropped with the writer.
    pub(crate) fn durable(&self, name: &LogName) -> Option<watch::Receiver<u64>> {
        self.writing.lock().get(name).cloned()
    }

    pub(crate) fn begin_writing(&self, name: &LogName, durable: watch::Receiver<u64>) {
        self.writing.lock().insert(name.clone(), durable);
    }

    pub(crate) fn end_writing(&self, name: &LogName) {
        self.writing.lock().remove(name);
    }
}

/// Creates a folder if it does not exist. Its name is not on disk yet.
pub(crate) fn make_folder(disk: &dyn Disk, path: &Path) -> Result<(), Error> {
    match disk.create_folder(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::io("create", path)(error))
        }
        _ => Ok(()),
    }
}
