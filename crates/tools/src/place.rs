//! The only way to files: a place that the gate resolved, opened so that it is still that place.
//!
//! Between the verdict and the opening, anything may have been swapped for a symbolic link. A
//! resolved path holds no links, so none is followed here, in no component: the system refuses
//! the path instead. Everything is opened relative to a descriptor of the workspace, or of `/`
//! for a place outside, and cannot leave it.

use std::{
    ffi::OsStr,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use gyrus_contract::{ResolvedCall, ResolvedPath};
use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, mkdirat, openat, openat2,
        unlinkat,
    },
    io::Errno,
};

/// Where a call may reach.
pub(crate) struct Place<'a> {
    path: &'a ResolvedPath,
    root: OwnedFd,
    /// Below `root`; empty for `root` itself.
    below: &'a Path,
}

/// Why a place cannot be used, in words for a model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceError {
    #[error("the path was not looked up before the call; the argument must be called `path`")]
    Unresolved,
    #[error("`{path}` does not exist")]
    Missing { path: String },
    #[error(
        "the folder of `{path}` does not exist; make it first, outside the workspace it is not made"
    )]
    NoFolder { path: String },
    #[error("`{path}` is {kind}")]
    Special { path: String, kind: &'static str },
    #[error("`{path}` was replaced by a symbolic link after it was checked; look at it again")]
    Swapped { path: String },
    #[error("`{path}`: {error}{}", hint(*.error))]
    Io { path: String, error: Errno },
}

fn hint(error: Errno) -> &'static str {
    match error {
        Errno::NOSPC | Errno::DQUOT => "; nothing was changed, make room first",
        Errno::NAMETOOLONG => "; a name may have at most 255 bytes",
        Errno::ROFS => "; nothing can be written there",
        _ => "",
    }
}

impl<'a> Place<'a> {
    /// The place that the call's argument `path` was resolved to.
    pub(crate) fn of(call: &'a ResolvedCall, workspace: &Path) -> Result<Self, PlaceError> {
        let path = call.paths.get("path").ok_or(PlaceError::Unresolved)?;
        let (root, below) = match &path.in_workspace {
            Some(below) => (workspace, below.as_path()),
            None => (
                Path::new("/"),
                path.real.strip_prefix("/").unwrap_or(&path.real),
            ),
        };
        let root = openat(
            CWD,
            root,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|error| PlaceError::Io {
            path: root.display().to_string(),
            error,
        })?;
        Ok(Self { path, root, below })
    }

    /// As the model wrote it.
    pub(crate) fn given(&self) -> &str {
        &self.path.given
    }

    /// Below the workspace; `None` when it is outside.
    pub(crate) fn in_workspace(&self) -> Option<&Path> {
        self.path.in_workspace.as_deref()
    }

    /// The error for a failed call to the system.
    pub(crate) fn error(&self, error: Errno) -> PlaceError {
        let path = self.given().to_owned();
        match error {
            Errno::NOENT => PlaceError::Missing { path },
            // What `open_beneath` forbids: a link, or a way out.
            Errno::LOOP | Errno::XDEV => PlaceError::Swapped { path },
            error => PlaceError::Io { path, error },
        }
    }

    /// Opens the file or folder for reading. Anything else is an error, and is not even opened:
    /// for a pipe or a device, that alone may hang or do something.
    pub(crate) fn open(&self) -> Result<(OwnedFd, Stat), PlaceError> {
        let looked_at = self
            .open_beneath(OFlags::PATH)
            .map_err(|error| self.error(error))?;
        self.ordinary(&looked_at)?;
        // Swapped in between, a pipe does not hang us.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = self
            .open_beneath(flags)
            .map_err(|error| self.error(error))?;
        let stat = self.ordinary(&opened)?;
        Ok((opened, stat))
    }

    fn ordinary(&self, file: &OwnedFd) -> Result<Stat, PlaceError> {
        let stat = fstat(file).map_err(|error| self.error(error))?;
        match special(&stat) {
            None => Ok(stat),
            Some(kind) => Err(PlaceError::Special {
                path: self.given().to_owned(),
                kind,
            }),
        }
    }

