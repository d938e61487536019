//! A git directory, real or private, held open: bounded reads of regular files, and changes of
//! single files, none of which follows a symbolic link.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, fchmod, fstat, linkat, openat, renameat, statat, unlinkat,
    },
    io::Errno,
};

use super::RepositoryError;
use crate::root::{self, RootError, RootFolder, failed};

/// Maximum number of entries of one folder that are read.
const MAX_ENTRIES: usize = 300_000;
/// Maximum depth of a tree that is removed.
const MAX_DEPTH: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathKind {
    Missing,
    File,
    Folder,
    Link,
    /// A device, a pipe or a socket.
    Other,
}

impl PathKind {
    pub(super) fn of(mode: u32) -> Self {
        match FileType::from_raw_mode(mode) {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

/// Permissions of new files and folders: those that the repository already uses, which differ from
/// the usual ones where it is shared by a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Modes {
    pub(super) file: Mode,
    pub(super) folder: Mode,
}

/// A folder of a repository. All paths are below it.
pub(super) struct GitFolder {
    root: RootFolder<'static>,
    path: PathBuf,
}

impl GitFolder {
    pub(super) fn open(path: &Path) -> Result<Self, RepositoryError> {
        let root = RootFolder::open(path)?;
        Ok(Self {
            root,
            path: path.to_owned(),
        })
    }

    /// Returns the path at which the folder was opened.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, path: &Path, error: Errno) -> RootError {
        failed(&self.path.join(path), error)
    }

    pub(super) fn kind(&self, path: &Path) -> Result<PathKind, RepositoryError> {
        let stat = self.root.stat(path);
        let stat = stat.map_err(|RootError { error, .. }| error);
        match stat {
            Ok(stat) => Ok(stat.map_or(PathKind::Missing, |stat| PathKind::of(stat.st_mode))),
            // A link on the way.
            Err(Errno::LOOP | Errno::XDEV) => Ok(PathKind::Missing),
            Err(error) => Err(self.failed(path, error).into()),
        }
    }

    /// Returns the content of a regular file of at most `limit` bytes; `None` if it does not exist.
    pub(super) fn read(&self, path: &Path, limit: u64) -> Result<Option<Vec<u8>>, RepositoryError> {
        Ok(self
            .read_with_mode(path, limit)?
            .map(|(content, _)| content))
    }

    /// Like [`Self::read`], with the permissions.
    pub(super) fn read_with_mode(
        &self,
        path: &Path,
        limit: u64,
    ) -> Result<Option<(Vec<u8>, u32)>, RepositoryError> {
        let odd = || RepositoryError::NotRegular(self.path.join(path));
        let opened = self.root.parent(path).and_then(|(folder, name)| {
            let mode = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat.st_mode,
                Err(Errno::NOENT) => return Ok(None),
                Err(error) => return Err(error),
            };
            // Other kinds of files are not even opened.
            if PathKind::of(mode) != PathKind::File {
                return Ok(Some((None, mode)));
            }
            Ok(Some((root::open_file(&folder, name)?, mode)))
        });
        let (file, mode) = match opened {
            Ok(None) | Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Ok(Some((Some(file), mode))) => (file, mode),
            Ok(Some((None, _))) | Err(Errno::LOOP | Errno::XDEV) => return Err(odd()),
            Err(error) => return Err(self.failed(path, error).into()),
        };
        let content = root::read(&file, limit).map_err(|error| {
            self.failed(path, Errno::from_io_error(&error).unwrap_or(Errno::IO))
        })?;
        if content.len() as u64 > limit {
            let path = self.path.join(path);
            return Err(RepositoryError::TooLarge { path, limit });
        }
        Ok(Some((content, mode)))
    }

