//! The errors of stores and logs, in words for a person.

use std::{io, path::PathBuf, sync::Arc};

use gyrus_contract::{BlobId, Digest};

use crate::{BadLogName, Holder, LogName};

/// The reason why an operation on a store, a log or one of its parts failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text is not a valid name of a log.
    #[error(transparent)]
    BadName(#[from] BadLogName),
    /// The store would be on a network file system, where locks and syncing cannot be relied on.
    #[error(
        "{} is on a network file system ({file_system}), which can lose entries; use a folder on \
         a local disk", root.display()
    )]
    NetworkFileSystem {
        /// The root of the store.
        root: PathBuf,
        /// The kind of file system.
        file_system: String,
    },
    #[error("{} is not a store: {why}; choose an empty folder or a store", root.display())]
    NotAStore {
        root: PathBuf,
        /// The reason why the folder is not a store.
        why: String,
    },
    /// The store or segment was written by a newer program; it can be read but not written.
    #[error(
        "{} has format {found} and this program writes {known}; it can only be read, upgrade to \
         write", path.display()
    )]
    NewerFormat {
        /// The store or segment.
        path: PathBuf,
        found: u32,
        /// The version of this program.
        known: u32,
    },
    #[error("there is a log {name} already")]
    Exists { name: LogName },
    /// The log was imported, or its folder was copied from another store.
    #[error(
        "{name} was not begun here: it was imported or copied, so it can be read, and nothing goes \
         on with it"
    )]
    BornElsewhere { name: LogName },
    /// The store was copied here, and no person has adopted it.
    #[error(
        "{} was copied or moved here from another place, so what is in it can be read, and nothing \
         is begun there or gone on with", root.display()
    )]
    CopiedStore {
        /// The root of the store.
        root: PathBuf,
    },
    /// The log does not exist.
    #[error("there is no log {name}")]
    NotFound { name: LogName },
    /// A live process holds the log.
    #[error(
        "{name} is held by process {} on {}", holder.process.pid, holder.host
    )]
    Held {
        name: LogName,
        /// The process that holds the log.
        holder: Box<Holder>,
    },
    /// The log is locked, but its holder has not recorded its identity.
    #[error("{name} is held by a process that left no record in its lock; find it with `lsof`")]
    HeldByUnknown { name: LogName },
    /// The holder of a log could not be killed.
    #[error("{name} is held by process {} and it could not be ended: {source}", holder.process.pid)]
    NotKilled {
        name: LogName,
        /// The process that holds the log.
        holder: Box<Holder>,
        /// The reason why the process could not be killed.
        source: io::Error,
    },
    /// The content differs from what was on disk before. Never the result of a mere crash.
    #[error(
        "{name} is damaged: segment {segment}, byte {offset}, entry {seq}: {why}; restore it from \
         a copy, or read it up to the entry before"
    )]
    Corrupt {
        name: LogName,
        /// The segment's number.
        segment: u32,
        /// The position in the segment, in bytes.
        offset: u64,
        /// Number of the expected entry.
        seq: u64,
        /// Description of the content found instead, and the proof that it is wrong.
        why: String,
    },
    #[error("the seal of {name} is damaged: {why}; restore its file `sealed` from a copy")]
    BadSeal { name: LogName, why: String },
    /// A text is not a valid kind of entry.
    #[error("`{given}` is not a kind of entry; it is of a-z, 0-9, `.`, `_` and `-`, at most 64")]
    BadKind {
        /// The invalid text, cut.
        given: String,
    },
    /// A batch, payload, blob or message is larger than its limit.
    #[error("{what} has {bytes} bytes and at most {limit} are allowed")]
    TooLarge {
        /// The kind of data.
        what: &'static str,
        bytes: u64,
        /// Maximum size.
        limit: u64,
    },
    /// The writer failed: earlier entries that were not durable may be lost, and no more are
    /// accepted.
    #[error(
        "cannot {what} {}: {source}; {name} is intact up to entry {intact}, what came after may \
         be lost; see to the disk, then take the log again", path.display()
    )]
    Failed {
        name: LogName,
        /// The operation that failed.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The last entry known to be on disk.
        intact: u64,
        source: Arc<io::Error>,
    },
    /// The replica of a log did not store a batch, or its answer was lost. Entries after `intact`
    /// may be on the local disk and at the replica, but do not count; no more are accepted.
    #[error(
        "the second copy of {name} did not take the entries after {intact}: {why}; they are only \
         known to be on this machine and do not count, see to the second copy, then take the log \
         again"
    )]
    ReplicaFailed {
        name: LogName,
        /// The last entry known to be in both places.
        intact: u64,
        /// The reason, as reported by the replica.
        why: String,
    },
    /// The content of a log's replica is unknown.
    #[error("cannot find out what the second copy of {name} has: {why}")]
    ReplicaUnknown {
        name: LogName,
        /// The reason, as reported by the replica.
        why: String,
    },
    /// The replica of a log has entries that the local disk does not have.
    #[error(
        "the second copy of {name} has {has} entries and only {end} are here; bring the log here \
         up to it before it is taken"
    )]
    ReplicaAhead {
        name: LogName,
        /// The number of the replica's last entry.
        has: u64,
        /// The number of the last entry here.
        end: u64,
    },
    /// The log has entries that count only with a replica, and none was given.
    #[error(
        "{name} counts only with its second copy, elsewhere: what is here may be behind it, so it is \
         not written without it"
    )]
    NeedsReplica { name: LogName },
    #[error("these lines do not continue {name} at entry {seq}: {why}; none of them was written")]
    BadLines {
        name: LogName,
        /// The number of the first invalid entry.
        seq: u64,
        why: String,
    },
    /// A log and its source have different entries under one number.
    #[error(
        "entry {seq} of {name} has the hash {found} here and {expected} at its source: they have \
         different histories, begin the copy anew"
    )]
    OtherHistory {
        name: LogName,
        /// The number of the entry.
        seq: u64,
        /// The hash of the entry here.
        found: Digest,
        /// The hash of the entry at the source.
        expected: Digest,
    },
    /// A read or write failed; nothing was half done.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        source: io::Error,
    },
    /// The log has no entry with this number.
    #[error("{name} has no entry {seq}; its last one is {last}")]
    NoSuchEntry {
        name: LogName,
        /// The requested number.
        seq: u64,
        /// The number of the last entry.
        last: u64,
    },
    /// The log does not have this blob, or no longer has it.
    #[error("{name} does not have the blob {id}; it was dropped, or never put")]
    BlobMissing { name: LogName, id: BlobId },
    /// A blob that the log had when it was finished is missing, though it was never dropped.
    #[error("the blob {id} of {name} is lost; restore it from a copy of the log")]
    BlobLost { name: LogName, id: BlobId },
    /// The bytes of a blob do not match its hash.
    #[error("the blob {id} of {name} is damaged; restore it from a copy of the log")]
    BlobDamaged { name: LogName, id: BlobId },
    #[error("`{given}` cannot be the id of a message; it must be a UUID")]
    BadMessageId {
        /// The invalid text, cut.
        given: String,
    },
    /// Too many messages are waiting.
    #[error("{waiting} messages wait in the inbox of {name} already; let it read them first")]
    InboxFull {
        name: LogName,
        /// Number of waiting messages.
        waiting: usize,
    },
    /// The data is not an exported log, or was damaged on the way.
    #[error("this is not a complete export of a log: {why}")]
    BadExport { why: String },
}

impl Error {
    /// Creates an error that names the failed operation and its path.
    pub(crate) fn io(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Error::Io { what, path, source }
    }
}
