//! Writing a log: entries are chained and buffered as they are appended, and put on disk in
//! batches, one write and one sync each, however many wait for it.
//!
//! Whoever needs something on disk and finds no flush under way leads one; the others wait for
//! its end and look again. Batches form by themselves while a flush is under way.
//!
//! A writer that failed once accepts nothing more: what a failed sync left behind nobody can
//! know, and asking again would be answered with a success that means nothing.

use std::{
    io, mem,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use gyrus_contract::{BlobId, Digest};
use serde_json::value::RawValue;
use tokio::{runtime::Handle, sync::watch};

use crate::{
    Error, Inbox, LogName, Reader, blobs,
    line::{self, BatchStart, PAYLOAD_LIMIT},
    lock::Lock,
    segment::{Files, write_all},
    store::Home,
    take::{self, Output},
};

/// Entries that nobody waits for are on disk after so long, inside a tokio runtime.
pub(crate) const FLUSH_INTERVAL: Duration = Duration::from_millis(50);

/// Payloads of one call of [`Writer::append`], in bytes.
pub(crate) const BATCH_LIMIT: usize = 32 << 20;

/// Counted for each entry beside its payload, in bytes.
const HEADER_ALLOWANCE: usize = 256;

/// Appending waits for the disk when more bytes than this are buffered.
const PENDING_LIMIT: usize = 16 << 20;

/// An entry to append.
#[derive(Debug, Clone)]
pub struct NewEntry<'a> {
    /// What happened: `[a-z0-9._-]{1,64}`.
    pub kind: &'a str,
    /// Version of the payload's shape.
    pub version: u16,
    /// JSON, at most 8 MB.
    pub payload: Box<RawValue>,
}

/// The one writer of a log. Clones are the same writer; the log is released when the last one is
/// dropped, which first puts on disk what is not yet there.
#[derive(Debug, Clone)]
pub struct Writer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    home: Arc<Home>,
    files: Arc<Files>,
    state: Mutex<State>,
    /// Signalled when a flush ends.
    flushed: Condvar,
    durable: watch::Sender<u64>,
    /// Used by whoever leads a flush.
    output: Mutex<Output>,
    /// When the log was taken, by the clock that does not go back, in microseconds.
    taken_us: u64,
    /// Released last.
    lock: Lock,
}

#[derive(Debug)]
struct State {
    /// Lines that are not written yet.
    pending: Vec<u8>,
    /// The last entry appended, and its hash.
    seq: u64,
    hash: Digest,
    /// Blobs put, and those of them whose names are on disk.
    blobs: u64,
    blobs_durable: u64,
    flushing: bool,
    /// A task will flush what is pending.
    timer: bool,
    failed: Option<Failure>,
}

/// Why a writer accepts nothing more.
#[derive(Debug, Clone)]
struct Failure {
    what: &'static str,
    path: PathBuf,
    intact: u64,
    source: Arc<io::Error>,
}

/// What to wait for.
#[derive(Debug, Clone, Copy)]
struct Target {
    seq: u64,
    hash: Digest,
    blobs: u64,
}

/// What somebody who waits for the disk has to do.
enum Turn {
    Done(u64),
    Lead(Lead),
    Follow,
}

