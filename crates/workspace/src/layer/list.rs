//! Lists the changes of a layer by comparing it with the folder below.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::File,
    io::Read,
    ops::Bound,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use gyrus_contract::{ChangedPath, PathChange};
use rustix::{
    fs::{FileType, Mode, OFlags, Stat, getxattr},
    io::Errno,
};

use super::{
    CallLayer, LayerError, LayerStep,
    error::{MAX_LISTED, MAX_PATH_BYTES},
    stamp::stamp,
};
use crate::root::{RootError, RootFolder, failed};

/// Attributes that mark a folder as hiding the lower one, as set by root and by ordinary users.
const OPAQUE: [&str; 2] = ["trusted.overlay.opaque", "user.overlay.opaque"];

/// Number of bytes compared at once.
const PIECE: usize = 64 << 10;

/// The changes in the layer of a command.
#[derive(Debug, Default)]
pub struct LayerChanges {
    /// Every changed path, sorted, including all paths in new and deleted folders.
    pub changed: Vec<ChangedPath>,
    pub(super) steps: Vec<LayerStep>,
}

impl LayerChanges {
    /// Whether the layer contains no change.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.changed.is_empty()
    }
}

impl CallLayer {
    /// Lists the changes; no command may run in the layer meanwhile.
    ///
    /// # Errors
    /// When something cannot be read, or there is too much.
    pub fn list(&self) -> Result<LayerChanges, LayerError> {
        let (upper, lower) = self.roots()?;
        let mut walk = LayerWalk {
            upper,
            lower,
            listed: LayerChanges::default(),
        };
        let mut folders = vec![(PathBuf::new(), false)];
        while let Some((folder, hides)) = folders.pop() {
            walk.folder(&folder, hides, &mut folders)?;
        }
        let mut listed = walk.listed;
        listed
            .changed
            .sort_by(|one, other| one.path.cmp(&other.path));
        Ok(listed)
    }

    /// Removes paths from the layer that may not be moved into the folder. Of a deleted folder that holds
    /// one, everything else is deleted; a replaced one stays as it was.
    ///
    /// # Errors
    /// When something cannot be read or removed.
    pub fn leave_out(&self, listed: &mut LayerChanges, paths: &[&Path]) -> Result<(), LayerError> {
        let (upper, lower) = self.roots()?;
        let paths: BTreeSet<&Path> = paths.iter().copied().collect();
        let is_left = |path: &Path| path.ancestors().any(|above| paths.contains(above));
        let holds_one = |path: &Path| {
            let mut after = paths.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
            after.next().is_some_and(|one| one.starts_with(path))
        };
        let mut split = Vec::new();
        listed.steps.retain(|step| {
            let path = step.path();
            let is_whole = match step {
                LayerStep::Take { .. } | LayerStep::Swap { .. } => !holds_one(path),
                LayerStep::Put { .. } | LayerStep::Mode { .. } => true,
            };
            if !is_whole && !is_left(path) && matches!(step, LayerStep::Take { .. }) {
                split.push(path.to_owned());
            }
            is_whole && !is_left(path)
        });
        while let Some(folder) = split.pop() {
            // In place of the mark that hides it stands a folder that takes what is deleted.
            if upper.stat(&folder)?.is_some() {
                upper.remove_file(&folder)?;
            }
            upper.make_folder(&folder, Mode::RWXU)?;
            for name in lower.names(&folder)? {
                let path = folder.join(name);
                if is_left(&path) {
                    continue;
                }
                if holds_one(&path) {
                    split.push(path);
                } else {
                    listed.steps.extend(deletion(&lower, path)?);
                }
            }
        }
        let is_new = |path: &Path| {
            let mut steps = listed.steps.iter();
            steps.any(
                |step| matches!(step, LayerStep::Put { path: new, .. } if path.starts_with(new)),
            )
        };
        // The contents of a folder before the folder itself.
        for path in paths.iter().rev().filter(|path| is_new(path)) {
            match upper.stat(path)? {
                None => {}
                Some(stat) if is_folder(&stat) => {
                    // Succeeds only if the folder is empty.
                    let _ = upper.remove_folder(path);
                }
                Some(_) => upper.remove_file(path)?,
            }
        }
        Ok(())
    }
}

