//! A state home: every log on this machine, by name.
//!
//! ```text
//! <root>/format              the version of this layout
//! <root>/identity            the secret by which the store knows logs that it began; see `birth`
//! <root>/<kind>/<id>/        a log: segments, lock, blobs/, inbox/, private/ if it has any
//! <root>/blobs/ab/<hash>     second names of the logs' blobs, so that equal ones are stored once
//! <root>/.incoming/          staged logs; they appear under their name when complete
//! <root>/.trash/             logs that are being removed
//! ```

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus_contract::{BlobId, Digest};
use parking_lot::Mutex;

use crate::{
    Disk, Error, Holder, Inbox, LockWait, LogName, LogReader, Recovery, Replica, Replicas,
    SegmentTail, Writer,
    birth::Birth,
    blobs,
    flush::WriterInner,
    home::{StoreHome, make_folder},
    identity::StoreIdentity,
    lock,
    os::{disk::OsDisk, mounts},
    replica,
    scan::{Scan, SegmentWalk},
    seal::{self, Seal},
    segment::{FORMAT, LogFiles, SEGMENT_BYTES, write_all},
    take,
};

/// Longest `format` file, in bytes.
const FORMAT_LIMIT: u64 = 64;

/// Folders at the root that are not kinds of logs.
const OURS: [&str; 3] = ["blobs", ".incoming", ".trash"];

/// The result of [`Store::verify`] for a log whose whole chain is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainVerification {
    /// Number of entries, erased ones included, which is the number of the last one.
    pub entries: u64,
    /// Number of entries with an erased payload.
    pub erased: u64,
    /// The last entry's hash, which covers all earlier entries.
    pub head: Digest,
    /// The bytes that the next process which takes the log will set aside.
    pub tail: Option<SegmentTail>,
    /// Number of blobs.
    pub blobs: u64,
    /// Whether the log is sealed: all that it had when it was finished is there.
    pub is_sealed: bool,
}

/// A state home on a disk. Clones are the same store.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) home: Arc<StoreHome>,
    replicas: Option<Arc<dyn Replicas>>,
}

impl Store {
    /// Opens the store below `root` on the machine's disk, or creates it. The folder is for the
    /// user alone, and not on a network file system.
    pub fn open(root: &Path) -> Result<Store, Error> {
        if let Some(parent) = root.parent() {
            std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        }
        let disk = Arc::new(OsDisk);
        make_folder(disk.as_ref(), root)?;
        let real = root.canonicalize().map_err(Error::io("look at", root))?;
        let mounts = std::fs::read_to_string(mounts::MOUNTINFO)
            .map_err(Error::io("read", mounts::MOUNTINFO))?;
        if let Some(file_system) = mounts::network_file_system(&mounts, &real) {
            return Err(Error::NetworkFileSystem {
                root: root.to_owned(),
                file_system,
            });
        }
        let mut home = Self::home_on(disk, &real, SEGMENT_BYTES)?;
        if home.newer.is_none() {
            home.identity = StoreIdentity::open(&home.disk, &real)?;
        }
        Ok(Self::of(home))
    }

    /// Opens a store on any disk, or creates it, without an identity: each log counts as its own.
    pub fn open_on(disk: Arc<dyn Disk>, root: &Path) -> Result<Store, Error> {
        Self::open_with(disk, root, SEGMENT_BYTES)
    }

    /// Opens a store as [`open_on`](Self::open_on) does, with another maximum size of segments.
    pub fn open_with(disk: Arc<dyn Disk>, root: &Path, segment_bytes: u64) -> Result<Store, Error> {
        Self::home_on(disk, root, segment_bytes).map(Self::of)
    }

    fn home_on(disk: Arc<dyn Disk>, root: &Path, segment_bytes: u64) -> Result<StoreHome, Error> {
        make_folder(disk.as_ref(), root)?;
        let newer = format(disk.as_ref(), root)?;
        Ok(StoreHome {
            disk,
            root: root.to_owned(),
            identity: StoreIdentity::Simulated,
            newer,
            segment_bytes,
            writing: Mutex::default(),
        })
    }

