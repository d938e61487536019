//! Writing a log: entries are checked, chained and buffered as they are appended. `flush` puts them
//! on disk.

use std::{borrow::Cow, io, sync::Arc};

use gyrus_contract::BlobId;
use serde_json::value::RawValue;
use tokio::{runtime::Handle, sync::watch};

use crate::{
    Error, Inbox, LogName, LogReader, blobs,
    flush::{FlushTurn, WriterInner, WriterState},
    flushers,
    line::{self, BatchStart, PAYLOAD_LIMIT},
    seal::Seal,
};

/// Maximum size of the payloads of one call of [`Writer::append`], in bytes.
pub(crate) const BATCH_LIMIT: usize = 32 << 20;

/// Number of bytes counted for each entry beside its payload.
const HEADER_ALLOWANCE: usize = 256;

/// Number of buffered bytes above which appending waits for the disk.
const PENDING_LIMIT: usize = 16 << 20;

/// Number of blobs not yet on disk, each an open file, at which adding another waits for the disk.
pub(crate) const UNSYNCED_LIMIT: usize = 64;

/// An entry to append.
#[derive(Debug, Clone)]
pub struct NewEntry<'a> {
    /// The kind of event: `[a-z0-9._-]{1,64}`.
    pub kind: &'a str,
    /// Version of the payload's format.
    pub version: u16,
    /// The payload: JSON of at most 8 MB.
    pub payload: Box<RawValue>,
}

/// The only writer of a log. Clones are the same writer. Dropping the last one puts buffered data
/// on the local disk and releases the log, at the latest when its replica has answered.
#[derive(Debug, Clone)]
pub struct Writer {
    shared: Arc<WriterInner>,
}