/// Returns the step that deletes an entry of the folder, if it is there.
fn deletion(lower: &RootFolder<'_>, path: PathBuf) -> Result<Option<LayerStep>, LayerError> {
    let inode = lower.stat(&path)?.map(|old| old.st_ino);
    let step = inode.zip(stamp(lower, &path)?);
    Ok(step.map(|(inode, before)| LayerStep::Take {
        path,
        inode,
        before,
    }))
}

struct LayerWalk {
    upper: RootFolder<'static>,
    lower: RootFolder<'static>,
    listed: LayerChanges,
}

impl LayerWalk {
    /// Compares a folder that exists on both sides. With `hides`, entries that only the lower one
    /// has are deleted.
    fn folder(
        &mut self,
        folder: &Path,
        hides: bool,
        folders: &mut Vec<(PathBuf, bool)>,
    ) -> Result<(), LayerError> {
        let mut seen: BTreeSet<OsString> = BTreeSet::new();
        for name in readable_names(&self.upper, folder)? {
            let path = folder.join(&name);
            let Some(new) = self.upper.stat(&path)? else {
                continue;
            };
            let old = self.lower.stat(&path)?;
            self.thing(&path, &new, old.as_ref(), folders)?;
            seen.insert(name);
        }
        if hides {
            for name in self.lower.names(folder)? {
                let path = folder.join(&name);
                if !seen.contains(&name)
                    && let Some(old) = self.lower.stat(&path)?
                {
                    self.take(path, &old)?;
                }
            }
        }
        Ok(())
    }

    fn thing(
        &mut self,
        path: &Path,
        new: &Stat,
        old: Option<&Stat>,
        folders: &mut Vec<(PathBuf, bool)>,
    ) -> Result<(), LayerError> {
        let kind = FileType::from_raw_mode(new.st_mode);
        let own = path.to_owned();
        let inode = new.st_ino;
        match (kind, old) {
            (FileType::CharacterDevice, Some(old)) if new.st_rdev == 0 => {
                return self.take(own, old);
            }
            (FileType::CharacterDevice, None) if new.st_rdev == 0 => {}
            (FileType::Directory, Some(old)) if is_folder(old) => {
                if path.as_os_str().len() > MAX_PATH_BYTES {
                    return Err(LayerError::TooDeep);
                }
                let (before, after) = (old.st_mode & 0o7777, new.st_mode & 0o7777);
                if before != after {
                    self.say(path, PathChange::Changed)?;
                    self.listed.steps.push(LayerStep::Mode {
                        path: own.clone(),
                        before,
                        after,
                    });
                }
                folders.push((own, self.is_opaque(path)?));
            }
            (FileType::RegularFile | FileType::Symlink | FileType::Directory, old) => {
                if let Some(old) = old {
                    if self.is_same(path, new, old)? {
                        return Ok(());
                    }
                    self.say(path, PathChange::Changed)?;
                    self.say_inner(false, path, old, PathChange::Deleted)?;
                } else {
                    self.say(path, PathChange::Created)?;
                }
                self.say_inner(true, path, new, PathChange::Created)?;
                let before = stamp(&self.lower, path)?;
                self.listed.steps.push(match before {
                    Some(before) => LayerStep::Swap {
                        path: own,
                        inode,
                        before,
                    },
                    None => LayerStep::Put { path: own, inode },
                });
            }
            // A pipe, a socket, a device: it stays in the layer.
            _ => self.say(path, PathChange::Special)?,
        }
        Ok(())
    }

    fn take(&mut self, path: PathBuf, old: &Stat) -> Result<(), LayerError> {
        self.say(&path, PathChange::Deleted)?;
        self.say_inner(false, &path, old, PathChange::Deleted)?;
        self.listed.steps.extend(deletion(&self.lower, path)?);
        Ok(())
    }

    fn say(&mut self, path: &Path, change: PathChange) -> Result<(), LayerError> {
        if self.listed.changed.len() >= MAX_LISTED {
            return Err(LayerError::TooMany);
        }
        if path.as_os_str().len() > MAX_PATH_BYTES {
            return Err(LayerError::TooDeep);
        }
        self.listed.changed.push(ChangedPath {
            path: path.to_owned(),
            change,
        });
        Ok(())
    }