    fn of(home: StoreHome) -> Store {
        Store {
            home: Arc::new(home),
            replicas: None,
        }
    }

    /// Returns the same store, in which logs are created and taken with their replicas. Other
    /// clones of the store do not use them.
    #[must_use]
    pub fn with_replicas(self, replicas: Arc<dyn Replicas>) -> Store {
        Store {
            home: self.home,
            replicas: Some(replicas),
        }
    }

    /// Returns the same store without replicas, for changes that stay local.
    pub(crate) fn without_replicas(self) -> Store {
        Store {
            home: self.home,
            replicas: None,
        }
    }

    /// Whether a log counts only with a replica: it was created or taken with one, and is not taken
    /// without one any more.
    pub fn needs_replica(&self, name: &LogName) -> bool {
        replica::is_needed(&self.files(name))
    }

    pub(crate) fn replica_of(&self, name: &LogName) -> Option<Arc<dyn Replica>> {
        self.replicas.as_ref()?.replica_of(name)
    }

    /// Returns the root folder of the store.
    pub fn root(&self) -> &Path {
        &self.home.root
    }

    /// Returns the folder of a log, whether it exists or not.
    pub fn folder(&self, name: &LogName) -> PathBuf {
        self.home.root.join(name.kind()).join(name.id())
    }

    /// Whether the log exists.
    pub fn exists(&self, name: &LogName) -> bool {
        self.files(name).has_segment(1).unwrap_or(false)
    }

    /// Waits until the log exists.
    pub async fn created(&self, name: &LogName) -> Result<(), Error> {
        let (root, disk) = (&self.home.root, &self.home.disk);
        let folder = root.join(name.kind());
        while !self.exists(name) {
            // The folder appears with its first log.
            let watched = disk.watch(&folder).or_else(|_| disk.watch(root));
            let mut changes = watched.map_err(Error::io("watch", &folder))?;
            // Before the look, so that what comes after it is not missed.
            if !self.exists(name) {
                changes.changed().await;
            }
        }
        Ok(())
    }

    /// Returns the logs of a kind, sorted.
    pub fn names(&self, kind: &str) -> Result<Vec<LogName>, Error> {
        self.names_where(kind, |_| true)
    }

    /// Returns the sorted logs of a kind whose ids are wanted. Those that are not cost nothing
    /// beside the listing.
    pub fn names_where(
        &self,
        kind: &str,
        mut is_wanted: impl FnMut(&str) -> bool,
    ) -> Result<Vec<LogName>, Error> {
        let folder = self.home.root.join(kind);
        let entries = match self.home.disk.list(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io("list", folder)(error)),
        };
        let mut names: Vec<LogName> = entries
            .iter()
            .filter(|id| is_wanted(id))
            .filter_map(|id| LogName::new(kind, id).ok())
            .filter(|name| self.exists(name))
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Takes a log that exists, sets aside bytes that a crash tore, and opens a new segment. Blocks
    /// until the log's replica, if it has one, has every entry that is here.
    ///
    /// # Errors
    /// Returns [`Error::ReplicaAhead`] when the replica has entries that are not here: bring the
    /// local log up to it with a [`Mirror`](crate::Mirror) first. Returns [`Error::ReplicaFailed`]
    /// when it refuses an entry that it does not have, and [`Error::NeedsReplica`] when the log
    /// counts only with a replica and this store has none for it. Returns [`Error::BornElsewhere`] for
    /// a log that was imported or copied, and [`Error::CopiedStore`] for each log of a copied store.
    pub fn take(&self, name: &LogName, how: LockWait) -> Result<(Writer, Recovery), Error> {
        self.take_for(name, how, TakePurpose::Appending)
    }

