//! Group commit: entries are put on disk in batches with one write and one sync each, however many
//! tasks wait for them.
//!
//! A task that needs something on disk and finds no flush under way leads one; the others wait for
//! its end and check again. Batches form while a flush is under way.
//!
//! A batch of a log with a replica goes there when the local disk has it. The flush then goes on
//! without a thread and ends with the replica's answer, so a replica that takes its time holds up
//! its own log only.
//!
//! A writer that failed once accepts nothing more; see `failure`.

use std::{io, mem, sync::Arc};

use gyrus_contract::{BlobId, Digest};
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::watch;

use crate::{
    Error,
    blobs::{self, UnsyncedBlob},
    failure::FinalFailure,
    home::StoreHome,
    lock::Lock,
    replica::{self, Replica, ReplicaBatch, ReplicaDone},
    segment::{LogFiles, write_all},
    take::{self, SegmentWriter},
};

/// The state shared by the clones of a writer.
#[derive(Debug)]
pub(crate) struct WriterInner {
    pub(crate) home: Arc<StoreHome>,
    pub(crate) files: Arc<LogFiles>,
    pub(crate) state: Mutex<WriterState>,
    /// Blobs that the next flush syncs.
    pub(crate) unsynced: Mutex<Vec<UnsyncedBlob>>,
    /// Signalled when a flush ends.
    pub(crate) flushed: Arc<Condvar>,
    pub(crate) durable: watch::Sender<u64>,
    /// The output, used by the leader of a flush.
    output: Mutex<SegmentWriter>,
    /// The replica, which must have an entry before the entry is durable.
    replica: Option<Arc<dyn Replica>>,
    /// The time at which the log was taken, by the monotonic clock, in microseconds.
    pub(crate) taken_us: u64,
    /// The lock of the log, released last.
    lock: Lock,
}

#[derive(Debug)]
pub(crate) struct WriterState {
    /// Lines that are not written yet.
    pub(crate) pending: Vec<u8>,
    /// The number of the last entry appended, and its hash.
    pub(crate) seq: u64,
    pub(crate) hash: Digest,
    /// Number of blobs added, and number of those whose names are on disk.
    pub(crate) blobs: u64,
    blobs_durable: u64,
    /// The blobs put since the last batch that went to the replica; empty without one.
    blobs_for_replica: Vec<BlobId>,
    pub(crate) flushing: bool,
    /// Whether a task will flush the pending lines.
    pub(crate) timer: bool,
    failed: Option<FinalFailure>,
}

/// The state that a waiting task needs to be on disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlushTarget {
    seq: u64,
    hash: Digest,
    blobs: u64,
}

/// The next step of a task that waits for the disk.
pub(crate) enum FlushTurn {
    Done(u64),
    Lead(Lead),
    Follow,
}

impl WriterState {
    pub(crate) fn target(&self) -> FlushTarget {
        FlushTarget {
            seq: self.seq,
            hash: self.hash,
            blobs: self.blobs,
        }
    }

    /// Whether there are entries that can still be written.
    pub(crate) fn waits(&self) -> bool {
        !self.pending.is_empty() && self.failed.is_none()
    }
}

impl WriterInner {
    /// Creates the state of a writer whose replica has the entries up to the end of `output`,
    /// except for these blobs.
    pub(crate) fn new(
        home: &Arc<StoreHome>,
        files: LogFiles,
        lock: Lock,
        output: SegmentWriter,
        replica: Option<Arc<dyn Replica>>,
        blobs_for_replica: Vec<BlobId>,
    ) -> Self {
        let state = WriterState {
            pending: Vec::new(),
            seq: output.seq,
            hash: output.hash,
            blobs: 0,
            blobs_durable: 0,
            blobs_for_replica,
            flushing: false,
            timer: false,
            failed: None,
        };
        let durable = watch::Sender::new(output.seq);
        home.begin_writing(&files.name, durable.subscribe());
        Self {
            home: Arc::clone(home),
            taken_us: home.disk.now().mono_us,
            files: Arc::new(files),
            state: Mutex::new(state),
            unsynced: Mutex::default(),
            flushed: Arc::default(),
            durable,
            output: Mutex::new(output),
            replica,
            lock,
        }
    }

