//! The small set of operations that everything here goes through, so that a test can fail any of
//! them and a simulation can lose what a power cut loses.
//!
//! Clock and holder are part of it: a simulated crash must be the same at every replay of its
//! seed, down to the byte. Not here: what the operations are for.

use std::{fmt, io, path::Path};

use crate::{Holder, Watch};

/// A disk, and the machine it is in.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Creates a file that must not exist, to be written at its end.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file for reading.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file for reading and writing at its end, creating it if it is absent.
    fn open_lock(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Puts contents and lengths of files on disk, as [`DiskFile::sync`] does; which of them are
    /// if it fails is not known.
    fn sync_files(&self, files: &[&dyn DiskFile]) -> io::Result<()> {
        files.iter().try_for_each(|file| file.sync())
    }
    /// Creates one folder, for the user alone.
    fn create_folder(&self, path: &Path) -> io::Result<()>;
    /// Puts the names in a folder on disk (not the contents of what they name).
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
    /// The names in a folder, in no order.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;
    /// What is known of a file or folder.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;
    /// Renames atomically. A file replaces a file; a folder does not replace one that has
    /// anything in it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name, which must not exist.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file's name.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;
    /// Watches a folder for changes to the names in it and to the contents of its files.
    fn watch(&self, folder: &Path) -> io::Result<Watch>;
    /// The time.
    fn now(&self) -> Now;
    /// What this process writes into a lock that it takes now.
    fn holder(&self) -> io::Result<Holder>;
    /// Whether a process on this machine still lives. `false` for those of other machines.
    fn lives(&self, holder: &Holder) -> bool;
}

/// An open file.
pub trait DiskFile: Send + Sync + fmt::Debug {
    /// Writes at the end; may write less than it was given.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Reads at an offset; 0 bytes are the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Puts contents and length on disk.
    fn sync(&self) -> io::Result<()>;
    /// What is known of the open file, whatever its name is now.
    fn metadata(&self) -> io::Result<Metadata>;
    /// Empties the file.
    fn clear(&self) -> io::Result<()>;
    /// Tries to lock the file until it is closed; `false` if another has it.
    fn try_lock(&self, mode: LockMode) -> io::Result<bool>;
}

/// Who else may have a lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// Others who share it.
    Shared,
    /// Nobody.
    Exclusive,
}

/// What is known of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// The file behind the name: two names with the same number are one file.
    pub inode: u64,
    /// Length in bytes; of a file.
    pub len: u64,
    /// How many names a file has.
    pub links: u64,
    /// It is a folder.
    pub is_folder: bool,
}

/// The time by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since 1970, UTC. May jump.
    pub unix_ms: i64,
    /// Microseconds since some moment; never goes back.
    pub mono_us: u64,
}
