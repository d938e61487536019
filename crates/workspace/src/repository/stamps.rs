//! Detects by sizes, times and inodes alone that a git directory is unchanged.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gyrus_contract::Digest;
use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags, Stat, openat},
    io::Errno,
};

use super::{
    RepositoryError,
    folder::{GitFolder, PathKind},
    index::MAX_INDEX,
};
use crate::root;

/// Maximum number of files and folders of a git directory, without objects.
const MAX_FILES: usize = 300_000;
/// Maximum depth of folders of a git directory.
const MAX_DEPTH: usize = 40;
/// Age of a file at its examination below which it may change again without a new time: clocks of
/// file systems tick every 1 to 10 ms.
const TICK: Duration = Duration::from_millis(20);

/// Folder beside `objects` in a private copy, over which the real objects are bound.
pub(super) const REAL_OBJECTS: &str = "gyrus-objects";
/// Prefix of the names of temporary files that a carry-over creates in a real git directory.
pub(super) const OWN_PREFIX: &str = "gyrus-";
/// Folders with large contents of other programs, which are mounted instead of copied.
pub(super) const BOUND: [&str; 2] = ["lfs", "annex"];

/// Metadata of one file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PathStamp {
    pub(super) kind: PathKind,
    mode: u32,
    size: i64,
    inode: u64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl PathStamp {
    fn of(stat: &Stat) -> Self {
        let kind = PathKind::of(stat.st_mode);
        Self {
            kind,
            mode: stat.st_mode,
            // The size of a folder has no meaning.
            size: if kind == PathKind::Folder {
                0
            } else {
                stat.st_size
            },
            inode: stat.st_ino,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.size.try_into().unwrap_or(0)
    }
}

/// Metadata of a git directory at one moment, without objects, locks, sample hooks, which have no
/// effect, and this module's own files.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    pub(super) entries: BTreeMap<PathBuf, PathStamp>,
    /// The folders that hold objects and references of their own: the git directory itself (the
    /// empty path) and those of submodules.
    pub(super) stores: Vec<PathBuf>,
    /// Lock files, held or left behind.
    pub(super) locks: Vec<PathBuf>,
    /// Files changed so recently that their stamps prove nothing, with their digests if recorded.
    racy: BTreeMap<PathBuf, Option<Digest>>,
}

impl Stamps {
    pub(super) fn take(git: &GitFolder) -> Result<Self, RepositoryError> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let folder = git.open_at(Path::new(""), OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut stamps = Self::default();
        stamps.walk(git, &folder, Path::new(""), 0)?;
        let since = now.saturating_sub(TICK);
        let since = (
            since.as_secs().cast_signed(),
            u64::from(since.subsec_nanos()),
        );
        let racy = stamps
            .entries
            .iter()
            .filter(|(_, stamp)| stamp.changed >= since);
        stamps.racy = racy.map(|(path, _)| (path.clone(), None)).collect();
        Ok(stamps)
    }