impl Writer {
    pub(crate) fn new(home: &Arc<Home>, files: Files, lock: Lock, output: Output) -> Self {
        let state = State {
            pending: Vec::new(),
            seq: output.seq,
            hash: output.hash,
            blobs: 0,
            blobs_durable: 0,
            flushing: false,
            timer: false,
            failed: None,
        };
        let shared = Shared {
            home: Arc::clone(home),
            taken_us: home.disk.now().mono_us,
            files: Arc::new(files),
            state: Mutex::new(state),
            flushed: Condvar::new(),
            durable: watch::Sender::new(output.seq),
            output: Mutex::new(output),
            lock,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Appends entries with contiguous numbers, and returns the number of the last one. All are
    /// accepted or none. They are on disk after [`Writer::barrier`], or inside a tokio runtime
    /// after 50 ms; a crash before that may leave the first of them only.
    pub fn append(&self, batch: &[NewEntry<'_>]) -> Result<u64, Error> {
        check(batch)?;
        let mut state = self.shared.accepting()?;
        let now = self.shared.home.disk.now();
        for entry in batch {
            let start = state.pending.is_empty().then(|| BatchStart {
                synced: *self.shared.durable.borrow(),
                previous: state.hash,
            });
            let header = line::Header {
                seq: state.seq + 1,
                at_ms: now.unix_ms,
                mono_us: now.mono_us.saturating_sub(self.shared.taken_us),
                kind: entry.kind,
                version: entry.version,
                batch: start,
            };
            let payload = one_line(entry.payload.get());
            let State { pending, hash, .. } = &mut *state;
            *hash = line::encode(pending, &self.shared.files.key, hash, &header, &payload);
            state.seq += 1;
        }
        let (seq, full) = (state.seq, state.pending.len() > PENDING_LIMIT);
        let timer = !state.pending.is_empty() && !state.timer && Handle::try_current().is_ok();
        state.timer |= timer;
        drop(state);
        if timer {
            self.shared.start_timer();
        }
        if full {
            self.barrier_blocking()?;
        }
        Ok(seq)
    }

    /// Waits until everything appended and every blob put so far is on disk, and returns the
    /// number of the last entry there. Dropping the future leaves the flush under way.
    pub async fn barrier(&self) -> Result<u64, Error> {
        let mut done = self.shared.durable.subscribe();
        let target = self.shared.accepting()?.target();
        loop {
            match self.shared.turn(target)? {
                Turn::Done(seq) => return Ok(seq),
                Turn::Lead(lead) => match Handle::try_current() {
                    // It only fails if the runtime ends; then somebody else leads.
                    Ok(runtime) => {
                        if runtime.spawn_blocking(move || lead.flush()).await.is_err() {
                            return self.barrier_blocking();
                        }
                    }
                    Err(_) => lead.flush(),
                },
                Turn::Follow => {
                    // The sender lives as long as we do.
                    let _ = done.changed().await;
                }
            }
        }
    }

    /// [`Writer::barrier`] for a thread that may block.
    pub fn barrier_blocking(&self) -> Result<u64, Error> {
        let target = self.shared.accepting()?.target();
        loop {
            match self.shared.turn(target)? {
                Turn::Done(seq) => return Ok(seq),
                Turn::Lead(lead) => lead.flush(),
                Turn::Follow => {
                    let state = self.shared.state();
                    drop(
                        self.shared
                            .flushed
                            .wait_while(state, |state| state.flushing),
                    );
                }
            }
        }
    }

    /// The number that the next entry gets.
    pub fn next_seq(&self) -> u64 {
        self.shared.state().seq + 1
    }

    /// The number of the last entry on disk, as it grows. Also announces a change without one when
    /// a flush failed.
    pub fn durable(&self) -> watch::Receiver<u64> {
        self.shared.durable.subscribe()
    }

    /// Stores content beside the log. It is on disk, under its name, before any entry that is
    /// appended from now on. Blocks for the disk if the content is new.
    pub fn put_blob(&self, bytes: &[u8]) -> Result<BlobId, Error> {
        drop(self.shared.accepting()?);
        let id = blobs::put(&self.shared.files, &self.shared.home.shared_blobs(), bytes)?;
        self.shared.state().blobs += 1;
        Ok(id)
    }

    /// The bytes of a blob, checked against its hash.
    pub fn blob(&self, id: &BlobId) -> Result<Vec<u8>, Error> {
        blobs::read(&self.shared.files, id)
    }

    /// Which log.
    pub fn name(&self) -> &LogName {
        &self.shared.files.name
    }

    /// Reads what was flushed so far.
    pub fn reader(&self) -> Result<Reader, Error> {
        Ok(Reader::new(Arc::clone(&self.shared.files)))
    }

    /// Messages to the holder of this log.
    pub fn inbox(&self) -> Result<Inbox, Error> {
        Ok(Inbox::new(Arc::clone(&self.shared.files)))
    }
}

fn check(batch: &[NewEntry<'_>]) -> Result<(), Error> {
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

/// The text of a JSON value on one line. A newline in JSON is always white space.
fn one_line(json: &str) -> std::borrow::Cow<'_, [u8]> {
    if memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_none() {
        return json.as_bytes().into();
    }
    json.replace(['\n', '\r'], " ").into_bytes().into()
}

impl State {
    fn target(&self) -> Target {
        Target {
            seq: self.seq,
            hash: self.hash,
            blobs: self.blobs,
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change under this lock is complete before anything in it can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of a writer that did not fail.
    fn accepting(&self) -> Result<MutexGuard<'_, State>, Error> {
        let state = self.state();
        match &state.failed {
            None => Ok(state),
            Some(Failure {
                what,
                path,
                intact,
                source,
            }) => Err(Error::Failed {
                name: self.files.name.clone(),
                what,
                path: path.clone(),
                intact: *intact,
                source: Arc::clone(source),
            }),
        }
    }

    fn turn(self: &Arc<Self>, target: Target) -> Result<Turn, Error> {
        let mut state = self.accepting()?;
        let durable = *self.durable.borrow();
        if durable >= target.seq && state.blobs_durable >= target.blobs {
            return Ok(Turn::Done(durable));
        }
        if state.flushing {
            return Ok(Turn::Follow);
        }
        state.flushing = true;
        Ok(Turn::Lead(Lead {
            shared: Arc::clone(self),
            began: false,
        }))
    }

    /// Flushes what is pending now and then, until nothing is.
    fn start_timer(self: &Arc<Self>) {
        let timer = Timer(Arc::downgrade(self));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(FLUSH_INTERVAL).await;
                let Some(shared) = timer.0.upgrade() else {
                    return;
                };
                {
                    let mut state = shared.state();
                    if state.pending.is_empty() || state.failed.is_some() {
                        state.timer = false;
                        return;
                    }
                }
                // Whoever needs the entries on disk is told of a failure.
                let _ = Writer { shared }.barrier().await;
            }
        });
    }

    /// One write and one sync. Returns the new last durable entry.
    fn write(&self, pending: &[u8], target: Target, put: bool) -> Result<u64, Error> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if put {
            let folder = self.files.blobs();
            self.files
                .disk
                .sync_folder(&folder)
                .map_err(Error::io("sync", folder))?;
        }
        if pending.is_empty() {
            return Ok(output.seq);
        }
        if output.bytes >= self.home.segment_bytes {
            *output = take::next(&self.files, &output, &self.lock.holder)?;
        }
        let path = self.files.segment_path(output.segment);
        write_all(output.file.as_ref(), pending).map_err(Error::io("write", &path))?;
        output.file.sync().map_err(Error::io("sync", path))?;
        output.bytes += pending.len() as u64;
        (output.seq, output.hash) = (target.seq, target.hash);
        Ok(target.seq)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (pending, target) = (mem::take(&mut state.pending), state.target());
        if state.failed.is_none() && !pending.is_empty() {
            // Nobody was promised these entries, so nobody needs to be told.
            let _ = self.write(&pending, target, true);
        }
    }
}

/// A task that flushes; when it ends, however it ends, the next appending starts another.
struct Timer(Weak<Shared>);

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.state().timer = false;
        }
    }
}

