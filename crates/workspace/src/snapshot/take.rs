//! Takes a snapshot: lists everything, reads files that may have changed, stores the differences.

use std::{
    collections::HashSet,
    fs::File,
    io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use gyrus_contract::{BlobId, ChangedPath, Digest, PathChange};
use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, FileType, Mode, Stat},
};

use super::{
    MAX_BYTES, MAX_DELTAS, MAX_ENTRIES, MAX_FILE_BYTES, SnapshotError,
    manifest::{
        Manifest, Skip, SnapshotContents, SnapshotEntries, SnapshotEntry, drop_unused,
        load_contents,
    },
    name,
    pack::Packer,
    rebuildable::{FolderDecisions, RebuildableRule},
};
use crate::{
    contents::ContentStore,
    root::{self, RootFolder},
};

/// Age of a file at its reading below which it may change again without its times moving, because
/// the system's clock for them ticks only every few milliseconds. Such a file is read again.
const CLOCK_STEP_NS: i64 = 20_000_000;
/// Maximum number of files, folders and links in one listing of everything.
const MAX_LISTED: u64 = 4_000_000;
/// Maximum number of attempts to read a file that changes meanwhile.
const READ_ATTEMPTS: u32 = 3;

/// Number of bytes read before they are judged and stored, so that several threads can judge.
const READ_AT_ONCE: usize = 1 << 20;
/// Number of files read before they are judged, like [`READ_AT_ONCE`].
const READ_FILES_AT_ONCE: usize = 1_000;

/// Result of taking a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotResult {
    /// Nothing changed since this snapshot.
    Same(BlobId),
    /// The id of the new snapshot.
    New(BlobId),
    /// The workspace is over the limits; no snapshot was stored. Counting stopped at the limit.
    TooLarge {
        /// Number of files, folders and links counted.
        files: u64,
        /// Number of bytes counted.
        bytes: u64,
    },
}

/// Takes snapshots of one workspace and remembers the last, to read only changes for the next.
#[derive(Debug)]
pub struct Snapshots {
    workspace: PathBuf,
    previous: Option<BlobId>,
    last: Option<LastSnapshot>,
    /// Files of the last snapshot that need not be read again while their stamps are the same: path
    /// and stamp in one, because there may be many. Their times were so old when they were read
    /// that any later change must move them.
    settled: HashSet<Digest>,
    decided: FolderDecisions,
    files_read: usize,
}

#[derive(Debug)]
struct LastSnapshot {
    contents: SnapshotContents,
    deltas: u32,
}

/// Metadata that changes with a file's content, except within the resolution of its times. It
/// includes the time of the inode, because the other one can be set by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContentStamp {
    inode: u64,
    device: u64,
    pub(super) bytes: u64,
    pub(super) mode: u32,
    modified_ns: i64,
    changed_ns: i64,
}

