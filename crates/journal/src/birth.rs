//! The birth of a log: in this store, or elsewhere.
//!
//! A store has an identity, a secret key in the file `identity`, which counts only where it was made:
//! it names its own inode, the time at which the file was created, and the machine. A copy of the
//! file has another inode, so a copied store has no identity until a person adopts it. Every log that
//! the store creates gets a file `born` with a hash under that key, bound to its inode in the same
//! way. Neither file is in an export. So a log that was imported, or whose folder was copied by hand,
//! has no mark that counts, whatever stands in it; it can be read, and nobody appends to it.
//!
//! Logs from before stores had identities have no mark. They were born here if their first segment
//! was created in the moment that its first entry names, which no copy can pretend.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    Disk, Error, LogName, blobs,
    identity::{FilePlace, OwnIdentity, StoreIdentity},
    replica,
    scan::Scan,
    segment::{LogFiles, write_all},
};

/// The file of a store's identity.
const IDENTITY: &str = "identity";

/// The file in a log's folder that records where the log was born.
const MARK: &str = "born";

/// The file that names this machine.
const MACHINE: &str = "/etc/machine-id";

/// Longest time between the creation of a log's first segment and its first entry, in nanoseconds. A
/// file system's clock may be a little behind the one that entries are stamped with.
const MOMENT_NS: std::ops::RangeInclusive<i64> = -50_000_000..=250_000_000;

/// Number of logs of each kind that are examined to find out whether a store without an identity
/// was written here.
const LOOKED_AT: usize = 64;

/// The place where a log was born.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Birth {
    /// In this store.
    Here,
    /// The place is unknown: the log is older than the store's identity, and bears no sign of where
    /// it began.
    Unproven,
    /// The log was born elsewhere, or the store was copied and no person has adopted it.
    Elsewhere,
}

#[derive(Serialize, Deserialize)]
struct IdentityFile {
    identity: u32,
    key: [u8; 32],
    since_ns: i64,
    place: FilePlace,
    /// Hash of the machine's id, if the machine has one.
    machine: Option<String>,
}

/// The file that marks a log as born in a store.
#[derive(Serialize, Deserialize)]
struct MarkFile {
    born: u32,
    place: FilePlace,
    /// Keyed hash of the log's name and the place; empty if it was born elsewhere.
    hash: String,
}

impl StoreIdentity {
    /// Reads a store's identity, and creates one if the store has none and was not copied here.
    pub(crate) fn open(disk: &Arc<dyn Disk>, root: &Path) -> Result<Self, Error> {
        let path = root.join(IDENTITY);
        let look = || {
            let found = read::<IdentityFile>(disk.as_ref(), &path);
            Ok::<_, Error>(match found.map_err(Error::io("read", &path))? {
                BirthFile::File(file, place)
                    if file.place == place && file.machine == machine() =>
                {
                    BirthFile::File(file, place)
                }
                BirthFile::File(..) | BirthFile::Damaged => BirthFile::Damaged,
                BirthFile::Nothing => BirthFile::Nothing,
            })
        };
        let is_new = match look()? {
            BirthFile::File(file, _) => return Ok(Self::Own(file.into())),
            // In a copy without logs there is nothing that could act.
            BirthFile::Damaged => {
                newest_logs(disk, root).is_empty() && disk.remove_file(&path).is_ok()
            }
            BirthFile::Nothing => {
                let logs = newest_logs(disk, root);
                logs.is_empty() || logs.iter().any(may_have_begun_here)
            }
        };
        if is_new {
            // In a store that can only be read, nothing is begun that the identity would protect.
            let _ = make(disk.as_ref(), root, random_key()?);
        }
        Ok(match look()? {
            BirthFile::File(file, _) => Self::Own(file.into()),
            BirthFile::Damaged | BirthFile::Nothing => Self::Copied,
        })
    }

    /// Creates an identity of this place for a store that was copied here, with its key.
    pub(crate) fn adopt(disk: &dyn Disk, root: &Path) -> Result<(), Error> {
        let path = root.join(IDENTITY);
        let key = match read::<IdentityFile>(disk, &path).map_err(Error::io("read", &path))? {
            BirthFile::File(file, _) => file.key,
            BirthFile::Nothing | BirthFile::Damaged => random_key()?,
        };
        // The key is never lost between two files.
        let write = || {
            let made = write_identity(disk, root, key)?;
            disk.rename(&made, &path)?;
            disk.sync_folder(root)
        };
        write().map_err(Error::io("write", &path))
    }

    /// Marks a staged log as born here.
    pub(crate) fn mark(&self, files: &LogFiles) -> Result<(), Error> {
        match self {
            Self::Simulated | Self::Copied => Ok(()),
            Self::Own(own) => write_mark(files, |place| own.hash(&files.name, place)),
        }
    }

    pub(crate) fn birth(&self, files: &Arc<LogFiles>) -> Birth {
        let own = match self {
            Self::Simulated => return Birth::Here,
            Self::Own(own) => own,
            Self::Copied => return Birth::Elsewhere,
        };
        let mark = read::<MarkFile>(files.disk.as_ref(), &files.folder.join(MARK));
        let came_later = came_after(own, files);
        match mark {
            Ok(BirthFile::File(mark, place)) if mark.hash == own.hash(&files.name, mark.place) => {
                // What was in a store that a person adopted moved with it.
                let moved = place.created_ns.is_some_and(|ns| ns <= own.since_ns);
                if mark.place == place || moved {
                    return Birth::Here;
                }
            }
            Ok(BirthFile::Nothing) if !came_later && began_in_place(files) => return Birth::Here,
            Ok(_) | Err(_) => {}
        }
        if came_later {
            Birth::Elsewhere
        } else {
            Birth::Unproven
        }
    }
}

