//! A second place that must have what a log has before it counts.
//!
//! A replica gets the lines of each batch after the local disk has them, and an entry is durable
//! when both have it. So a replica never has an entry that the local disk lost, but after a crash or
//! a failure the local disk may have entries that the replica does not: taking the log sends them,
//! and [`Mirror::cut`](crate::Mirror::cut) drops them.
//!
//! How a replica stores batches, and how it decides which of two writers may, is not known here.

use std::{
    fmt, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
};

use gyrus_contract::{BlobId, Digest};

use crate::{
    Error, LogName, blobs, line::LogLine, scan::SegmentWalk, seek, segment::LogFiles,
    take::SegmentWriter,
};

/// Name of the empty file in the folder of a log that counts only with its replica.
const MARK: &str = "replicated";

/// Number of bytes of lines that taking a log sends at once.
const CATCH_UP_BYTES: usize = 1 << 20;

/// The reason for a failure when a replica dropped a [`ReplicaDone`].
const DROPPED: &str = "it dropped the batch without an answer";

/// The replicas of the logs of a store.
pub trait Replicas: Send + Sync + fmt::Debug {
    /// Returns the replica of a log that is being created or taken; `None` if the local disk alone
    /// decides what counts.
    fn replica_of(&self, log: &LogName) -> Option<Arc<dyn Replica>>;
}

/// The second copy of one log.
pub trait Replica: Send + Sync + fmt::Debug {
    /// Stores a batch that is on the local disk. Batches come one at a time: the next one comes
    /// after `done` was called for the one before, and follows it.
    ///
    /// Must not block: threads that all logs share call this. Calls `done` exactly once, from any
    /// thread, also before this returns; dropping it is a failure. Until then the log stays locked,
    /// even when its writer is dropped. Threads that append may block until the answer, so it must
    /// not depend on them. A batch that failed may have been stored all the same; then
    /// [`Replica::has`] says so when the log is taken next.
    fn store(&self, batch: ReplicaBatch, done: ReplicaDone);

    /// Returns the number of the replica's last entry. Asked while a log is taken, by a thread that
    /// may block.
    ///
    /// # Errors
    /// Returns the reason why it cannot be found out.
    fn has(&self) -> Result<u64, String>;
}

/// Consecutive entries for a replica.
#[derive(Debug)]
pub struct ReplicaBatch {
    /// The number of the first entry.
    pub first_seq: u64,
    /// The number of the last entry.
    pub last_seq: u64,
    /// The hash of the entry before the first one.
    pub previous: Digest,
    /// The hash of the last entry.
    pub head: Digest,
    /// The lines, each with its newline, exactly as in the local segment.
    pub lines: Vec<u8>,
    /// The blobs put since the previous batch, sorted, including those that the replica may have.
    /// The entries may name them. Private content is never among them.
    pub blobs: Vec<BlobId>,
    files: Arc<LogFiles>,
}

impl ReplicaBatch {
    /// Creates the batch of the entries after `before` up to `last`, which are numbers and hashes.
    pub(crate) fn new(
        files: &Arc<LogFiles>,
        before: (u64, Digest),
        last: (u64, Digest),
        lines: Vec<u8>,
        mut blobs: Vec<BlobId>,
    ) -> Self {
        blobs.sort_unstable();
        blobs.dedup();
        Self {
            first_seq: before.0 + 1,
            last_seq: last.0,
            previous: before.1,
            head: last.1,
            lines,
            blobs,
            files: Arc::clone(files),
        }
    }

    pub fn name(&self) -> &LogName {
        &self.files.name
    }

    /// Returns the bytes of one of the blobs, checked against its hash. Works until the batch is
    /// answered, also for a log that has no name yet.
    pub fn blob(&self, id: &BlobId) -> Result<Vec<u8>, Error> {
        blobs::read(&self.files, id)
    }
}

/// The action that follows the answer of a replica.
type OnAnswer = Box<dyn FnOnce(Result<(), String>) + Send>;

/// The right and duty to answer whether a replica has a batch. Dropping it is a failure. The
/// answer may write to the local disk if the writer was dropped meanwhile.
pub struct ReplicaDone {
    /// The callback; `None` once the answer was given.
    on_answer: Option<OnAnswer>,
}

impl fmt::Debug for ReplicaDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplicaDone")
    }
}