    fn open_beneath(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        let below = if self.below.as_os_str().is_empty() {
            Path::new(".")
        } else {
            self.below
        };
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        openat2(
            &self.root,
            below,
            flags | OFlags::CLOEXEC,
            Mode::empty(),
            resolve,
        )
    }

    /// The folders from the workspace down to the place, which is not among them, each with the
    /// path of the place below it. None for a place outside the workspace: what is above it was
    /// not judged.
    pub(crate) fn folders_above(&self) -> Vec<(OwnedFd, PathBuf)> {
        let mut folders = Vec::new();
        if self.in_workspace().is_none() {
            return folders;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut components = self.below.components();
        let mut opened = openat(&self.root, ".", flags, Mode::empty());
        while let Ok(folder) = opened {
            let below = components.as_path().to_owned();
            let Some(Component::Normal(step)) = components.next() else {
                break;
            };
            opened = openat(&folder, step, flags, Mode::empty());
            folders.push((folder, below));
        }
        folders
    }

    /// Opens the folder that the place is in. In the workspace, missing folders are made; they
    /// are removed again with [`Parent::undo`].
    pub(crate) fn parent(&self) -> Result<Parent<'a>, PlaceError> {
        let Some(name) = self.below.file_name() else {
            let path = self.given().to_owned();
            return Err(PlaceError::Special {
                path,
                kind: "the top folder, not a file",
            });
        };
        let folder = self
            .root
            .try_clone()
            .map_err(|_| self.error(Errno::MFILE))?;
        let mut parent = Parent {
            folder,
            name,
            made: Vec::new(),
        };
        for component in self.below.parent().into_iter().flat_map(Path::components) {
            let step = match component {
                Component::Normal(step) => step,
                // Cannot be in a resolved path.
                _ => return Err(self.error(Errno::INVAL)),
            };
            if let Err(error) = parent.descend(step, self.in_workspace().is_some()) {
                parent.undo();
                return Err(match error {
                    Errno::NOENT => PlaceError::NoFolder {
                        path: self.given().to_owned(),
                    },
                    error => self.error(error),
                });
            }
        }
        Ok(parent)
    }
}

/// What a file is if it is neither a file nor a folder.
pub(crate) fn special(stat: &Stat) -> Option<&'static str> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile | FileType::Directory => None,
        FileType::Symlink => Some("a symbolic link, not a file"),
        FileType::Fifo => Some("a named pipe, not a file"),
        FileType::Socket => Some("a socket, not a file"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("a device, not a file"),
        FileType::Unknown => Some("of an unknown kind, not a file"),
    }
}

/// A folder, opened, and a name in it.
pub(crate) struct Parent<'a> {
    /// Opened as a path only.
    pub(crate) folder: OwnedFd,
    /// One component.
    pub(crate) name: &'a OsStr,
    /// Folders that did not exist before: the folder above, and the name.
    made: Vec<(OwnedFd, &'a OsStr)>,
}

impl<'a> Parent<'a> {
    fn descend(&mut self, step: &'a OsStr, may_make: bool) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match openat(&self.folder, step, flags, Mode::empty()) {
            Err(Errno::NOENT) if may_make => {
                match mkdirat(&self.folder, step, Mode::from_raw_mode(0o777)) {
                    Ok(()) => {
                        let above = self.folder.try_clone().map_err(|_| Errno::MFILE)?;
                        self.made.push((above, step));
                    }
                    // Somebody else made it just now.
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(error),
                }
                openat(&self.folder, step, flags, Mode::empty())?
            }
            opened => opened?,
        };
        self.folder = opened;
        Ok(())
    }

    /// Removes the folders that were made on the way, as far as they are empty.
    pub(crate) fn undo(self) {
        for (above, name) in self.made.into_iter().rev() {
            // In use by somebody else by now: then it is to stay.
            let _ = unlinkat(above, name, AtFlags::REMOVEDIR);
        }
    }
}