    pub(crate) fn take_for(
        &self,
        name: &LogName,
        how: LockWait,
        purpose: TakePurpose,
    ) -> Result<(Writer, Recovery), Error> {
        self.check_writable()?;
        if purpose == TakePurpose::Appending {
            self.check_born_here(name)?;
        }
        let files = self.files(name);
        let lock = lock::take(&files, how)?;
        // The creator of the log may have ended between naming it and this sync.
        self.sync_name(name)?;
        let replica = self.replica_of(name);
        let staged = Arc::new(files.clone());
        // Asked before a segment is opened, which would be one more after each attempt that fails.
        let has = match &replica {
            Some(replica) => {
                let has = replica::has(replica.as_ref(), &staged)?;
                replica::mark(&files)?;
                has
            }
            None if purpose == TakePurpose::Appending && replica::is_needed(&files) => {
                return Err(Error::NeedsReplica { name: name.clone() });
            }
            None => 0,
        };
        let (output, recovery) = take::again(&files, &lock.holder)?;
        if let Some(replica) = &replica {
            replica::catch_up(replica.as_ref(), &staged, has, &output)?;
        }
        let shared = WriterInner::new(&self.home, files, lock, output, replica, Vec::new());
        Ok((Writer::new(shared), recovery))
    }

    /// Returns a reader of a log, which works while any process holds the log.
    pub fn reader(&self, name: &LogName) -> Result<LogReader, Error> {
        Ok(LogReader::new(&self.home, self.existing(name)?))
    }

    /// Returns a blob that any log of this kind holds, for callers that do not know which one;
    /// `None` if none does.
    pub fn blob(&self, kind: &str, id: &BlobId) -> Result<Option<Vec<u8>>, Error> {
        let shared = blobs::shared_path(&self.home.shared_blobs(), id);
        if let Ok(file) = self.home.disk.open(&shared)
            && let Ok(Some(bytes)) = blobs::read_whole(file.as_ref())
            && BlobId::of(&bytes) == *id
        {
            return Ok(Some(bytes));
        }
        // The shared name may be removed at any time; a log's own name stays.
        for name in self.names(kind)?.iter().rev() {
            match blobs::read(&self.files(name), id) {
                Err(Error::BlobMissing { .. } | Error::BlobDamaged { .. }) => {}
                found => return found.map(Some),
            }
        }
        Ok(None)
    }

    /// Whether a log has a seal, which is put on it when it is complete. It is not checked.
    pub fn is_sealed(&self, name: &LogName) -> bool {
        seal::exists(&self.files(name))
    }

    /// Returns the holder of a log, if there is one.
    pub fn holder(&self, name: &LogName) -> Result<Option<Holder>, Error> {
        lock::holder(self.existing(name)?.as_ref())
    }

    /// Returns the inbox of a log, which works while any process holds the log.
    pub fn inbox(&self, name: &LogName) -> Result<Inbox, Error> {
        Ok(Inbox::new(self.existing(name)?))
    }

    /// Verifies a whole log: its chain from the first entry, its seal if it has one, and the hash
    /// of every blob.
    pub fn verify(&self, name: &LogName) -> Result<ChainVerification, Error> {
        let files = self.existing(name)?;
        let verified = verify(&files)?;
        for id in blobs::list(&files)? {
            blobs::check(&files, &id)?;
        }
        Ok(verified)
    }

    /// Returns where a log was born. A log that cannot be read was born elsewhere.
    pub fn birth(&self, name: &LogName) -> Birth {
        self.home.identity.birth(&Arc::new(self.files(name)))
    }

    /// Whether the whole store was copied here and not yet adopted by a person.
    pub fn is_copied(&self) -> bool {
        matches!(self.home.identity, StoreIdentity::Copied)
    }

