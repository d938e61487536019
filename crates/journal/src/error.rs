//! What can go wrong with a log, in words for a person.

use std::{io, path::PathBuf, sync::Arc};

use gyrus_contract::BlobId;

use crate::{Holder, LogName};

/// Why something could not be done to a store, a log or one of its parts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not a name for a log.
    #[error("`{given}` cannot name a log; both parts of `kind/id` are of a-z, 0-9 and `-`")]
    BadName {
        /// What was given, cut.
        given: String,
    },
    /// The store would be on a network file system, where locks and syncing cannot be relied on.
    #[error(
        "{} is on a network file system ({file_system}), which can lose entries; use a folder on \
         a local disk", root.display()
    )]
    NetworkFileSystem {
        /// Where the store would be.
        root: PathBuf,
        /// The kind of file system.
        file_system: String,
    },
    /// The folder holds something else.
    #[error("{} is not a store: {why}; choose an empty folder or a store", root.display())]
    NotAStore {
        /// The folder.
        root: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Written by a newer program; it can be read but not written.
    #[error(
        "{} has format {found} and this program writes {known}; it can only be read, upgrade to \
         write", path.display()
    )]
    NewerFormat {
        /// The store or segment.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version of this program.
        known: u32,
    },
    /// There is such a log already.
    #[error("there is a log {name} already")]
    Exists {
        /// The log.
        name: LogName,
    },
    /// There is no such log.
    #[error("there is no log {name}")]
    NotFound {
        /// The log.
        name: LogName,
    },
    /// A living process has the log.
    #[error(
        "{name} is held by process {} on {} since {} ms after 1970", holder.process.pid,
        holder.host, holder.since_ms
    )]
    Held {
        /// The log.
        name: LogName,
        /// Who has it.
        holder: Box<Holder>,
    },
    /// The lock is taken, but its holder has not said who it is.
    #[error("{name} is held by a process that left no record in its lock; find it with `lsof`")]
    HeldByUnknown {
        /// The log.
        name: LogName,
    },
    /// The holder could not be ended.
    #[error("{name} is held by process {} and it could not be ended: {source}", holder.process.pid)]
    NotKilled {
        /// The log.
        name: LogName,
        /// Who has it.
        holder: Box<Holder>,
        /// Why it still lives.
        source: io::Error,
    },
    /// What was once on disk is no longer what was written. Never the result of a mere crash.
    #[error(
        "{name} is damaged: segment {segment}, byte {offset}, entry {seq}: {why}; restore it from \
         a copy, or read it up to the entry before"
    )]
    Corrupt {
        /// The log.
        name: LogName,
        /// The segment's number.
        segment: u32,
        /// Where in the segment, in bytes.
        offset: u64,
        /// The entry that should stand there.
        seq: u64,
        /// What stands there instead, and how it is known that it should not.
        why: String,
    },
    /// Not a kind of entry.
    #[error("`{given}` is not a kind of entry; it is of a-z, 0-9, `.`, `_` and `-`, at most 64")]
    BadKind {
        /// What was given, cut.
        given: String,
    },
    /// A batch, payload, blob or message is larger than its limit.
    #[error("{what} has {bytes} bytes and at most {limit} are allowed")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// Its size.
        bytes: u64,
        /// The most there may be.
        limit: u64,
    },
    /// The writer broke: what was not durable before may be lost, and nothing more is accepted.
    #[error(
        "cannot {what} {}: {source}; {name} is intact up to entry {intact}, what came after may \
         be lost; see to the disk, then take the log again", path.display()
    )]
    Failed {
        /// The log.
        name: LogName,
        /// What was being done.
        what: &'static str,
        /// To what.
        path: PathBuf,
        /// The last entry that is known to be on disk.
        intact: u64,
        /// Why it failed.
        source: Arc<io::Error>,
    },
    /// Something could not be read or written; nothing was half done.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// There is no such entry.
    #[error("{name} has no entry {seq}; its last one is {last}")]
    NoSuchEntry {
        /// The log.
        name: LogName,
        /// The entry asked for.
        seq: u64,
        /// The last entry there is.
        last: u64,
    },
    /// The log does not have this blob (any more).
    #[error("{name} does not have the blob {id}; it was dropped, or never put")]
    BlobMissing {
        /// The log.
        name: LogName,
        /// The blob.
        id: BlobId,
    },
    /// The blob's bytes are not those that were put.
    #[error("the blob {id} of {name} is damaged; restore it from a copy of the log")]
    BlobDamaged {
        /// The log.
        name: LogName,
        /// The blob.
        id: BlobId,
    },
    /// A message's id is not a UUID.
    #[error("`{given}` cannot be the id of a message; it must be a UUID")]
    BadMessageId {
        /// What was given, cut.
        given: String,
    },
    /// Too many messages wait.
    #[error("{waiting} messages wait in the inbox of {name} already; let it read them first")]
    InboxFull {
        /// The log.
        name: LogName,
        /// How many there are.
        waiting: usize,
    },
    /// Not an exported log, or one that was damaged on the way.
    #[error("this is not a complete export of a log: {why}")]
    BadExport {
        /// What is wrong.
        why: String,
    },
}

impl Error {
    /// An error that names what was being done and to what.
    pub(crate) fn io(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Error::Io { what, path, source }
    }
}