    /// Returns the state of the writer, unless it has failed.
    pub(crate) fn accepting(&self) -> Result<MutexGuard<'_, WriterState>, Error> {
        let state = self.state.lock();
        match &state.failed {
            None => Ok(state),
            Some(failure) => Err(failure.error(&self.files.name)),
        }
    }

    /// Records that a blob was put, so that later entries may name it.
    pub(crate) fn put(&self, id: BlobId) {
        let mut state = self.state.lock();
        state.blobs += 1;
        if self.replica.is_some() {
            state.blobs_for_replica.push(id);
        }
    }

    pub(crate) fn turn(self: &Arc<Self>, target: FlushTarget) -> Result<FlushTurn, Error> {
        let mut state = self.accepting()?;
        let durable = *self.durable.borrow();
        if durable >= target.seq && state.blobs_durable >= target.blobs {
            return Ok(FlushTurn::Done(durable));
        }
        if state.flushing {
            return Ok(FlushTurn::Follow);
        }
        state.flushing = true;
        Ok(FlushTurn::Lead(Lead {
            shared: Some(Arc::clone(self)),
            began: false,
            durable,
        }))
    }

    /// Syncs new blobs to disk, then writes and syncs the entries. Returns the number of the last
    /// durable entry.
    fn write(&self, pending: &[u8], target: FlushTarget, put: bool) -> Result<u64, Error> {
        let mut output = self.output.lock();
        if put {
            let shared = self.home.shared_blobs();
            blobs::finish(&self.files, &shared, &mut self.unsynced.lock())?;
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

impl Drop for WriterInner {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let waits = state.waits();
        let (pending, target) = (mem::take(&mut state.pending), state.target());
        if waits {
            // Nobody was promised that these entries are durable, so nobody needs to be told of a
            // failure.
            let _ = self.write(&pending, target, true);
        }
        // Runs before the lock is released, after which there may be another writer.
        self.home.end_writing(&self.files.name);
    }
}

/// The right and duty to flush. When it is dropped, another task can become the leader.
pub(crate) struct Lead {
    /// The writer's state; `None` only during the drop.
    shared: Option<Arc<WriterInner>>,
    began: bool,
    /// The number of the last entry that this flush made durable.
    durable: u64,
}

impl Lead {
    pub(crate) fn flush(mut self) {
        let Some(shared) = self.shared.clone() else {
            return;
        };
        let (pending, target, put, blobs) = {
            let mut state = shared.state.lock();
            self.began = true;
            let put = state.blobs_durable < state.blobs;
            let pending = mem::take(&mut state.pending);
            // Blobs without an entry go to the replica with the next one.
            let blobs = if pending.is_empty() {
                Vec::new()
            } else {
                mem::take(&mut state.blobs_for_replica)
            };
            (pending, state.target(), put, blobs)
        };
        let replica = shared.replica.clone().filter(|_| !pending.is_empty());
        let Some(replica) = replica else {
            let written = shared.write(&pending, target, put);
            // Only the writer's own handles are left when the end of the flush is announced.
            drop(shared);
            return self.end(target, written);
        };
        let before = {
            let output = shared.output.lock();
            (output.seq, output.hash)
        };
        if let Err(error) = shared.write(&pending, target, put) {
            drop(shared);
            return self.end(target, Err(error));
        }
        let last = (target.seq, target.hash);
        let batch = ReplicaBatch::new(&shared.files, before, last, pending, blobs);
        drop(shared);
        let done = ReplicaDone::new(move |answer| self.answered(target, answer));
        replica::give(replica.as_ref(), batch, done);
    }

    /// Ends a flush with the result of the local disk.
    fn end(mut self, target: FlushTarget, written: Result<u64, Error>) {
        match written {
            Ok(durable) => self.succeeded(target, durable),
            Err(error) => self.failed(|intact| FinalFailure::of(error, intact)),
        }
    }

    /// Ends a flush with the replica's answer.
    fn answered(mut self, target: FlushTarget, answer: Result<(), String>) {
        match answer {
            Ok(()) => self.succeeded(target, target.seq),
            Err(why) => self.failed(|intact| FinalFailure::Replica { intact, why }),
        }
    }

    fn succeeded(&mut self, target: FlushTarget, durable: u64) {
        if let Some(shared) = &self.shared {
            let mut state = shared.state.lock();
            state.blobs_durable = state.blobs_durable.max(target.blobs);
            self.began = false;
            self.durable = durable;
        }
    }

    fn failed(&mut self, failure: impl FnOnce(u64) -> FinalFailure) {
        if let Some(shared) = &self.shared {
            let intact = *shared.durable.borrow();
            shared.state.lock().failed = Some(failure(intact));
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        let Some(shared) = self.shared.take() else {
            return;
        };
        let mut state = shared.state.lock();
        state.flushing = false;
        if self.began && state.failed.is_none() {
            let source = io::Error::other("the thread that flushed it panicked");
            let error = Error::Io {
                what: "flush",
                path: shared.files.folder.clone(),
                source,
            };
            state.failed = Some(FinalFailure::of(error, *shared.durable.borrow()));
        }
        drop(state);
        let (flushed, durable) = (Arc::clone(&shared.flushed), shared.durable.clone());
        // Dropped first: whoever hears of it may drop the last writer and need the log's lock to be
        // free.
        drop(shared);
        // Announced even if nothing was put on disk: waiting tasks must check for a failure. Whoever
        // led next may have announced more already.
        durable.send_modify(|seq| *seq = self.durable.max(*seq));
        flushed.notify_all();
    }
}
