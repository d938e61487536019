//! Taking a snapshot: list everything, read what may have changed, store what differs.

use std::{
    collections::HashMap,
    fs::File,
    io,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use gyrus_contract::BlobId;
use rustix::fs::{FileType, Stat};

use super::{
    MAX_BYTES, MAX_DELTAS, MAX_ENTRIES, MAX_FILE_BYTES, SnapshotError,
    beneath::{self, Root},
    manifest::{Entries, Entry, Manifest, Skip, load_entries},
    name,
    rebuildable::{Decided, Rule},
};

/// A file changed so shortly before it was read may change again without its times moving, because
/// the system's clock for them ticks only every few milliseconds. Such a file is read again.
const CLOCK_STEP_NS: i128 = 20_000_000;
/// Attempts to read a file that changes meanwhile.
const READ_ATTEMPTS: u32 = 3;

/// What a snapshot came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// Nothing changed since this one.
    Same(BlobId),
    /// A new one.
    New(BlobId),
    /// The workspace is over the limits; nothing was stored under an id. Counting stopped at the
    /// limit.
    TooLarge {
        /// Files, folders and links counted.
        files: u64,
        /// Bytes counted.
        bytes: u64,
    },
}

/// Takes snapshots of one workspace and remembers the last, so that the next costs what changed.
#[derive(Debug)]
pub struct Snapshots {
    workspace: PathBuf,
    previous: Option<BlobId>,
    last: Option<Last>,
    known: HashMap<Vec<u8>, Known>,
    decided: Decided,
}

/// The last snapshot that this process took.
#[derive(Debug)]
struct Last {
    id: BlobId,
    entries: Entries,
    deltas: u32,
}

/// A file as it was when it was read.
#[derive(Debug, Clone)]
struct Known {
    stamp: Stamp,
    entry: Entry,
    /// Its times lie so far back that any later change must move them.
    settled: bool,
}

/// What cannot stay the same when a file's content changes, but for the grain of its times. The
/// time of the inode is among them because the other one can be set by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    device: u64,
    bytes: u64,
    mode: u32,
    modified_ns: i128,
    changed_ns: i128,
}