    /// Makes this the place of a store that was copied or moved here. Logs that the store created
    /// before are its own again; those that had come from elsewhere are not. Open the store again
    /// afterwards.
    pub fn adopt(&self) -> Result<(), Error> {
        self.check_writable()?;
        StoreIdentity::adopt(self.home.disk.as_ref(), &self.home.root)
    }

    /// Checks that a log may be appended to: it was born here, or at a time when nobody could tell.
    pub(crate) fn check_born_here(&self, name: &LogName) -> Result<(), Error> {
        self.check_not_copied()?;
        match self.birth(name) {
            Birth::Here | Birth::Unproven => Ok(()),
            Birth::Elsewhere => Err(Error::BornElsewhere { name: name.clone() }),
        }
    }

    /// Checks that logs may be created here.
    ///
    /// # Errors
    /// Returns [`Error::CopiedStore`] if the store was copied.
    pub fn check_not_copied(&self) -> Result<(), Error> {
        if self.is_copied() {
            let root = self.home.root.clone();
            return Err(Error::CopiedStore { root });
        }
        Ok(())
    }

    pub(crate) fn files(&self, name: &LogName) -> LogFiles {
        LogFiles::new(Arc::clone(&self.home.disk), name.clone(), self.folder(name))
    }

    pub(crate) fn existing(&self, name: &LogName) -> Result<Arc<LogFiles>, Error> {
        let files = self.files(name);
        if files.has_segment(1)? {
            Ok(Arc::new(files))
        } else {
            Err(Error::NotFound { name: name.clone() })
        }
    }

    /// Checks that this version may write here.
    ///
    /// # Errors
    /// Returns [`Error::NewerFormat`] if a newer version made the store.
    pub fn check_writable(&self) -> Result<(), Error> {
        match self.home.newer {
            Some(found) => Err(Error::NewerFormat {
                path: self.home.root.clone(),
                found,
                known: FORMAT,
            }),
            None => Ok(()),
        }
    }

    pub(crate) fn check_absent(&self, name: &LogName) -> Result<(), Error> {
        if self.exists(name) {
            return Err(Error::Exists { name: name.clone() });
        }
        Ok(())
    }

    /// Creates an empty, locked folder for a staged log.
    pub(crate) fn stage(&self, name: &LogName) -> Result<StagedLog, Error> {
        self.check_writable()?;
        self.check_absent(name)?;
        let disk = &self.home.disk;
        let incoming = self.home.root.join(".incoming");
        make_folder(disk.as_ref(), &incoming)?;
        let folder = incoming.join(gyrus_contract::time_ordered_uuid().to_string());
        disk.create_folder(&folder)
            .map_err(Error::io("create", &folder))?;
        let files = LogFiles::new(Arc::clone(disk), name.clone(), folder);
        for part in [files.blobs(), files.inbox()] {
            disk.create_folder(&part)
                .map_err(Error::io("create", &part))?;
        }
        let lock = lock::take_new(&files)?;
        Ok(StagedLog {
            files: Arc::new(files),
            lock,
        })
    }

    /// Publishes a staged log, all of which is on disk, under its name.
    pub(crate) fn publish(&self, staged: &LogFiles) -> Result<(), Error> {
        let name = &staged.name;
        let disk = self.home.disk.as_ref();
        let kind = self.home.root.join(name.kind());
        make_folder(disk, &kind)?;
        disk.rename(&staged.folder, &self.folder(name))
            .map_err(|source| match source.kind() {
                io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => {
                    Error::Exists { name: name.clone() }
                }
                _ => Error::io("create", self.folder(name))(source),
            })?;
        self.sync_name(name)
    }

