//! A folder held open, with reads and changes below it that follow no symbolic link, not even one
//! that is swapped in meanwhile.
//!
//! Every path is resolved by the system, from the open folder, and refused if any part of it is a
//! link or leads out. Every call that changes something calls the [`Pace`] first, so that a test
//! can simulate a crash, or a full disk, before any of them.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::{OsStrExt as _, OsStringExt as _},
    },
    path::{Component, Path, PathBuf},
};

use gyrus_contract::Digest;
use rustix::{
    fs::{
        AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, chmodat, fstat,
        mkdirat, openat, openat2, renameat_with, statat, syncfs, unlinkat,
    },
    io::Errno,
    path::Arg,
};

/// Function called before each change of the disk; its error simulates one of the system.
pub type Pace<'a> = &'a (dyn Fn() -> Result<(), Errno> + Sync);

/// Function that lets every step pass at once, as on a real disk.
pub(crate) const AT_ONCE: Pace<'static> = &|| Ok(());

/// Maximum bytes of a path that the system accepts at once.
const MAX_PATH: usize = 4_095;

/// The error of a system call, with the path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}`: {error}", path.display())]
pub struct RootError {
    /// Path below the folder, or the folder itself.
    pub path: PathBuf,
    /// Error of the operating system.
    pub error: Errno,
}

impl From<RootError> for io::Error {
    fn from(failed: RootError) -> Self {
        failed.error.into()
    }
}

/// A folder held open. All paths are below it; the empty one is the folder itself.
pub struct RootFolder<'a> {
    /// Descriptor opened as a path only.
    folder: OwnedFd,
    pace: Pace<'a>,
}

impl RootFolder<'static> {
    /// Opens a folder, following links in its own path.
    ///
    /// # Errors
    /// When it is missing, not a folder, or out of reach.
    pub fn open(path: &Path) -> Result<Self, RootError> {
        Self::with_pace(path, AT_ONCE)
    }
}

