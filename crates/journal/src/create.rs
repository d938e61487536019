//! Creating a log. It appears in the store together with its first entries and their blobs: whatever
//! happens before, there is no such log.

use std::{mem, sync::Arc};

use gyrus_contract::BlobId;
use parking_lot::Mutex;

use crate::{
    Error, LogName, LogReader, NewEntry, Store, Writer,
    blobs::{self, UnsyncedBlob},
    flush::WriterInner,
    line::{self, BatchStart, EntryHeader, genesis},
    replica::{self, ReplicaBatch},
    store::StagedLog,
    take,
    writer::{UNSYNCED_LIMIT, check, one_line},
};

/// A log that is not in the store yet. Dropping it removes all its files.
pub struct NewLog {
    store: Store,
    /// The files; `None` once the log is in the store.
    staged: Option<StagedLog>,
    unsynced: Mutex<Vec<UnsyncedBlob>>,
}

impl Store {
    /// Creates a log and locks it for writing.
    pub fn create(&self, name: &LogName) -> Result<Writer, Error> {
        self.prepare(name)?.publish(&[])
    }

    /// Prepares a log that appears in the store when it has its first entries.
    pub fn prepare(&self, name: &LogName) -> Result<NewLog, Error> {
        self.check_not_copied()?;
        Ok(NewLog {
            store: self.clone(),
            staged: Some(self.stage(name)?),
            unsynced: Mutex::default(),
        })
    }
}

impl NewLog {
    /// Stores content beside the log, like [`Writer::put_blob`].
    pub fn put_blob(&self, bytes: &[u8]) -> Result<BlobId, Error> {
        let shared = self.store.home.shared_blobs();
        // A blob is in the list only when it is complete.
        let mut unsynced = self.unsynced.lock();
        let id = blobs::put(&self.staged().files, &shared, &mut unsynced, bytes)?;
        if unsynced.len() >= UNSYNCED_LIMIT {
            blobs::finish(&self.staged().files, &shared, &mut unsynced)?;
        }
        Ok(id)
    }

    /// Stores private content, like [`Writer::put_private`].
    pub fn put_private(&self, bytes: &[u8]) -> Result<BlobId, Error> {
        blobs::put_private(&self.staged().files, bytes)
    }

    /// Returns a reader of the blobs stored so far. It reads nothing after [`NewLog::publish`].
    pub fn reader(&self) -> LogReader {
        LogReader::new(&self.store.home, Arc::clone(&self.staged().files))
    }

    /// Publishes the log under its name, with these first entries. They and all blobs are on disk
    /// when this returns, and the log's replica has the entries before. Blocks until then.
    ///
    /// # Errors
    /// Returns an error when a log of this name exists by now, or when the replica refuses. Nothing
    /// is left behind then, on the local disk.
    pub fn publish(mut self, first: &[NewEntry<'_>]) -> Result<Writer, Error> {
        check(first)?;
        let home = &self.store.home;
        let files = &self.staged().files;
        let mut unsynced = self.unsynced.lock();
        blobs::finish(files, &home.shared_blobs(), &mut unsynced)?;
        drop(unsynced);
        let folder = files.blobs();
        home.disk
            .sync_folder(&folder)
            .map_err(Error::io("sync", folder))?;
        let mut lines = Vec::new();
        let (mut seq, mut hash) = (0, genesis());
        for entry in first {
            let header = EntryHeader {
                seq: seq + 1,
                at_ms: home.disk.now().unix_ms,
                mono_us: 0,
                kind: entry.kind,
                version: entry.version,
                batch: (seq == 0).then_some(BatchStart {
                    synced: 0,
                    previous: hash,
                }),
            };
            let payload = one_line(entry.payload.get());
            hash = line::encode(&mut lines, &files.key, &hash, &header, &payload);
            seq += 1;
        }
        let replica = self.store.replica_of(&files.name);
        if replica.is_some() {
            replica::mark(files)?;
        }
        home.identity.mark(files)?;
        let output = take::first(files, &self.staged().lock.holder, &lines, (seq, hash))?;
        let mut blobs = Vec::new();
        if let Some(replica) = &replica {
            blobs = blobs::list(files)?;
            if !first.is_empty() {
                self.store.check_absent(&files.name)?;
                let blobs = mem::take(&mut blobs);
                let last = (seq, hash);
                let batch = ReplicaBatch::new(files, (0, genesis()), last, lines, blobs);
                replica::store_blocking(replica.as_ref(), batch, 0)?;
            }
        }
        self.store.publish(files)?;
        let staged = self.staged.take().expect(STAGED);
        let files = self.store.files(&staged.files.name);
        let home = &self.store.home;
        let shared = WriterInner::new(home, files, staged.lock, output, replica, blobs);
        Ok(Writer::new(shared))
    }

    fn staged(&self) -> &StagedLog {
        self.staged.as_ref().expect(STAGED)
    }
}

/// The message for the invariant that an unpublished log is staged.
const STAGED: &str = "only publishing, which consumes the log, takes it away";

impl Drop for NewLog {
    fn drop(&mut self) {
        if let Some(staged) = &self.staged {
            self.store.discard(&staged.files.folder);
        }
    }
}
