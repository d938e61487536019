//! The few things that applying does to a disk, each below the workspace and following no link.
//!
//! Every call that changes something asks the [`Pace`] first, so that a test can end the world, or
//! fill the disk, before any of them.

use std::{
    ffi::OsStr,
    fs::File,
    io::Read as _,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use gyrus_contract::Digest;
use rustix::{
    fs::{
        AtFlags, CWD, Dir, Mode, OFlags, RenameFlags, ResolveFlags, Stat, chmodat, fstat, mkdirat,
        openat, openat2, renameat_with, statat, syncfs, unlinkat,
    },
    io::Errno,
};

/// Asked before each change of the disk; an error stands for what the system would have said.
pub(super) type Pace<'a> = &'a (dyn Fn() -> Result<(), Errno> + Sync);

/// A call of the system that failed, and what it was about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}`: {error}", path.display())]
pub(super) struct Failed {
    pub(super) path: PathBuf,
    pub(super) error: Errno,
}

/// The workspace. All paths are below it.
pub(super) struct Root<'a> {
    folder: OwnedFd,
    pace: Pace<'a>,
}

impl<'a> Root<'a> {
    pub(super) fn open(workspace: &Path, pace: Pace<'a>) -> Result<Self, Failed> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(CWD, workspace, flags, Mode::empty()) {
            Ok(folder) => Ok(Self { folder, pace }),
            Err(error) => Err(failed(workspace, error)),
        }
    }

    /// The folder that a path is in, and its name there.
    fn parent<'p>(&self, path: &'p Path) -> Result<(OwnedFd, &'p OsStr), Errno> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let above = match path.parent() {
            Some(above) if !above.as_os_str().is_empty() => above,
            _ => Path::new("."),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        Ok((self.beneath(above, flags)?, name))
    }

    fn beneath(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::CLOEXEC;
        openat2(&self.folder, path, flags, Mode::empty(), resolve)
    }

    /// What stands at a path, not followed; `None` if nothing does.
    pub(super) fn stat(&self, path: &Path) -> Result<Option<Stat>, Failed> {
        let looked = self
            .parent(path)
            .and_then(|(folder, name)| statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW));
        match looked {
            Ok(stat) => Ok(Some(stat)),
            // Below a file there is nothing either.
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(failed(path, error)),
        }
    }

    /// The content of a regular file, and what was there when it was opened.
    pub(super) fn read(&self, path: &Path) -> Result<(Vec<u8>, Stat), Failed> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self
            .beneath(path, flags)
            .map_err(|error| failed(path, error))?;
        let stat = fstat(&file).map_err(|error| failed(path, error))?;
        let mut content = Vec::new();
        match File::from(file).read_to_end(&mut content) {
            Ok(_) => Ok((content, stat)),
            Err(error) => {
                let error = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                Err(failed(path, error))
            }
        }
    }

    /// The digest of what stands there; `None` if nothing does.
    pub(super) fn digest(&self, path: &Path) -> Result<Option<Digest>, Failed> {
        match self.read(path) {
            Ok((content, _)) => Ok(Some(Digest::of(&content))),
            Err(Failed {
                error: Errno::NOENT | Errno::NOTDIR,
                ..
            }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// An open folder, for locking, listing and syncing it.
    pub(super) fn folder(&self, path: &Path) -> Result<OwnedFd, Failed> {
        self.beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(|error| failed(path, error))
    }

    /// The names in a folder.
    pub(super) fn names(&self, path: &Path) -> Result<Vec<PathBuf>, Failed> {
        let listed = || {
            let folder = self.beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
            let mut names = Vec::new();
            for entry in Dir::read_from(folder)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if name != b"." && name != b".." {
                    names.push(PathBuf::from(String::from_utf8_lossy(name).into_owned()));
                }
            }
            Ok(names)
        };
        listed().map_err(|error| failed(path, error))
    }

    /// A new file.
    pub(super) fn create(&self, path: &Path, mode: Mode) -> Result<File, Failed> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        self.change(path, |folder, name| {
            openat(folder, name, flags | OFlags::CLOEXEC, mode).map(File::from)
        })
    }

    /// A step that changes a file which is already open.
    pub(super) fn fill(
        &self,
        path: &Path,
        step: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Failed> {
        (self.pace)()
            .and_then(|()| step())
            .map_err(|error| failed(path, error))
    }

    pub(super) fn make_folder(&self, path: &Path, mode: Mode) -> Result<(), Failed> {
        self.change(path, |folder, name| mkdirat(folder, name, mode))
    }

    pub(super) fn set_mode(&self, path: &Path, mode: Mode) -> Result<(), Failed> {
        self.change(path, |folder, name| {
            chmodat(folder, name, mode, AtFlags::empty())
        })
    }

    /// Only an empty one.
    pub(super) fn remove_folder(&self, path: &Path) -> Result<(), Failed> {
        self.change(path, |folder, name| {
            unlinkat(folder, name, AtFlags::REMOVEDIR)
        })
    }

    pub(super) fn remove_file(&self, path: &Path) -> Result<(), Failed> {
        self.change(path, |folder, name| {
            unlinkat(folder, name, AtFlags::empty())
        })
    }

    /// To a name that nothing has.
    pub(super) fn rename(&self, from: &Path, to: &Path) -> Result<(), Failed> {
        self.swing(from, to, RenameFlags::NOREPLACE)
    }

    /// Each takes the other's name, in one step.
    pub(super) fn exchange(&self, one: &Path, other: &Path) -> Result<(), Failed> {
        self.swing(one, other, RenameFlags::EXCHANGE)
    }

    fn swing(&self, from: &Path, to: &Path, flags: RenameFlags) -> Result<(), Failed> {
        let (source, old) = self.parent(from).map_err(|error| failed(from, error))?;
        self.change(to, |folder, name| {
            renameat_with(&source, old, folder, name, flags)
        })
    }

    fn change<T>(
        &self,
        path: &Path,
        change: impl FnOnce(&OwnedFd, &OsStr) -> Result<T, Errno>,
    ) -> Result<T, Failed> {
        let (folder, name) = self.parent(path).map_err(|error| failed(path, error))?;
        (self.pace)()
            .and_then(|()| change(&folder, name))
            .map_err(|error| failed(path, error))
    }

    /// Everything that was done is on disk: one call, however many files it were.
    pub(super) fn sync(&self) -> Result<(), Failed> {
        (self.pace)()
            .and_then(|()| syncfs(&self.folder))
            .map_err(|error| failed(Path::new("."), error))
    }
}

pub(super) fn failed(path: &Path, error: Errno) -> Failed {
    Failed {
        path: path.to_owned(),
        error,
    }
}
