//! Named logs that survive crashes, each with blobs, an inbox and a lock.
//!
//! The one idea: a log is a folder of append-only segments whose lines are chained by hash, and
//! every writer that takes the log opens a new segment that states how much of the one before
//! counts. So no acknowledged entry is ever rewritten, a reader needs no lock, and a tail that a
//! crash tore is distinguished from damage by the entries that later lines prove to have been on
//! disk.
//!
//! This crate knows nothing of agents: an entry's kind is a word and its payload is JSON. It does
//! not redact, and it does not interpret. The format is in `docs/journal-format.md`.
//!
//! Start reading at [`Store`], then `line` (an entry), `scan` (what counts), `writer`.

mod name;
mod error;
mod identity;
mod home;
mod birth;
mod store;
mod disk;
mod entry;
mod line;
mod lines;
mod segment;
mod seal;
mod scan;
mod seek;
mod lock;
mod take;
mod replica;
mod writer;
mod create;
mod flush;
mod failure;
mod flushers;
mod reader;
mod follow;
mod blobs;
mod inbox;
mod erase;
mod remove;
mod export;
mod mirror;
pub mod os;

pub use birth::Birth;
pub use create::NewLog;
pub use disk::{Disk, DiskFile, FileMetadata, Holder, LockMode, TimeReading};
pub use entry::{LogEntry, Payload};
pub use error::Error;
pub use export::ExportContents;
pub use follow::Follower;
pub use inbox::Inbox;
pub use lock::LockWait;
pub use mirror::Mirror;
pub use name::{BadLogName, LogName};
pub use os::watch::FolderWatch;
pub use reader::{Backwards, EntryIterator, LogReader};
pub use replica::{Replica, ReplicaBatch, ReplicaDone, Replicas};
pub use scan::SegmentTail;
pub use store::{ChainVerification, Store};
pub use take::Recovery;
pub use writer::{NewEntry, Writer};