    fn walk(
        &mut self,
        git: &GitFolder,
        folder: &OwnedFd,
        path: &Path,
        depth: usize,
    ) -> Result<(), RepositoryError> {
        let failed = |error| root::failed(&git.path().join(path), error);
        let stat = rustix::fs::fstat(folder).map_err(failed)?;
        self.entries.insert(path.to_owned(), PathStamp::of(&stat));
        let names = root::names(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let names = names.map_err(failed)?;
        let has = |own: &[u8]| names.iter().any(|name| name == own);
        let is_store = may_be_store(path) && has(b"HEAD") && has(b"objects");
        if is_store {
            self.stores.push(path.to_owned());
        }
        for name in &names {
            let name = OsStr::from_bytes(name);
            let is_sample = path.ends_with("hooks") && name.as_bytes().ends_with(b".sample");
            if is_store && is_left_out(name) || is_sample {
                continue;
            }
            if name.as_bytes().ends_with(b".lock") {
                self.locks.push(path.join(name));
                continue;
            }
            self.add(git, folder, path, name, depth)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        git: &GitFolder,
        folder: &OwnedFd,
        above: &Path,
        name: &OsStr,
        depth: usize,
    ) -> Result<(), RepositoryError> {
        let path = above.join(name);
        let stamp = match root::stat(folder, name) {
            Ok(stat) => PathStamp::of(&stat),
            // Removed just now.
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(root::failed(&git.path().join(path), error).into()),
        };
        if self.entries.len() >= MAX_FILES || depth >= MAX_DEPTH {
            let path = git.path().to_owned();
            let limit = MAX_FILES;
            return Err(RepositoryError::TooMany { path, limit });
        }
        if stamp.kind != PathKind::Folder {
            self.entries.insert(path, stamp);
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(folder, name, flags, Mode::empty()) {
            Ok(below) => self.walk(git, &below, &path, depth + 1),
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(root::failed(&git.path().join(path), error).into()),
        }
    }

    /// Records the digests of files that changed too recently for their stamps to prove anything.
    pub(super) fn remember(&mut self, git: &GitFolder) -> Result<(), RepositoryError> {
        for (path, digest) in &mut self.racy {
            let stamp = self.entries.get(path);
            if stamp.is_some_and(|stamp| stamp.kind == PathKind::File) {
                *digest = digest_of(git, path)?;
            }
        }
        Ok(())
    }

    /// Whether the directory is still the same, as far as stamps show. Files with unreliable stamps
    /// are compared with their digests, or else with `reference`, once.
    pub(super) fn hold(
        &mut self,
        git: &GitFolder,
        reference: &GitFolder,
    ) -> Result<bool, RepositoryError> {
        let folder = git.open_at(Path::new(""), OFlags::PATH | OFlags::DIRECTORY)?;
        let same = self.entries.iter().all(|(path, stamp)| {
            let is_top = path.as_os_str().is_empty();
            let path = if is_top { Path::new(".") } else { path };
            root::stat(&folder, path).is_ok_and(|stat| PathStamp::of(&stat) == *stamp)
        });
        if !same || self.racy.is_empty() {
            return Ok(same);
        }
        let mut now = Self::take(git)?;
        for (path, digest) in &mut now.racy {
            *digest = self.racy.get(path).copied().flatten();
        }
        let mut same = now.entries == self.entries && now.locks == self.locks;
        for (path, remembered) in &self.racy {
            let stamp = self.entries.get(path);
            if same && stamp.is_some_and(|stamp| stamp.kind == PathKind::File) {
                let expected = match remembered {
                    Some(digest) => Some(*digest),
                    None => digest_of(reference, path)?,
                };
                same = digest_of(git, path)? == expected;
            }
        }
        if same {
            *self = now;
        }
        Ok(same)
    }

    /// Whether one file is unchanged since `before` was taken.
    pub(super) fn is_as_in(&self, before: &Self, path: &Path) -> bool {
        let now = self.entries.get(path);
        now.is_some() && now == before.entries.get(path) && !before.racy.contains_key(path)
    }
}

fn digest_of(git: &GitFolder, path: &Path) -> Result<Option<Digest>, RepositoryError> {
    let content = git.read(path, MAX_INDEX)?;
    Ok(content.map(|content| Digest::of(&content)))
}

/// Whether a path may be a store: the git directory or a submodule's.
fn may_be_store(path: &Path) -> bool {
    let mut parts = path.iter().map(OsStr::as_bytes);
    match parts.next() {
        None | Some(b"modules") => true,
        Some(b"worktrees") => parts.nth(1) == Some(b"modules"),
        Some(_) => false,
    }
}

fn is_left_out(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name == b"objects"
        || name == b"fsmonitor--daemon"
        || name.starts_with(OWN_PREFIX.as_bytes())
        || BOUND.iter().any(|bound| name == bound.as_bytes())
}