impl From<IdentityFile> for OwnIdentity {
    fn from(file: IdentityFile) -> Self {
        Self {
            key: file.key,
            since_ns: file.since_ns,
        }
    }
}

/// Whether a log came into the store after the identity did; `false` where nobody can tell.
fn came_after(own: &OwnIdentity, files: &LogFiles) -> bool {
    let first = files.disk.metadata(&files.segment_path(1));
    let created = first.ok().and_then(|first| first.created_ns);
    created.is_some_and(|created| created > own.since_ns)
}

/// Marks a staged log as born elsewhere, whenever its files are created here.
pub(crate) fn mark_as_foreign(files: &LogFiles) -> Result<(), Error> {
    write_mark(files, |_| String::new())
}

fn write_mark(files: &LogFiles, hash: impl FnOnce(FilePlace) -> String) -> Result<(), Error> {
    let path = files.folder.join(MARK);
    let write = || -> io::Result<()> {
        let file = files.disk.create_new(&path)?;
        let place = file.metadata()?.into();
        let mark = MarkFile {
            born: 1,
            place,
            hash: hash(place),
        };
        write_all(file.as_ref(), &serde_json::to_vec(&mark)?)?;
        file.sync()
    };
    write().map_err(Error::io("write", &path))
}

/// Creates a new identity, unless there is one.
fn make(disk: &dyn Disk, root: &Path, key: [u8; 32]) -> io::Result<()> {
    let made = write_identity(disk, root, key)?;
    let linked = match disk.hard_link(&made, &root.join(IDENTITY)) {
        // Another process was first.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    };
    disk.remove_file(&made)?;
    linked.and_then(|()| disk.sync_folder(root))
}

/// Writes an identity to a temporary file and returns the file's path. The identity's place is that
/// of the file.
fn write_identity(disk: &dyn Disk, root: &Path, key: [u8; 32]) -> io::Result<PathBuf> {
    let path = root.join(format!(".tmp-{}", gyrus_contract::time_ordered_uuid()));
    let file = disk.create_new(&path)?;
    let place = FilePlace::from(file.metadata()?);
    let now_ns = disk.now().unix_ms.saturating_mul(1_000_000);
    let identity = IdentityFile {
        identity: 1,
        key,
        // What is compared with it are times of the file system's clock.
        since_ns: place.created_ns.unwrap_or(now_ns),
        place,
        machine: machine(),
    };
    write_all(file.as_ref(), &serde_json::to_vec(&identity)?)?;
    file.sync()?;
    Ok(path)
}

fn random_key() -> Result<[u8; 32], Error> {
    let mut key = [0; 32];
    getrandom::fill(&mut key)
        .map_err(io::Error::other)
        .map_err(Error::io("make a key for", IDENTITY))?;
    Ok(key)
}

/// Returns a hash of this machine's id, if it has one.
fn machine() -> Option<String> {
    let id = fs::read_to_string(MACHINE).ok()?;
    let id = id.trim();
    let hash = blake3::derive_key("gyrus 2026-11 identity of a machine", id.as_bytes());
    (!id.is_empty()).then(|| blake3::Hash::from(hash).to_string())
}

enum BirthFile<T> {
    Nothing,
    Damaged,
    File(T, FilePlace),
}

fn read<T: serde::de::DeserializeOwned>(disk: &dyn Disk, path: &Path) -> io::Result<BirthFile<T>> {
    let file = match disk.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BirthFile::Nothing),
        file => file?,
    };
    let text = blobs::read_whole(file.as_ref())?.unwrap_or_default();
    let place = file.metadata()?.into();
    Ok(serde_json::from_slice(&text)
        .map_or(BirthFile::Damaged, |found| BirthFile::File(found, place)))
}

/// Returns the newest logs of each kind.
fn newest_logs(disk: &Arc<dyn Disk>, root: &Path) -> Vec<Arc<LogFiles>> {
    let mut logs = Vec::new();
    for kind in disk.list(root).unwrap_or_default() {
        // The rest of the store's own folders.
        if kind.starts_with('.') || kind == "blobs" {
            continue;
        }
        let mut ids = disk.list(&root.join(&kind)).unwrap_or_default();
        ids.sort_unstable();
        logs.extend(ids.iter().rev().take(LOOKED_AT).filter_map(|id| {
            let name = LogName::new(&kind, id).ok()?;
            let folder = root.join(&kind).join(id);
            let files = LogFiles::new(Arc::clone(disk), name, folder);
            files.has_segment(1).ok()?.then(|| Arc::new(files))
        }));
    }
    logs
}

/// Whether a log without a mark may have begun in this store, as far as the file system shows.
fn may_have_begun_here(files: &Arc<LogFiles>) -> bool {
    let first = files.disk.metadata(&files.segment_path(1));
    first.is_ok_and(|first| first.created_ns.is_none()) || began_in_place(files)
}

/// Whether the first segment of a log was created with its first entry, or the log counts only with
/// a replica, which decides about its content.
fn began_in_place(files: &Arc<LogFiles>) -> bool {
    let Ok(Some(created_ns)) = files
        .disk
        .metadata(&files.segment_path(1))
        .map(|first| first.created_ns)
    else {
        return replica::is_needed(files);
    };
    let first = Scan::open(files, 1).and_then(|mut scan| scan.next(&mut |line| line.header.at_ms));
    let in_time = |at_ms: i64| {
        MOMENT_NS.contains(&created_ns.saturating_sub(at_ms.saturating_mul(1_000_000)))
    };
    matches!(first, Ok(Some(at_ms)) if in_time(at_ms)) || replica::is_needed(files)
}