    /// Syncs the names that lead to a log to disk.
    pub(crate) fn sync_name(&self, name: &LogName) -> Result<(), Error> {
        let kind = self.home.root.join(name.kind());
        for folder in [&kind, &self.home.root] {
            self.home
                .disk
                .sync_folder(folder)
                .map_err(Error::io("sync", folder))?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakePurpose {
    Appending,
    /// To erase payloads; nothing that counts changes.
    Erasing,
}

/// A complete log that is not in the store under its name yet.
pub(crate) struct StagedLog {
    pub(crate) files: Arc<LogFiles>,
    pub(crate) lock: lock::Lock,
}

/// Checks the whole chain of a log and its seal, and that the blobs listed there exist.
pub(crate) fn verify(files: &Arc<LogFiles>) -> Result<ChainVerification, Error> {
    let seal = Seal::read(files)?;
    let mut walk = SegmentWalk::new(files, Scan::open(files, 1)?);
    let mut erased = 0;
    while let Some((seq, hash, is_erased)) =
        walk.next(&mut |line| (line.header.seq, line.hash, line.is_erased()))?
    {
        erased += u64::from(is_erased);
        if seal
            .as_ref()
            .is_some_and(|seal| seal.entries == seq && seal.head != hash)
        {
            let why = "the log was finished with another entry in its place";
            return Err(files.corrupt(walk.scan.segment.number, 0, seq, why));
        }
    }
    let blobs = blobs::list(files)?;
    let is_there = |id: &&BlobId| blobs.binary_search(id).is_ok();
    if let Some(lost) = seal
        .iter()
        .flat_map(|seal| &seal.blobs)
        .find(|id| !is_there(id))
    {
        return Err(Error::BlobLost {
            name: files.name.clone(),
            id: *lost,
        });
    }
    let position = walk.scan.position();
    let tail = walk.scan.tail()?;
    Ok(ChainVerification {
        entries: position.seq,
        erased,
        head: position.hash,
        tail,
        blobs: blobs.len() as u64,
        is_sealed: seal.is_some(),
    })
}

/// Reads or writes the store's version, and returns it if it is newer than this program's.
fn format(disk: &dyn Disk, root: &Path) -> Result<Option<u32>, Error> {
    let path = root.join("format");
    let not_a_store = |why: &str| Error::NotAStore {
        root: root.to_owned(),
        why: why.to_owned(),
    };
    let found = || match disk.open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some).map_err(Error::io("open", &path)),
    };
    let file = match found()? {
        Some(file) => file,
        None => {
            let names = disk.list(root).map_err(Error::io("list", root))?;
            // The store's own folders may have reached the disk before the version did.
            let ours = |name: &str| name.starts_with(".tmp-") || OURS.contains(&name);
            if names.iter().all(|name| ours(name)) {
                if let Some(parent) = root.parent() {
                    disk.sync_folder(parent)
                        .map_err(Error::io("sync", parent))?;
                }
                return write_format(disk, root, &path).map(|()| None);
            }
            // Another process may have created the store between the two checks: its version file
            // is created before anything else.
            found()?.ok_or_else(|| not_a_store("there is something in it, but no file `format`"))?
        }
    };
    let length = file.metadata().map_err(Error::io("look at", &path))?.len;
    let text = blobs::read_whole(file.as_ref()).map_err(Error::io("read", path))?;
    let version = text
        .filter(|_| length <= FORMAT_LIMIT)
        .and_then(|text| String::from_utf8(text).ok()?.trim_end().parse::<u32>().ok())
        .ok_or_else(|| not_a_store("its file `format` holds no version"))?;
    Ok((version > FORMAT).then_some(version))
}

fn write_format(disk: &dyn Disk, root: &Path, path: &Path) -> Result<(), Error> {
    let temporary = root.join(format!(".tmp-{}", gyrus_contract::time_ordered_uuid()));
    let file = disk
        .create_new(&temporary)
        .map_err(Error::io("create", &temporary))?;
    write_all(file.as_ref(), format!("{FORMAT}\n").as_bytes())
        .and_then(|()| file.sync())
        .and_then(|()| disk.rename(&temporary, path))
        .and_then(|()| disk.sync_folder(root))
        .map_err(Error::io("write", path))
}
