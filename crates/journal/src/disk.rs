//! The small set of operations that all disk access goes through, so that a test can make any of
//! them fail and a simulation can lose what a power cut loses.
//!
//! The clock and the lock's holder are part of it: a simulated crash must be the same at every
//! replay of its seed, down to the byte. The purposes of the operations are documented elsewhere.

use std::{fmt, io, path::Path};

use gyrus_process::ProcessIdentity;
use serde::{Deserialize, Serialize};

use crate::FolderWatch;

/// A disk and its machine.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Creates a file that must not exist, for appending.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file for reading.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file for reading and writing at its end, creating it if it is absent.
    fn open_lock(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Puts contents and lengths of files on disk, as [`DiskFile::sync`] does. After an error it is
    /// unknown which of them are on disk.
    fn sync_files(&self, files: &[&dyn DiskFile]) -> io::Result<()> {
        files.iter().try_for_each(|file| file.sync())
    }
    /// Creates one folder that only this user can access.
    fn create_folder(&self, path: &Path) -> io::Result<()>;
    /// Syncs the names in a folder to disk (not the contents of the files).
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
    /// Returns the names in a folder, in no order.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;
    /// Returns the metadata of a file or folder.
    fn metadata(&self, path: &Path) -> io::Result<FileMetadata>;
    /// Renames atomically. A file replaces a file; a folder does not replace one that has
    /// anything in it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Adds a hard link with an unused name to a file.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file's name.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;
    /// Watches a folder for changes to the names in it and to the contents of its files.
    fn watch(&self, folder: &Path) -> io::Result<FolderWatch>;
    /// Returns the present time.
    fn now(&self) -> TimeReading;
    /// Returns the record that this process writes into a lock when taking it.
    fn holder(&self) -> io::Result<Holder>;
    /// Whether a process on this machine is still alive. `false` for processes of other machines.
    fn lives(&self, holder: &Holder) -> bool;
}

/// An open file.
pub trait DiskFile: Send + Sync + fmt::Debug {
    /// Writes at the end; may write less than it was given.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Reads at an offset; 0 bytes mean the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Syncs the file's content and length to disk.
    fn sync(&self) -> io::Result<()>;
    /// Returns the metadata of the open file, even if it was renamed or removed.
    fn metadata(&self) -> io::Result<FileMetadata>;
    /// Empties the file.
    fn clear(&self) -> io::Result<()>;
    /// Tries to lock the file until it is closed; returns `false` if another handle has a
    /// conflicting lock.
    fn try_lock(&self, mode: LockMode) -> io::Result<bool>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// Other handles may share the lock.
    Shared,
    /// No other handle may have the lock.
    Exclusive,
}

/// The metadata of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMetadata {
    /// The inode number: two names with the same number are one file.
    pub inode: u64,
    /// The length of a file in bytes.
    pub len: u64,
    /// Number of names of a file.
    pub links: u64,
    pub is_folder: bool,
    /// The time of creation, in nanoseconds since 1970, if the file system stores it. Copies have
    /// another one, and it cannot be set.
    pub created_ns: Option<i64>,
}

/// The time by the wall clock and by the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeReading {
    /// Milliseconds since 1970, UTC. May jump.
    pub unix_ms: i64,
    /// Microseconds since some moment; never goes back.
    pub mono_us: u64,
}

/// A process that holds or held a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub process: ProcessIdentity,
    /// The time of taking the log, in milliseconds since 1970, UTC.
    pub since_ms: i64,
    /// The name of the machine.
    pub host: String,
}