impl<'a> RootFolder<'a> {
    /// Does the same as [`RootFolder::open`]; `pace` is called before each change.
    ///
    /// # Errors
    /// Those of [`RootFolder::open`].
    pub fn with_pace(path: &Path, pace: Pace<'a>) -> Result<Self, RootError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(CWD, path, flags, Mode::empty()) {
            Ok(folder) => Ok(Self { folder, pace }),
            Err(error) => Err(failed(path, error)),
        }
    }

    /// Opens the file at a path, of any length.
    ///
    /// # Errors
    /// The system's; [`Errno::LOOP`] for a symbolic link in any part, [`Errno::XDEV`] for a way out.
    pub fn open_at(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut rest = match path.as_os_str().as_bytes() {
            b"" => b".",
            path => path,
        };
        let mut above = None;
        while rest.len() > MAX_PATH {
            let slash = rest[..MAX_PATH].iter().rposition(|byte| *byte == b'/');
            let slash = slash.ok_or(Errno::NAMETOOLONG)?;
            let from = above.as_ref().unwrap_or(&self.folder);
            let folder = beneath(from, &rest[..slash], OFlags::PATH | OFlags::DIRECTORY)?;
            above = Some(folder);
            rest = &rest[slash + 1..];
        }
        beneath(above.as_ref().unwrap_or(&self.folder), rest, flags)
    }

    /// Returns the folder of a path, opened as a path only, and the path's last part.
    ///
    /// # Errors
    /// Those of [`RootFolder::open_at`]; [`Errno::INVAL`] for a path without a last part.
    pub fn parent<'p>(&self, path: &'p Path) -> Result<(OwnedFd, &'p OsStr), Errno> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let above = path.parent().unwrap_or(Path::new(""));
        let folder = self.open_at(above, OFlags::PATH | OFlags::DIRECTORY)?;
        Ok((folder, name))
    }

    /// Does the same as [`RootFolder::parent`], and creates missing folders, all of them or none.
    ///
    /// # Errors
    /// Those of [`RootFolder::parent`].
    pub fn make_parent<'p>(&self, path: &'p Path) -> Result<Parent<'p>, Errno> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let mut parent = Parent {
            folder: self.folder.try_clone().map_err(|_| Errno::MFILE)?,
            name,
            made: Vec::new(),
        };
        for component in path.parent().into_iter().flat_map(Path::components) {
            let descended = match component {
                Component::Normal(step) => parent.descend(step, self.pace),
                // Cannot be in a resolved path.
                _ => Err(Errno::INVAL),
            };
            if let Err(error) = descended {
                parent.undo();
                return Err(error);
            }
        }
        Ok(parent)
    }

    /// Returns the open ancestors of `path` from this folder down, each with the rest of the path
    /// below it; fewer if one cannot be opened.
    pub fn folders_above(&self, path: &Path) -> Vec<(OwnedFd, PathBuf)> {
        let mut folders = Vec::new();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut components = path.components();
        let mut opened = openat(&self.folder, ".", flags, Mode::empty());
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

    /// Returns the metadata of a path, links not followed; `None` if it does not exist.
    ///
    /// # Errors
    /// When the system call fails otherwise.
    pub fn stat(&self, path: &Path) -> Result<Option<Stat>, RootError> {
        let looked = self
            .parent(path)
            .and_then(|(folder, name)| statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW));
        match looked {
            Ok(stat) => Ok(Some(stat)),
            // A path below a file does not exist either.
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(failed(path, error)),
        }
    }

    /// Returns the content of a regular file, and its metadata when it was opened.
    ///
    /// # Errors
    /// When it is missing, behind a link, or cannot be read.
    pub fn read(&self, path: &Path) -> Result<(Vec<u8>, Stat), RootError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self
            .open_at(path, flags)
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

    /// Returns the digest of a file; `None` if it does not exist.
    pub(crate) fn digest(&self, path: &Path) -> Result<Option<Digest>, RootError> {
        match self.read(path) {
            Ok((content, _)) => Ok(Some(Digest::of(&content))),
            Err(RootError {
                error: Errno::NOENT | Errno::NOTDIR,
                ..
            }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns an open folder, for locking, listing and syncing it.
    pub(crate) fn folder(&self, path: &Path) -> Result<OwnedFd, RootError> {
        self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(|error| failed(path, error))
    }

    pub(crate) fn names(&self, path: &Path) -> Result<Vec<OsString>, RootError> {
        let names = names(&self.folder(path)?).map_err(|error| failed(path, error))?;
        names
            .map(|name| name.map(OsString::from_vec))
            .collect::<Result<_, _>>()
            .map_err(|error| failed(path, error))
    }

    pub(crate) fn create(&self, path: &Path, mode: Mode) -> Result<File, RootError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        self.change(path, |folder, name| {
            openat(folder, name, flags | OFlags::CLOEXEC, mode).map(File::from)
        })
    }

    /// Runs a step that changes a file which is already open.
    pub(crate) fn fill(
        &self,
        path: &Path,
        step: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), RootError> {
        (self.pace)()
            .and_then(|()| step())
            .map_err(|error| failed(path, error))
    }

    pub(crate) fn make_folder(&self, path: &Path, mode: Mode) -> Result<(), RootError> {
        self.change(path, |folder, name| mkdirat(folder, name, mode))
    }

    pub(crate) fn set_mode(&self, path: &Path, mode: Mode) -> Result<(), RootError> {
        self.change(path, |folder, name| {
            chmodat(folder, name, mode, AtFlags::empty())
        })
    }

    /// Removes an empty folder.
    pub(crate) fn remove_folder(&self, path: &Path) -> Result<(), RootError> {
        self.change(path, |folder, name| {
            unlinkat(folder, name, AtFlags::REMOVEDIR)
        })
    }

    pub(crate) fn remove_file(&self, path: &Path) -> Result<(), RootError> {
        self.change(path, |folder, name| {
            unlinkat(folder, name, AtFlags::empty())
        })
    }

    /// Renames to an unused name.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), RootError> {
        self.swing(from, to, RenameFlags::NOREPLACE)
    }

    /// Exchanges two names, in one step.
    pub(crate) fn exchange(&self, one: &Path, other: &Path) -> Result<(), RootError> {
        self.swing(one, other, RenameFlags::EXCHANGE)
    }

    fn swing(&self, from: &Path, to: &Path, flags: RenameFlags) -> Result<(), RootError> {
        let (source, old) = self.parent(from).map_err(|error| failed(from, error))?;
        self.change(to, |folder, name| {
            renameat_with(&source, old, folder, name, flags)
        })
    }

    fn change<T>(
        &self,
        path: &Path,
        change: impl FnOnce(&OwnedFd, &OsStr) -> Result<T, Errno>,
    ) -> Result<T, RootError> {
        let (folder, name) = self.parent(path).map_err(|error| failed(path, error))?;
        (self.pace)()
            .and_then(|()| change(&folder, name))
            .map_err(|error| failed(path, error))
    }

    /// Syncs all changes to disk, with one call for any number of files.
    pub(crate) fn sync(&self) -> Result<(), RootError> {
        let folder = self.folder(Path::new("."))?;
        (self.pace)()
            .and_then(|()| syncfs(&folder))
            .map_err(|error| failed(Path::new("."), error))
    }
}