    /// Returns the names in a folder, sorted; none if it does not exist.
    pub(super) fn names(&self, path: &Path) -> Result<Vec<Vec<u8>>, RepositoryError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let folder = match self.root.open_at(path, flags) {
            Ok(folder) => folder,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return Ok(Vec::new()),
            Err(error) => return Err(self.failed(path, error).into()),
        };
        let list = root::names(&folder).map_err(|error| self.failed(path, error))?;
        let mut names = Vec::new();
        for name in list {
            if names.len() == MAX_ENTRIES {
                let path = self.path.join(path);
                return Err(RepositoryError::TooMany {
                    path,
                    limit: MAX_ENTRIES,
                });
            }
            names.push(name.map_err(|error| self.failed(path, error))?);
        }
        names.sort();
        Ok(names)
    }

    /// Returns the permissions of new files and folders.
    pub(super) fn modes(&self) -> Result<Modes, RepositoryError> {
        let mode = |path: &str, fallback| {
            let stat = self.root.stat(Path::new(path));
            let stat = stat.map_err(|error| self.failed(Path::new(path), error.error))?;
            let mode = stat.map_or(fallback, |stat| stat.st_mode & 0o2777);
            Ok::<_, RepositoryError>(Mode::from_raw_mode(mode))
        };
        Ok(Modes {
            file: mode("HEAD", 0o644)? & Mode::from_raw_mode(0o666),
            folder: mode("refs", 0o755)?,
        })
    }

    /// Creates a folder and its missing ancestors.
    ///
    /// # Errors
    /// The system's; [`Errno::NOTDIR`] where something else is in the way.
    pub(super) fn make_folder(&self, path: &Path, modes: Modes) -> Result<(), RootError> {
        let mut made = PathBuf::new();
        for part in path {
            made.push(part);
            let (folder, name) = self.root.parent(&made).map_err(|e| self.failed(&made, e))?;
            match rustix::fs::mkdirat(&folder, name, modes.folder) {
                Ok(()) => {
                    // The umask may have taken a group's permissions away.
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
                    let new = openat(&folder, name, flags | OFlags::CLOEXEC, Mode::empty());
                    let _ = new.and_then(|new| fchmod(&new, modes.folder));
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(self.failed(&made, error)),
            }
        }
        Ok(())
    }

    /// Writes a new file into an existing folder.
    pub(super) fn write_new(
        &self,
        path: &Path,
        content: &[u8],
        mode: Mode,
    ) -> Result<(), RootError> {
        let write = || {
            let (folder, name) = self.root.parent(path)?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let mut file = std::fs::File::from(openat(&folder, name, flags, mode)?);
            let io = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
            file.write_all(content).map_err(io)?;
            fchmod(&file, mode)?;
            Ok(())
        };
        write().map_err(|error| self.failed(path, error))
    }

    /// Makes a file executable for everybody who may read it.
    pub(super) fn make_executable(&self, path: &Path) -> Result<(), RootError> {
        let set = || {
            let file = self.root.open_at(path, OFlags::RDONLY)?;
            let mode = fstat(&file)?.st_mode;
            fchmod(
                &file,
                Mode::from_raw_mode((mode | mode >> 2 & 0o111) & 0o777),
            )
        };
        set().map_err(|error| self.failed(path, error))
    }

    /// Ensures that a file's content survives a loss of power.
    pub(super) fn sync_file(&self, path: &Path) -> Result<(), RootError> {
        let sync = || rustix::fs::fsync(self.root.open_at(path, OFlags::RDONLY)?);
        sync().map_err(|error| self.failed(path, error))
    }

    /// Ensures that everything in the folder survives a loss of power.
    pub(super) fn sync_all(&self) -> Result<(), RootError> {
        self.root.sync()
    }

    pub(super) fn set_modified(&self, path: &Path, time: (i64, u64)) -> Result<(), RootError> {
        let (tv_sec, tv_nsec) = (time.0, time.1.try_into().unwrap_or(0));
        let time = rustix::fs::Timespec { tv_sec, tv_nsec };
        let times = rustix::fs::Timestamps {
            last_access: time,
            last_modification: time,
        };
        let set = || {
            let (folder, name) = self.root.parent(path)?;
            rustix::fs::utimensat(&folder, name, &times, AtFlags::SYMLINK_NOFOLLOW)
        };
        set().map_err(|error| self.failed(path, error))
    }

    /// Returns the time of a file's last change, in seconds and nanoseconds.
    pub(super) fn modified(&self, path: &Path) -> Result<Option<(i64, u64)>, RepositoryError> {
        let stat = self.root.stat(path);
        let stat = stat.map_err(|error| self.failed(path, error.error))?;
        Ok(stat.map(|stat| (stat.st_mtime, stat.st_mtime_nsec)))
    }

    /// Renames the file at `from` over the one at `to`, atomically.
    pub(super) fn replace(&self, from: &Path, to: &Path) -> Result<(), RootError> {
        let replace = || {
            let (source, old) = self.root.parent(from)?;
            let (target, new) = self.root.parent(to)?;
            renameat(&source, old, &target, new)
        };
        replace().map_err(|error| self.failed(to, error))
    }

    /// Adds a hard link with an unused name to a file.
    ///
    /// # Errors
    /// The system's; [`Errno::EXIST`] if the name is taken.
    pub(super) fn link(&self, from: &Path, to: &Path) -> Result<(), RootError> {
        let link = || {
            let (source, old) = self.root.parent(from)?;
            let (target, new) = self.root.parent(to)?;
            linkat(&source, old, &target, new, AtFlags::empty())
        };
        link().map_err(|error| self.failed(to, error))
    }

    /// Removes a file or link; it may be gone already.
    pub(super) fn remove_file(&self, path: &Path) -> Result<(), RootError> {
        let remove = || {
            let (folder, name) = self.root.parent(path)?;
            unlinkat(&folder, name, AtFlags::empty())
        };
        match remove() {
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
            Err(error) => Err(self.failed(path, error)),
        }
    }

    /// Removes empty folders from `path` upwards, up to but not including `top`.
    pub(super) fn remove_empty(&self, path: &Path, top: &Path) {
        let mut path = path;
        while path != top && path.starts_with(top) {
            let removed = self
                .root
                .parent(path)
                .and_then(|(folder, name)| unlinkat(&folder, name, AtFlags::REMOVEDIR));
            let (Ok(()), Some(above)) = (removed, path.parent()) else {
                return;
            };
            path = above;
        }
    }

    /// Removes the entry at a path, with everything below. Folders that cannot be entered are made
    /// accessible first.
    pub(super) fn remove_tree(&self, path: &Path) -> Result<(), RepositoryError> {
        let removed = self
            .root
            .parent(path)
            .and_then(|(folder, name)| remove_in(&folder, name.as_encoded_bytes(), MAX_DEPTH));
        match removed {
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
            Err(error) => Err(self.failed(path, error).into()),
        }
    }

    /// Returns the folder of a path, and the path's last part.
    pub(super) fn parent<'p>(
        &self,
        path: &'p Path,
    ) -> Result<(rustix::fd::OwnedFd, &'p std::ffi::OsStr), RootError> {
        let parent = self.root.parent(path);
        parent.map_err(|error| self.failed(path, error))
    }

    /// Opens a folder or file.
    pub(super) fn open_at(
        &self,
        path: &Path,
        flags: OFlags,
    ) -> Result<rustix::fd::OwnedFd, RootError> {
        let opened = self.root.open_at(path, flags);
        opened.map_err(|error| self.failed(path, error))
    }
}

fn remove_in(folder: &rustix::fd::OwnedFd, name: &[u8], depth: usize) -> Result<(), Errno> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) if depth > 0 => {}
        done => return done,
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Only its owner may do that; where it fails, the next call does too.
    let all = Mode::RWXU;
    let mut inner = openat(folder, name, flags, Mode::empty());
    if matches!(inner, Err(Errno::ACCESS)) {
        rustix::fs::chmodat(folder, name, all, AtFlags::empty())?;
        inner = openat(folder, name, flags, Mode::empty());
    }
    let inner = inner?;
    if fstat(&inner)?.st_mode & 0o700 != 0o700 {
        let _ = fchmod(&inner, all);
    }
    let names: Vec<_> = root::names(&inner)?.collect::<Result<_, _>>()?;
    for name in names {
        remove_in(&inner, &name, depth - 1)?;
    }
    unlinkat(folder, name, AtFlags::REMOVEDIR)
}