impl Stamp {
    fn of(stat: &Stat) -> Self {
        let nanoseconds =
            |seconds: i64, rest: u64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            inode: stat.st_ino,
            device: stat.st_dev,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode,
            modified_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            changed_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

/// Something listed but not read yet.
pub(super) enum Listed {
    File(Stat),
    Other(Entry),
}

/// A folder's whole content without that of its files, or how far counting got.
pub(super) enum Listing {
    Within(Vec<(Vec<u8>, Listed)>),
    TooLarge { files: u64, bytes: u64 },
}

impl Snapshots {
    /// For a workspace whose last snapshot was `previous`. The first snapshot of a process is a
    /// full one, or the same as `previous` if that was full and nothing changed.
    pub fn new(workspace: PathBuf, previous: Option<BlobId>) -> Self {
        Self {
            workspace,
            previous,
            last: None,
            known: HashMap::new(),
            decided: Decided::default(),
        }
    }

    /// Leaves out the folders that `first`, the workspace as the run found it, leaves out, and
    /// none that it holds: a run must not hide a person's folder by calling it ignored.
    ///
    /// # Errors
    /// The store's error, or a refused snapshot.
    pub fn since<E>(
        &mut self,
        first: &BlobId,
        load: impl Fn(&BlobId) -> Result<Vec<u8>, E>,
    ) -> Result<(), SnapshotError<E>> {
        self.decided = Decided::by(&load_entries(first, &load)?);
        Ok(())
    }

    /// Takes a snapshot; `put` stores a blob. If it fails, the last snapshot still counts as the
    /// last, and taking again is safe.
    ///
    /// # Errors
    /// The store's error, or the workspace cannot be opened.
    pub fn take<E>(
        &mut self,
        mut put: impl FnMut(&[u8]) -> Result<BlobId, E>,
    ) -> Result<Taken, SnapshotError<E>> {
        let failed = |source| SnapshotError::Folder {
            path: self.workspace.clone(),
            source,
        };
        let root = Root::open(&self.workspace).map_err(failed)?;
        let mut rule = Rule::new(self.workspace.clone(), self.decided.clone());
        let listed = match list(&root, &mut rule).map_err(failed)? {
            Listing::Within(listed) => listed,
            Listing::TooLarge { files, bytes } => return Ok(Taken::TooLarge { files, bytes }),
        };
        let mut entries = Entries::new();
        let mut known = HashMap::new();
        let mut bytes = 0;
        for (path, listed) in listed {
            let entry = match listed {
                Listed::Other(entry) => entry,
                Listed::File(stat) => match self.reuse(&path, &Stamp::of(&stat)) {
                    Some(file) => file.remember(&mut known, path.clone()),
                    None => match read_file(&root, &path, &mut put)? {
                        Read::Gone => continue,
                        Read::Skipped(why) => Entry::Skipped { why },
                        Read::File(file) => file.remember(&mut known, path.clone()),
                        Read::TooLarge(file_bytes) => {
                            let files = entries.len() as u64 + 1;
                            return Ok(Taken::TooLarge {
                                files,
                                bytes: bytes + file_bytes,
                            });
                        }
                    },
                },
            };
            if let Entry::File { bytes: more, .. } = &entry {
                bytes += more;
            }
            entries.insert(name::encode(&path), entry);
            if bytes > MAX_BYTES {
                return Ok(Taken::TooLarge {
                    files: entries.len() as u64,
                    bytes,
                });
            }
        }
        let taken = self.store(entries, put)?;
        self.known = known;
        Ok(taken)
    }

    fn reuse(&self, path: &[u8], stamp: &Stamp) -> Option<Known> {
        self.known
            .get(path)
            .filter(|known| known.settled && known.stamp == *stamp)
            .cloned()
    }

    fn store<E>(
        &mut self,
        entries: Entries,
        mut put: impl FnMut(&[u8]) -> Result<BlobId, E>,
    ) -> Result<Taken, SnapshotError<E>> {
        if let Some(last) = self.last.as_ref().filter(|last| last.entries == entries) {
            return Ok(Taken::Same(last.id));
        }
        let delta = self
            .last
            .as_ref()
            .filter(|last| last.deltas < MAX_DELTAS)
            .map(|last| {
                (
                    Manifest::delta(last.id, &last.entries, &entries),
                    last.deltas + 1,
                )
            })
            .filter(|(delta, _)| delta.len() < entries.len());
        let (manifest, deltas) = delta.unwrap_or_else(|| (Manifest::full(entries.clone()), 0));
        let bytes = manifest.to_bytes();
        let same = self.previous.take_if(|_| self.last.is_none());
        let taken = match same {
            Some(id) if id == BlobId::of(&bytes) => Taken::Same(id),
            _ => Taken::New(put(&bytes).map_err(SnapshotError::Store)?),
        };
        if let Taken::Same(id) | Taken::New(id) = taken {
            self.last = Some(Last {
                id,
                entries,
                deltas,
            });
        }
        Ok(taken)
    }
}

impl Known {
    fn remember(self, known: &mut HashMap<Vec<u8>, Known>, path: Vec<u8>) -> Entry {
        let entry = self.entry.clone();
        known.insert(path, self);
        entry
    }
}

/// Lists everything below a folder, but what lies in folders of build output. What vanishes
/// meanwhile is left out.
pub(super) fn list(root: &Root, rule: &mut Rule) -> io::Result<Listing> {
    let mut listed = Vec::new();
    let mut bytes = 0;
    let mut folders = vec![Vec::new()];
    while let Some(path) = folders.pop() {
        let opened = root.folder(&path).and_then(|folder| {
            let names = beneath::names(&folder)?;
            Ok((folder, names))
        });
        let (folder, names) = match opened {
            Ok(opened) => opened,
            Err(e) if path.is_empty() => return Err(e),
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(_) => {
                listed.push((
                    path,
                    Listed::Other(Entry::Skipped {
                        why: Skip::Unreadable,
                    }),
                ));
                continue;
            }
        };
        if !path.is_empty() {
            let mode = rustix::fs::fstat(&folder)
                .map(|stat| stat.st_mode & 0o777)
                .ok();
            listed.push((path.clone(), Listed::Other(Entry::Folder { mode })));
        }
        for name in names {
            let name = name?;
            let below = if path.is_empty() {
                name.clone()
            } else {
                [&path, &b"/"[..], &name].concat()
            };
            let Ok(stat) = beneath::stat(&folder, &name) else {
                continue;
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory if rule.leaves_out(&below) => {
                    let why = Skip::Rebuildable;
                    listed.push((below, Listed::Other(Entry::Skipped { why })));
                }
                FileType::Directory => folders.push(below),
                FileType::RegularFile => {
                    let size = Stamp::of(&stat).bytes;
                    bytes += size;
                    listed.push((below, Listed::File(stat)));
                    if size > MAX_FILE_BYTES {
                        bytes = bytes.max(MAX_BYTES + 1);
                    }
                }
                FileType::Symlink => {
                    let Ok(target) = rustix::fs::readlinkat(&folder, &name[..], Vec::new()) else {
                        continue;
                    };
                    let target = name::encode(target.as_bytes());
                    listed.push((below, Listed::Other(Entry::Link { target })));
                }
                _ => listed.push((below, Listed::Other(Entry::Skipped { why: Skip::Special }))),
            }
            let files = (listed.len() + folders.len()) as u64;
            if files > MAX_ENTRIES || bytes > MAX_BYTES {
                return Ok(Listing::TooLarge { files, bytes });
            }
        }
    }
    Ok(Listing::Within(listed))
}

enum Read {
    Gone,
    Skipped(Skip),
    File(Known),
    /// With the bytes that were read.
    TooLarge(u64),
}

/// Reads and stores one file as it was at one moment.
fn read_file<E>(
    root: &Root,
    path: &[u8],
    put: &mut impl FnMut(&[u8]) -> Result<BlobId, E>,
) -> Result<Read, SnapshotError<E>> {
    for _ in 0..READ_ATTEMPTS {
        let (content, stamp) = match read_once(root, path) {
            Ok(Some(read)) => read,
            Ok(None) => continue,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Read::Gone),
            Err(_) => return Ok(Read::Skipped(Skip::Unreadable)),
        };
        let bytes = content.len() as u64;
        if bytes > MAX_FILE_BYTES {
            return Ok(Read::TooLarge(bytes));
        }
        let settled = stamp.modified_ns.max(stamp.changed_ns) + CLOCK_STEP_NS < now_ns();
        let blob = put(&content).map_err(SnapshotError::Store)?;
        let executable = stamp.mode & 0o100 != 0;
        let entry = Entry::File {
            blob,
            bytes,
            executable,
            mode: Some(stamp.mode & 0o777),
        };
        return Ok(Read::File(Known {
            stamp,
            entry,
            settled,
        }));
    }
    Ok(Read::Skipped(Skip::Changing))
}

/// The content, if the file stayed the same while it was read.
fn read_once(root: &Root, path: &[u8]) -> io::Result<Option<(Vec<u8>, Stamp)>> {
    let (folder, name) = root.parent(path)?;
    let Some(file) = beneath::open_file(&folder, name)? else {
        return Ok(None);
    };
    let stamp = |file: &File| rustix::fs::fstat(file).map(|stat| Stamp::of(&stat));
    let before = stamp(&file)?;
    let content = beneath::read(&file, MAX_FILE_BYTES)?;
    let over = content.len() as u64 > MAX_FILE_BYTES;
    let still = stamp(&file)? == before && content.len() as u64 == before.bytes;
    Ok((over || still).then_some((content, before)))
}

fn now_ns() -> i128 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)
}