impl ReplicaDone {
    pub(crate) fn new(on_answer: impl FnOnce(Result<(), String>) + Send + 'static) -> Self {
        Self {
            on_answer: Some(Box::new(on_answer)),
        }
    }

    /// Reports that the replica has stored the batch durably.
    pub fn stored(mut self) {
        self.answer(Ok(()));
    }

    /// Reports that the batch was refused, or that it is unknown whether the replica has it. The
    /// writer accepts nothing more, and its error gives this reason.
    pub fn failed(mut self, reason: impl Into<String>) {
        self.answer(Err(reason.into()));
    }

    fn answer(&mut self, answer: Result<(), String>) {
        if let Some(on_answer) = self.on_answer.take() {
            on_answer(answer);
        }
    }
}

impl Drop for ReplicaDone {
    fn drop(&mut self) {
        self.answer(Err(DROPPED.to_owned()));
    }
}

/// Whether a log counts only with its replica.
pub(crate) fn is_needed(files: &LogFiles) -> bool {
    files.disk.metadata(&files.folder.join(MARK)).is_ok()
}

/// Marks a log as counting only with its replica. Its name is on disk after the log's folder is
/// synced, as it is with the next segment.
pub(crate) fn mark(files: &LogFiles) -> Result<(), Error> {
    if is_needed(files) {
        return Ok(());
    }
    let path = files.folder.join(MARK);
    let file = files.disk.create_new(&path);
    let file = file.map_err(Error::io("create", &path))?;
    file.sync().map_err(Error::io("sync", path))
}

/// Passes a batch to a replica. A replica that panics has dropped its answer.
pub(crate) fn give(replica: &dyn Replica, batch: ReplicaBatch, done: ReplicaDone) {
    let _ = catch_unwind(AssertUnwindSafe(|| replica.store(batch, done)));
}

/// Passes a batch to a replica and waits for its answer. `intact` is the last entry that both have.
pub(crate) fn store_blocking(
    replica: &dyn Replica,
    batch: ReplicaBatch,
    intact: u64,
) -> Result<(), Error> {
    let name = batch.name().clone();
    let (answer, answered) = mpsc::channel();
    let done = ReplicaDone::new(move |result| drop(answer.send(result)));
    give(replica, batch, done);
    let answer = answered.recv().unwrap_or_else(|_| Err(DROPPED.to_owned()));
    answer.map_err(|why| Error::ReplicaFailed { name, intact, why })
}

/// Returns the number of the replica's last entry, which the local log must reach.
pub(crate) fn has(replica: &dyn Replica, files: &Arc<LogFiles>) -> Result<u64, Error> {
    let has = replica.has().map_err(|why| Error::ReplicaUnknown {
        name: files.name.clone(),
        why,
    })?;
    let end = seek::end(files)?.position().seq;
    if has > end {
        let name = files.name.clone();
        return Err(Error::ReplicaAhead { name, has, end });
    }
    Ok(has)
}

/// Passes the entries after the number `has` of a just recovered log to a replica, and waits for
/// it. All blobs of the log go with the first of them: it is not known which ones they name.
pub(crate) fn catch_up(
    replica: &dyn Replica,
    files: &Arc<LogFiles>,
    has: u64,
    output: &SegmentWriter,
) -> Result<(), Error> {
    if has == output.seq {
        return Ok(());
    }
    let mut walk = SegmentWalk::new(files, seek::before(files, has + 1)?);
    let mut blobs = blobs::list(files)?;
    let position = walk.scan.position();
    let (mut before, mut last) = ((position.seq, position.hash), (position.seq, position.hash));
    let mut lines = Vec::new();
    let add = |lines: &mut Vec<u8>, line: &LogLine<'_>| {
        lines.extend_from_slice(line.text);
        lines.push(b'\n');
        (line.header.seq, line.hash)
    };
    while last.0 < output.seq {
        let Some(entry) = walk.next(&mut |line| add(&mut lines, line))? else {
            break;
        };
        last = entry;
        if lines.len() >= CATCH_UP_BYTES || last.0 == output.seq {
            let lines = mem::take(&mut lines);
            let batch = ReplicaBatch::new(files, before, last, lines, mem::take(&mut blobs));
            store_blocking(replica, batch, before.0)?;
            before = last;
        }
    }
    Ok(())
}