    /// Reports the change of every entry in a folder of the upper or the lower layer. Whiteouts and
    /// pipes in a new folder are reported as special files.
    fn say_inner(
        &mut self,
        in_upper: bool,
        path: &Path,
        stat: &Stat,
        change: PathChange,
    ) -> Result<(), LayerError> {
        let mut folders = if is_folder(stat) {
            vec![path.to_owned()]
        } else {
            Vec::new()
        };
        while let Some(folder) = folders.pop() {
            let root = if in_upper { &self.upper } else { &self.lower };
            let names = match readable_names(root, &folder) {
                Err(RootError {
                    error: Errno::ACCESS,
                    ..
                }) if !in_upper => continue,
                names => names?,
            };
            let mut found = Vec::with_capacity(names.len());
            for name in names {
                let inner = folder.join(name);
                if let Some(stat) = root.stat(&inner)? {
                    found.push((inner, stat));
                }
            }
            for (inner, stat) in found {
                let kind = FileType::from_raw_mode(stat.st_mode);
                let is_plain = matches!(
                    kind,
                    FileType::RegularFile | FileType::Symlink | FileType::Directory
                );
                let change = if is_plain {
                    change
                } else {
                    PathChange::Special
                };
                self.say(&inner, change)?;
                if kind == FileType::Directory {
                    folders.push(inner);
                }
            }
        }
        Ok(())
    }

    fn is_opaque(&self, path: &Path) -> Result<bool, RootError> {
        let folder = self
            .upper
            .open_at(path, OFlags::PATH)
            .map_err(|error| failed(path, error))?;
        let place = by_number(&folder);
        let mut value = [0; 8];
        let mut marks = OPAQUE.iter();
        Ok(marks.any(|mark| {
            let length = getxattr(place.as_path(), *mark, &mut value[..]);
            matches!(length, Ok(1)) && value[0] == b'y'
        }))
    }

    /// Whether a file that was opened for writing is still unchanged. Times can be set, so contents
    /// are compared.
    fn is_same(&self, path: &Path, new: &Stat, old: &Stat) -> Result<bool, RootError> {
        if new.st_mode != old.st_mode || new.st_size != old.st_size {
            return Ok(false);
        }
        match FileType::from_raw_mode(new.st_mode) {
            FileType::RegularFile => {
                let same = || {
                    let mut one = open(&self.upper, path)?;
                    let mut other = open(&self.lower, path)?;
                    same_content(&mut one, &mut other)
                };
                // A file that cannot be read counts as changed.
                Ok(same().unwrap_or(false))
            }
            FileType::Symlink => {
                let target = |root: &RootFolder<'_>| {
                    let (folder, name) = root.parent(path)?;
                    rustix::fs::readlinkat(folder, name, Vec::new())
                };
                Ok(matches!(
                    (target(&self.upper), target(&self.lower)),
                    (Ok(one), Ok(other)) if one == other
                ))
            }
            _ => Ok(false),
        }
    }
}

/// Returns the names in one of our own folders, even if its mode forbids it.
fn readable_names(root: &RootFolder<'_>, folder: &Path) -> Result<Vec<OsString>, RootError> {
    match root.names(folder) {
        Err(RootError {
            error: Errno::ACCESS,
            ..
        }) => {
            let place = root
                .open_at(folder, OFlags::PATH)
                .map_err(|error| failed(folder, error))?;
            let mode = rustix::fs::fstat(&place).map_err(|error| failed(folder, error))?;
            let mode = rustix::fs::Mode::from_raw_mode(mode.st_mode & 0o7777 | 0o700);
            rustix::fs::chmod(by_number(&place).as_path(), mode)
                .map_err(|error| failed(folder, error))?;
            root.names(folder)
        }
        names => names,
    }
}

fn open(root: &RootFolder<'_>, path: &Path) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    root.open_at(path, flags).map(File::from)
}

fn same_content(one: &mut File, other: &mut File) -> Result<bool, Errno> {
    let (mut first, mut second) = (vec![0; PIECE], vec![0; PIECE]);
    let wrong = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    loop {
        let length = fill(one, &mut first).map_err(wrong)?;
        if length != fill(other, &mut second).map_err(wrong)? || first[..length] != second[..length]
        {
            return Ok(false);
        }
        if length == 0 {
            return Ok(true);
        }
    }
}

fn fill(file: &mut File, piece: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < piece.len() {
        match file.read(&mut piece[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// Returns a path that leads to an open file, even if it was renamed.
pub(super) fn by_number(opened: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", opened.as_raw_fd()).into()
}