/// The right and duty to flush. Whatever becomes of it, the next in line gets a turn.
struct Lead {
    shared: Arc<Shared>,
    began: bool,
}

impl Lead {
    fn flush(mut self) {
        let shared = Arc::clone(&self.shared);
        let (pending, target, put) = {
            let mut state = shared.state();
            self.began = true;
            let put = state.blobs_durable < state.blobs;
            (mem::take(&mut state.pending), state.target(), put)
        };
        let written = shared.write(&pending, target, put);
        let mut state = shared.state();
        match written {
            Ok(durable) => {
                state.blobs_durable = state.blobs_durable.max(target.blobs);
                self.began = false;
                // Announced when the next may lead, in `drop`.
                shared.durable.send_if_modified(|seq| {
                    *seq = durable;
                    false
                });
            }
            Err(error) => state.failed = Some(failure(error, *shared.durable.borrow())),
        }
    }
}

fn failure(error: Error, intact: u64) -> Failure {
    match error {
        Error::Io { what, path, source } => Failure {
            what,
            path,
            intact,
            source: source.into(),
        },
        other => Failure {
            what: "write",
            path: PathBuf::new(),
            intact,
            source: Arc::new(io::Error::other(other)),
        },
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.flushing = false;
        if self.began && state.failed.is_none() {
            let source = io::Error::other("the thread that flushed it panicked");
            let error = Error::Io {
                what: "flush",
                path: self.shared.files.folder.clone(),
                source,
            };
            state.failed = Some(failure(error, *self.shared.durable.borrow()));
        }
        drop(state);
        self.shared.flushed.notify_all();
        // Announced even if nothing was put on disk: who waits must look for a failure.
        self.shared.durable.send_modify(|_| ());
    }
}