impl Writer {
    pub(crate) fn new(shared: WriterInner) -> Self {
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Appends entries with contiguous numbers, and returns the number of the last one. All are
    /// accepted or none. They are durable after [`Writer::barrier`], or inside a tokio runtime
    /// after 50 ms; a crash before that may leave the first of them only. Blocks while too much is
    /// not durable yet.
    pub fn append(&self, batch: &[NewEntry<'_>]) -> Result<u64, Error> {
        check(batch)?;
        let mut state = self.shared.accepting()?;
        let now = self.shared.home.disk.now();
        for entry in batch {
            let start = state.pending.is_empty().then(|| BatchStart {
                synced: *self.shared.durable.borrow(),
                previous: state.hash,
            });
            let header = line::EntryHeader {
                seq: state.seq + 1,
                at_ms: now.unix_ms,
                mono_us: now.mono_us.saturating_sub(self.shared.taken_us),
                kind: entry.kind,
                version: entry.version,
                batch: start,
            };
            let payload = one_line(entry.payload.get());
            let WriterState { pending, hash, .. } = &mut *state;
            *hash = line::encode(pending, &self.shared.files.key, hash, &header, &payload);
            state.seq += 1;
        }
        let (seq, full) = (state.seq, state.pending.len() > PENDING_LIMIT);
        let timer = !state.pending.is_empty() && !state.timer && Handle::try_current().is_ok();
        state.timer |= timer;
        drop(state);
        if timer {
            flushers::start_timer(&self.shared);
        }
        if full {
            self.barrier_blocking()?;
        }
        Ok(seq)
    }

    /// Waits until everything appended and every blob put so far is durable: on disk, and for
    /// entries also at the log's replica, if it has one. Returns the number of the last entry
    /// there. Dropping the future leaves the flush under way.
    pub async fn barrier(&self) -> Result<u64, Error> {
        let mut done = self.shared.durable.subscribe();
        let target = self.shared.accepting()?.target();
        loop {
            match self.shared.turn(target)? {
                FlushTurn::Done(seq) => return Ok(seq),
                FlushTurn::Lead(lead) => flushers::flush(lead),
                FlushTurn::Follow => {}
            }
            // The sender lives as long as this writer.
            let _ = done.changed().await;
        }
    }

    /// Waits like [`Writer::barrier`], for a thread that may block.
    pub fn barrier_blocking(&self) -> Result<u64, Error> {
        let target = self.shared.accepting()?.target();
        loop {
            match self.shared.turn(target)? {
                FlushTurn::Done(seq) => return Ok(seq),
                FlushTurn::Lead(lead) => lead.flush(),
                FlushTurn::Follow => {
                    let mut state = self.shared.state.lock();
                    let flushed = &self.shared.flushed;
                    flushed.wait_while(&mut state, |state| state.flushing);
                }
            }
        }
    }

    /// Makes everything appended so far durable, and then writes the log's seal to the local disk:
    /// the statement that it is finished with these entries and the blobs that it has. Entries that
    /// are appended later are not covered by it. Dropping the future leaves the sealing under way.
    pub async fn seal(&self) -> Result<(), Error> {
        self.barrier().await?;
        let shared = Arc::clone(&self.shared);
        let sealing = tokio::task::spawn_blocking(move || {
            let (entries, head) = {
                let state = shared.accepting()?;
                (state.seq, state.hash)
            };
            Seal::of(&shared.files, entries, head)?.write(&shared.files)
        });
        sealing
            .await
            .map_err(io::Error::other)
            .map_err(Error::io("seal", &self.shared.files.folder))?
    }

    /// Checks that entries are still taken.
    ///
    /// # Errors
    /// The disk refused something. The log has to be taken again.
    pub fn check(&self) -> Result<(), Error> {
        self.shared.accepting().map(drop)
    }

    /// Returns the number of the next entry.
    pub fn next_seq(&self) -> u64 {
        self.shared.state.lock().seq + 1
    }

    /// Returns the number of the last durable entry, as it grows. Also announces a change without a
    /// new number when a flush failed.
    pub fn durable(&self) -> watch::Receiver<u64> {
        self.shared.durable.subscribe()
    }

    /// Stores content beside the log. It is on disk, under its name, before any entry that is
    /// appended from now on, and can be read at once. May block for the disk and the replica.
    pub fn put_blob(&self, bytes: &[u8]) -> Result<BlobId, Error> {
        drop(self.shared.accepting()?);
        let shared = self.shared.home.shared_blobs();
        let mut unsynced = self.shared.unsynced.lock();
        let id = blobs::put(&self.shared.files, &shared, &mut unsynced, bytes)?;
        let full = unsynced.len() >= UNSYNCED_LIMIT;
        drop(unsynced);
        self.shared.put(id);
        if full {
            self.barrier_blocking()?;
        }
        Ok(id)
    }

    /// Stores content that is not shared with other logs, is never exported, and can be read only
    /// by this log's reader. When this returns, it is on disk.
    pub fn put_private(&self, bytes: &[u8]) -> Result<BlobId, Error> {
        drop(self.shared.accepting()?);
        blobs::put_private(&self.shared.files, bytes)
    }

    /// Returns the bytes of a blob, checked against its hash.
    pub fn blob(&self, id: &BlobId) -> Result<Vec<u8>, Error> {
        blobs::read(&self.shared.files, id)
    }

    pub fn name(&self) -> &LogName {
        &self.shared.files.name
    }

    /// Returns a reader of the entries flushed so far.
    pub fn reader(&self) -> Result<LogReader, Error> {
        let files = Arc::clone(&self.shared.files);
        Ok(LogReader::new(&self.shared.home, files))
    }

    /// Returns the messages to the holder of this log.
    pub fn inbox(&self) -> Result<Inbox, Error> {
        Ok(Inbox::new(Arc::clone(&self.shared.files)))
    }
}

pub(crate) fn check(batch: &[NewEntry<'_>]) -> Result<(), Error> {
    let mut total = 0;
    for entry in batch {
        if !line::is_kind(entry.kind) {
            let given = entry.kind.chars().take(line::KIND_LIMIT + 1).collect();
            return Err(Error::BadKind { given });
        }
        let bytes = entry.payload.get().len();
        if bytes > PAYLOAD_LIMIT {
            let what = "the payload";
            return Err(Error::TooLarge {
                what,
                bytes: bytes as u64,
                limit: PAYLOAD_LIMIT as u64,
            });
        }
        total += bytes + HEADER_ALLOWANCE;
    }
    if total > BATCH_LIMIT {
        let what = "the batch";
        return Err(Error::TooLarge {
            what,
            bytes: total as u64,
            limit: BATCH_LIMIT as u64,
        });
    }
    Ok(())
}

/// Returns the text of a JSON value on one line. A newline in JSON is always white space.
pub(crate) fn one_line(json: &str) -> Cow<'_, [u8]> {
    if memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_none() {
        return json.as_bytes().into();
    }
    json.replace(['\n', '\r'], " ").into_bytes().into()
}