pub(crate) fn failed(path: &Path, error: Errno) -> RootError {
    RootError {
        path: path.to_owned(),
        error,
    }
}

fn beneath(folder: &OwnedFd, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(
        folder,
        path,
        flags | OFlags::CLOEXEC,
        Mode::empty(),
        resolve,
    )
}

/// An open folder, possibly just created, and a name in it.
pub struct Parent<'p> {
    /// The folder, opened as a path only.
    pub folder: OwnedFd,
    /// Last part of the path.
    pub name: &'p OsStr,
    /// Folders that were created, each by the folder above and its name.
    made: Vec<(OwnedFd, &'p OsStr)>,
}

impl<'p> From<(OwnedFd, &'p OsStr)> for Parent<'p> {
    fn from((folder, name): (OwnedFd, &'p OsStr)) -> Self {
        let made = Vec::new();
        Self { folder, name, made }
    }
}

impl<'p> Parent<'p> {
    fn descend(&mut self, step: &'p OsStr, pace: Pace<'_>) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match openat(&self.folder, step, flags, Mode::empty()) {
            Err(Errno::NOENT) => {
                pace()?;
                match mkdirat(&self.folder, step, Mode::from_raw_mode(0o777)) {
                    Ok(()) => {
                        let above = self.folder.try_clone().map_err(|_| Errno::MFILE)?;
                        self.made.push((above, step));
                    }
                    // Another process made it just now.
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

    /// Removes those of the created folders that are empty.
    pub fn undo(self) {
        for (above, name) in self.made.into_iter().rev() {
            // In use by another process now, so it stays.
            let _ = unlinkat(above, name, AtFlags::REMOVEDIR);
        }
    }
}

/// Returns the names in a folder, without `.` and `..`, in the order of the file system.
pub(crate) fn names(
    folder: &OwnedFd,
) -> Result<impl Iterator<Item = Result<Vec<u8>, Errno>> + use<>, Errno> {
    let names = Dir::read_from(folder)?.filter_map(|entry| match entry {
        Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => None,
        Ok(entry) => Some(Ok(entry.file_name().to_bytes().to_vec())),
        Err(error) => Some(Err(error)),
    });
    Ok(names)
}

/// Returns the metadata of a name in a folder, links not followed.
pub(crate) fn stat(folder: impl AsFd, name: impl Arg) -> Result<Stat, Errno> {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// Removes a folder with its contents, however deep it is. Inner folders are moved up to the top
/// before they are emptied, so no more than two are open at once.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    let top = RootFolder::open(path)?;
    let mut number = 0_u64;
    loop {
        let mut is_empty = true;
        for name in top.names(Path::new(""))? {
            is_empty = false;
            let name = Path::new(&name);
            match top.remove_file(name) {
                Err(RootError {
                    error: Errno::ISDIR | Errno::PERM,
                    ..
                }) => empty_into(&top, name, &mut number)?,
                removed => removed?,
            }
        }
        if is_empty {
            return std::fs::remove_dir(path);
        }
    }
}

/// Removes a folder of `top` after moving its subfolders to `top`.
fn empty_into(top: &RootFolder<'_>, name: &Path, number: &mut u64) -> io::Result<()> {
    top.set_mode(name, Mode::RWXU)?;
    for inner in top.names(name)? {
        let inner = name.join(inner);
        match top.remove_file(&inner) {
            Err(RootError {
                error: Errno::ISDIR | Errno::PERM,
                ..
            }) => {
                // A folder can be moved only by who may write to it.
                top.set_mode(&inner, Mode::RWXU)?;
                loop {
                    *number += 1;
                    match top.rename(&inner, Path::new(&format!("removed-{number}"))) {
                        Err(RootError {
                            error: Errno::EXIST,
                            ..
                        }) => {}
                        moved => break moved?,
                    }
                }
            }
            removed => removed?,
        }
    }
    Ok(top.remove_folder(name)?)
}

/// Opens a regular file of a folder for reading. `None` if the name stands for something else by
/// now; a pipe does not block.
pub(crate) fn open_file(folder: impl AsFd, name: impl Arg) -> Result<Option<File>, Errno> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat(folder, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::LOOP) => return Ok(None),
        Err(error) => return Err(error),
    };
    let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
    Ok((kind == FileType::RegularFile).then_some(file))
}

/// Reads at most `limit + 1` bytes of a file.
pub(crate) fn read(file: &File, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn no_link_is_followed_in_any_part() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("real/deep")).unwrap();
        fs::write(at("real/deep/file"), "text").unwrap();
        symlink("real", at("link")).unwrap();
        symlink("file", at("real/deep/alias")).unwrap();
        let root = RootFolder::open(folder.path()).unwrap();
        let open = |path: &str| root.open_at(Path::new(path), OFlags::RDONLY).map(drop);
        for (path, expected) in [
            ("real/deep/file", Ok(())),
            ("", Ok(())),
            ("link/deep/file", Err(Errno::LOOP)),
            ("real/deep/alias", Err(Errno::LOOP)),
            ("../elsewhere", Err(Errno::XDEV)),
            ("/etc", Err(Errno::XDEV)),
        ] {
            assert_eq!(open(path), expected, "{path}");
        }
        for made in ["link/new/file", "real/../link/file"] {
            assert!(root.make_parent(Path::new(made)).is_err(), "{made}");
        }
        assert!(!at("real/new").exists());
    }

    #[test]
    fn a_path_of_any_length_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let root = RootFolder::open(folder.path()).unwrap();
        let part = "x".repeat(200);
        let deep = vec![part.as_str(); 60].join("/") + "/file";
        let parent = root.make_parent(Path::new(&deep)).unwrap();
        let flags = OFlags::WRONLY | OFlags::CREATE;
        openat(&parent.folder, parent.name, flags, Mode::RUSR).unwrap();
        let (content, _) = root.read(Path::new(&deep)).unwrap();
        assert_eq!(content, b"");
        // A link in the middle is met by the second of several calls.
        let beside = Path::new(&deep[..200 * 30 + 29]);
        let (above, name) = root.parent(beside).unwrap();
        renameat_with(&above, name, &above, "moved", RenameFlags::NOREPLACE).unwrap();
        rustix::fs::symlinkat("moved", &above, name).unwrap();
        assert_eq!(root.read(Path::new(&deep)).unwrap_err().error, Errno::LOOP);
    }
}