impl ContentStamp {
    fn of(stat: &Stat) -> Self {
        // Where it overflows, in 2262, files are read more often.
        let nanoseconds = |seconds: i64, rest: u64| {
            let rest = i64::try_from(rest).unwrap_or(0);
            seconds.saturating_mul(1_000_000_000).saturating_add(rest)
        };
        Self {
            inode: stat.st_ino,
            device: stat.st_dev,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode,
            modified_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            changed_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    fn of_path(&self, path: &[u8]) -> Digest {
        let mut bytes = Vec::with_capacity(path.len() + 48);
        for number in [self.inode, self.device, self.bytes, self.mode.into()] {
            bytes.extend(number.to_le_bytes());
        }
        for time in [self.modified_ns, self.changed_ns] {
            bytes.extend(time.to_le_bytes());
        }
        bytes.extend(path);
        Digest::of(&bytes)
    }

    fn is_settled(&self) -> bool {
        let last = self.modified_ns.max(self.changed_ns);
        last.saturating_add(CLOCK_STEP_NS) < now_ns()
    }
}

/// A listed entry that is not read yet.
pub(super) enum UnreadEntry {
    File(ContentStamp),
    Other(SnapshotEntry),
}

/// All entries of a folder without the contents of files, or the counts at which a limit was
/// reached.
pub(super) enum FolderListing {
    Within(Vec<(Vec<u8>, UnreadEntry)>),
    TooLarge { files: u64, bytes: u64 },
}

impl Snapshots {
    /// Creates the snapshots of a workspace, with `previous` as the last one. The first snapshot of
    /// a process is a full one, or the same as `previous` if that was full and nothing changed.
    pub fn new(workspace: PathBuf, previous: Option<BlobId>) -> Self {
        Self {
            workspace,
            previous,
            last: None,
            settled: HashSet::new(),
            decided: FolderDecisions::default(),
            files_read: 0,
        }
    }

    /// Leaves out the folders that `first`, the snapshot of the workspace as the run found it,
    /// leaves out, and none that it contains: a run must not hide a person's folder by ignoring it.
    ///
    /// # Errors
    /// The store's error, or a refused snapshot.
    pub fn since<E>(
        &mut self,
        first: &BlobId,
        load: impl Fn(&BlobId) -> Result<Vec<u8>, E>,
    ) -> Result<(), SnapshotError<E>> {
        self.decided = FolderDecisions::by(&load_contents(first, &load)?.entries);
        Ok(())
    }

    /// Takes a snapshot. If that fails, the previous one remains the last, and the attempt can be
    /// repeated.
    ///
    /// # Errors
    /// The store's error, or the workspace cannot be opened.
    pub fn take<S: ContentStore>(
        &mut self,
        store: &mut S,
    ) -> Result<SnapshotResult, SnapshotError<S::Error>> {
        let failed = |source| SnapshotError::Folder {
            path: self.workspace.clone(),
            source,
        };
        let root = RootFolder::open(&self.workspace).map_err(|error| failed(error.into()))?;
        let mut rule = RebuildableRule::new(self.workspace.clone(), self.decided.clone());
        let mut listed = match list(&root, &mut rule, Scope::Snapshot).map_err(failed)? {
            FolderListing::Within(listed) => listed,
            FolderListing::TooLarge { files, bytes } => {
                return Ok(SnapshotResult::TooLarge { files, bytes });
            }
        };
        // Packs are the same wherever files come in the same order.
        listed.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let last = self.last.as_ref().map(|last| &last.contents);
        let packs = last.map_or_else(Vec::new, |last| last.packs.clone());
        let packer = Packer::new(store, packs, last.map(|last| &last.entries));
        let mut taking = SnapshotInProgress::new(self, root, packer);
        for (path, listed) in listed {
            taking.add(&path, listed).map_err(SnapshotError::Store)?;
            if taking.bytes > MAX_BYTES {
                let (files, bytes) = (taking.entries.len() as u64, taking.bytes);
                return Ok(SnapshotResult::TooLarge { files, bytes });
            }
        }
        taking.store_read().map_err(SnapshotError::Store)?;
        let SnapshotInProgress {
            packer,
            entries,
            settled,
            files,
            ..
        } = taking;
        let (packs, store) = packer.finish().map_err(SnapshotError::Store)?;
        let taken = self.store(packs, entries.into_iter().collect(), store)?;
        self.settled = settled;
        self.files_read = files.read;
        Ok(taken)
    }

    /// Continues from a snapshot that an earlier process took: [`Self::changed_paths`] compares
    /// with it. All files are read again.
    ///
    /// # Errors
    /// The store's error, or a refused snapshot.
    pub fn go_on_from<E>(
        &mut self,
        id: &BlobId,
        load: impl Fn(&BlobId) -> Result<Vec<u8>, E>,
    ) -> Result<(), SnapshotError<E>> {
        let contents = load_contents(id, &load)?;
        self.settled.clear();
        self.last = Some(LastSnapshot {
            contents,
            deltas: MAX_DELTAS,
        });
        Ok(())
    }

    /// Returns the paths that may differ from the last snapshot, sorted; `None` if there is no
    /// snapshot. Files are compared by their times and sizes, not read. The folder may be of any
    /// size.
    ///
    /// # Errors
    /// When the folder cannot be read, or has more than four million entries.
    pub fn changed_paths(&self) -> io::Result<Option<Vec<ChangedPath>>> {
        let Some(last) = &self.last else {
            return Ok(None);
        };
        let root = RootFolder::open(&self.workspace)?;
        let mut rule = RebuildableRule::new(self.workspace.clone(), self.decided.clone());
        let FolderListing::Within(listed) = list(&root, &mut rule, Scope::Everything)? else {
            return Err(io::Error::other("there are too many files to look at"));
        };
        let before = &last.contents.entries;
        let mut seen = HashSet::with_capacity(listed.len());
        let mut changed = Vec::new();
        for (path, listed) in listed {
            let encoded = name::encode(&path);
            let same = match (&listed, before.get(&encoded)) {
                (UnreadEntry::File(stamp), Some(_)) => self.settled.contains(&stamp.of_path(&path)),
                (UnreadEntry::Other(entry), Some(before)) => entry == before,
                (_, None) => false,
            };
            let known = before.contains_key(&encoded);
            let is_special = SnapshotEntry::Skipped { why: Skip::Special };
            let special = matches!(&listed, UnreadEntry::Other(entry) if *entry == is_special);
            seen.insert(encoded);
            if !same {
                changed.push(ChangedPath {
                    path: name::path(&path).to_owned(),
                    change: match (special, known) {
                        (true, _) => PathChange::Special,
                        (false, true) => PathChange::Changed,
                        (false, false) => PathChange::Created,
                    },
                });
            }
        }
        let gone = before.keys().filter(|path| !seen.contains(*path));
        changed.extend(gone.filter_map(|path| {
            let decoded = name::decode(path)?;
            Some(ChangedPath {
                path: name::path(&decoded).to_owned(),
                change: PathChange::Deleted,
            })
        }));
        changed.sort_by(|one, two| one.path.cmp(&two.path));
        Ok(Some(changed))
    }

    pub(crate) fn last_contents(&self) -> Option<&SnapshotContents> {
        self.last.as_ref().map(|last| &last.contents)
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Returns the number of files that the last snapshot had to read.
    pub fn files_read(&self) -> usize {
        self.files_read
    }

    fn reuse(&self, path: &str, file: &Digest) -> Option<SnapshotEntry> {
        let last = self.last.as_ref()?;
        let entry = self.settled.contains(file).then_some(path);
        entry.and_then(|path| last.contents.entries.get(path).cloned())
    }

    fn store<S: ContentStore>(
        &mut self,
        mut packs: Vec<BlobId>,
        mut entries: SnapshotEntries,
        store: &mut S,
    ) -> Result<SnapshotResult, SnapshotError<S::Error>> {
        let same = |last: &&LastSnapshot| last.contents.entries == entries;
        if let Some(last) = self.last.as_ref().filter(same) {
            return Ok(SnapshotResult::Same(last.contents.id));
        }
        let delta = self
            .last
            .as_ref()
            .filter(|last| last.deltas < MAX_DELTAS)
            .map(|last| {
                let delta = Manifest::delta(&last.contents, &packs, &entries);
                (delta, last.deltas + 1)
            })
            .filter(|(delta, _)| delta.len() < entries.len())
            .map(|(delta, deltas)| (delta.to_bytes(), deltas));
        let (bytes, deltas) = delta.unwrap_or_else(|| {
            drop_unused(&mut packs, &mut entries);
            (Manifest::full(&packs, &entries).to_bytes(), 0)
        });
        let same = self.previous.take_if(|_| self.last.is_none());
        let taken = match same {
            Some(id) if id == BlobId::of(&bytes) => SnapshotResult::Same(id),
            _ => SnapshotResult::New(store.put(&bytes).map_err(SnapshotError::Store)?),
        };
        if let SnapshotResult::Same(id) | SnapshotResult::New(id) = taken {
            let contents = SnapshotContents { id, entries, packs };
            self.last = Some(LastSnapshot { contents, deltas });
        }
        Ok(taken)
    }
}

struct SnapshotInProgress<'a, 's, S> {
    before: &'a Snapshots,
    files: FileReader,
    packer: Packer<'s, S>,
    /// Entries as a list, because a map that grows one by one would need nearly twice the memory.
    entries: Vec<(String, SnapshotEntry)>,
    settled: HashSet<Digest>,
    bytes: u64,
    /// Files that were read but not stored yet.
    unstored: Vec<ReadFile>,
    /// Total size of these files in bytes.
    unstored_bytes: usize,
}

struct ReadFile {
    path: Vec<u8>,
    content: Vec<u8>,
    stamp: ContentStamp,
}

impl<'a, 's, S: ContentStore> SnapshotInProgress<'a, 's, S> {
    fn new(before: &'a Snapshots, root: RootFolder<'static>, packer: Packer<'s, S>) -> Self {
        Self {
            before,
            files: FileReader {
                root,
                folder: None,
                read: 0,
            },
            packer,
            entries: Vec::new(),
            settled: HashSet::new(),
            bytes: 0,
            unstored: Vec::new(),
            unstored_bytes: 0,
        }
    }

    fn add(&mut self, path: &[u8], listed: UnreadEntry) -> Result<(), S::Error> {
        let encoded = name::encode(path);
        let stamp = match listed {
            UnreadEntry::Other(entry) => {
                self.entries.push((encoded, entry));
                return Ok(());
            }
            UnreadEntry::File(stamp) => stamp,
        };
        let known = stamp.of_path(path);
        if let Some(entry) = self.before.reuse(&encoded, &known) {
            self.settled.insert(known);
            if let SnapshotEntry::File { bytes, .. } = &entry {
                self.bytes += bytes;
            }
            self.entries.push((encoded, entry));
            return Ok(());
        }
        self.read_file(path, encoded)
    }

    /// Reads a file, if it still exists. Stores the contents read so far when there are enough.
    fn read_file(&mut self, path: &[u8], encoded: String) -> Result<(), S::Error> {
        let (content, stamp) = match self.files.read(path) {
            FileRead::Gone => return Ok(()),
            FileRead::Skipped(why) => {
                self.entries.push((encoded, SnapshotEntry::Skipped { why }));
                return Ok(());
            }
            FileRead::File(content, stamp) => (content, stamp),
        };
        let bytes = content.len() as u64;
        if bytes > MAX_FILE_BYTES {
            // The file has grown since it was listed.
            self.bytes += bytes.max(MAX_BYTES + 1);
            let why = Skip::Changing;
            self.entries.push((encoded, SnapshotEntry::Skipped { why }));
            return Ok(());
        }
        self.bytes += bytes;
        if stamp.is_settled() {
            self.settled.insert(stamp.of_path(path));
        }
        self.unstored_bytes += content.len();
        self.unstored.push(ReadFile {
            path: path.to_vec(),
            content,
            stamp,
        });
        let enough =
            self.unstored_bytes >= READ_AT_ONCE || self.unstored.len() >= READ_FILES_AT_ONCE;
        if enough { self.store_read() } else { Ok(()) }
    }

    fn store_read(&mut self) -> Result<(), S::Error> {
        self.unstored_bytes = 0;
        let read = std::mem::take(&mut self.unstored);
        let contents: Vec<_> = read
            .iter()
            .map(|file| (name::path(&file.path), &*file.content))
            .collect();
        let stored = self.packer.add(&contents)?;
        for (file, (blob, kept)) in read.iter().zip(stored) {
            let entry = SnapshotEntry::File {
                blob,
                bytes: file.content.len() as u64,
                place: kept.place,
                apart: kept.apart,
                executable: file.stamp.mode & 0o100 != 0,
                mode: Some(file.stamp.mode & 0o777),
            };
            self.entries.push((name::encode(&file.path), entry));
        }
        Ok(())
    }
}

/// Extent of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The entries that fit into a snapshot.
    Snapshot,
    /// All entries, up to [`MAX_LISTED`]. A folder of the user's without permissions is opened,
    /// because its mode may have been set to hide files.
    Everything,
}

/// Lists everything below a folder, except the contents of folders of build output. Entries that
/// vanish meanwhile are left out.
pub(super) fn list(
    root: &RootFolder<'_>,
    rule: &mut RebuildableRule,
    scope: Scope,
) -> io::Result<FolderListing> {
    let skipped = |why| UnreadEntry::Other(SnapshotEntry::Skipped { why });
    let mut listed = Vec::new();
    let mut bytes = 0;
    let mut folders = vec![Vec::new()];
    while let Some(path) = folders.pop() {
        let (folder, names) = match open_folder(root, &path, scope) {
            Ok(opened) => opened,
            Err(e) if path.is_empty() => return Err(e),
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(_) => {
                listed.push((path, skipped(Skip::Unreadable)));
                continue;
            }
        };
        if !path.is_empty() {
            let mode = rustix::fs::fstat(&folder).map(|stat| stat.st_mode & 0o777);
            let entry = SnapshotEntry::Folder { mode: mode.ok() };
            listed.push((path.clone(), UnreadEntry::Other(entry)));
        }
        for name in names {
            let below = if path.is_empty() {
                name.clone()
            } else {
                [&path, &b"/"[..], &name].concat()
            };
            let Ok(stat) = root::stat(&folder, &name) else {
                continue;
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory if rule.leaves_out(&below) => {
                    listed.push((below, skipped(Skip::Rebuildable)));
                }
                FileType::Directory => folders.push(below),
                FileType::RegularFile => {
                    let stamp = ContentStamp::of(&stat);
                    bytes += stamp.bytes;
                    if stamp.bytes > MAX_FILE_BYTES {
                        bytes = bytes.max(MAX_BYTES + 1);
                    }
                    listed.push((below, UnreadEntry::File(stamp)));
                }
                FileType::Symlink => {
                    let Ok(target) = rustix::fs::readlinkat(&folder, &name[..], Vec::new()) else {
                        continue;
                    };
                    let target = name::encode(target.as_bytes());
                    listed.push((below, UnreadEntry::Other(SnapshotEntry::Link { target })));
                }
                _ => listed.push((below, skipped(Skip::Special))),
            }
            let files = (listed.len() + folders.len()) as u64;
            let too_large = match scope {
                Scope::Snapshot => files > MAX_ENTRIES || bytes > MAX_BYTES,
                Scope::Everything => files > MAX_LISTED,
            };
            if too_large {
                return Ok(FolderListing::TooLarge { files, bytes });
            }
        }
    }
    Ok(FolderListing::Within(listed))
}

fn open_folder(
    root: &RootFolder<'_>,
    path: &[u8],
    scope: Scope,
) -> io::Result<(OwnedFd, Vec<Vec<u8>>)> {
    let open = || {
        let folder = root.folder(name::path(path))?;
        let names = root::names(&folder)?.collect::<Result<_, _>>()?;
        io::Result::Ok((folder, names))
    };
    match open() {
        Err(error)
            if scope == Scope::Everything
                && error.kind() == io::ErrorKind::PermissionDenied
                && make_readable(root, path).is_ok() =>
        {
            open()
        }
        opened => opened,
    }
}

/// Gives the owner of a folder permission to list it.
fn make_readable(root: &RootFolder<'_>, path: &[u8]) -> io::Result<()> {
    let (folder, name) = root.parent(name::path(path))?;
    let mode = root::stat(&folder, name)?.st_mode & 0o7777;
    let mode = Mode::from_raw_mode(mode | 0o700);
    // By its name, because it cannot be opened. A link in its place would have been listed as one.
    Ok(rustix::fs::chmodat(folder, name, mode, AtFlags::empty())?)
}

enum FileRead {
    Gone,
    Skipped(Skip),
    /// Content, or more than the limit, and stamps before and after reading.
    File(Vec<u8>, ContentStamp),
}

/// Reads files; consecutive files of one folder without opening the folder again.
struct FileReader {
    root: RootFolder<'static>,
    folder: Option<(Vec<u8>, OwnedFd)>,
    /// Number of files read so far.
    read: usize,
}

impl FileReader {
    /// Reads a file in a consistent state.
    fn read(&mut self, path: &[u8]) -> FileRead {
        self.read += 1;
        for _ in 0..READ_ATTEMPTS {
            let (content, stamp) = match self.read_once(path) {
                Ok(Some(read)) => read,
                Ok(None) => continue,
                Err(e) if e.kind() == io::ErrorKind::NotFound => return FileRead::Gone,
                Err(_) => return FileRead::Skipped(Skip::Unreadable),
            };
            return FileRead::File(content, stamp);
        }
        FileRead::Skipped(Skip::Changing)
    }

    /// Returns the content, if the file stayed the same while it was read.
    fn read_once(&mut self, path: &[u8]) -> io::Result<Option<(Vec<u8>, ContentStamp)>> {
        let (above, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&[][..], path),
        };
        let folder = match self.folder.take() {
            Some((same, folder)) if same == above => folder,
            _ => self.root.folder(name::path(above))?,
        };
        let (_, folder) = self.folder.insert((above.to_vec(), folder));
        let Some(file) = root::open_file(folder, name)? else {
            return Ok(None);
        };
        let stamp = |file: &File| rustix::fs::fstat(file).map(|stat| ContentStamp::of(&stat));
        let before = stamp(&file)?;
        let content = root::read(&file, MAX_FILE_BYTES)?;
        let over = content.len() as u64 > MAX_FILE_BYTES;
        let still = stamp(&file)? == before && content.len() as u64 == before.bytes;
        Ok((over || still).then_some((content, before)))
    }
}

fn now_ns() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
