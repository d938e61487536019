//! Carries out an undo: copies first, then one path after the other.

use std::{
    ffi::OsStr,
    fmt,
    fs::{self, DirBuilder, File},
    io::{self, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, OpenOptionsExt, symlink},
    },
    path::{Path, PathBuf},
};

use gyrus_contract::{BlobId, Digest};
use rustix::{
    fd::AsFd,
    fs::{AtFlags, Mode, OFlags, RenameFlags},
    io::Errno,
};

use super::{
    UndoAction, UndoChange, UndoError, UndoPlan, UndoRefusal, look,
    plan::{NEW_FOLDER, is_as},
};
use crate::{
    root::{self, RootFolder},
    snapshot::{manifest::SnapshotEntry, name, pack::OpenPack},
};

/// Function that reads a blob.
type Load<'a, E> = &'a dyn Fn(&BlobId) -> Result<Vec<u8>, E>;

/// Result of an undo.
#[derive(Debug, Default)]
pub struct UndoResult {
    /// The undone changes, by path.
    pub undone: Vec<UndoChange>,
    /// The paths that were not undone: as planned, and those that changed or failed since.
    pub refused: Vec<UndoRefusal>,
}

impl UndoPlan {
    /// Carries out the plan; `load` reads a blob. Entries that are removed or overwritten are
    /// copied below `trash`, a new folder, before anything changes. `step` is called after every
    /// change on disk: for tests of crashes.
    ///
    /// # Errors
    /// Before anything was changed: content that cannot be read, a trash that cannot be written.
    /// Later failures are among the refused.
    pub fn apply<E: fmt::Display>(
        &self,
        load: &dyn Fn(&BlobId) -> Result<Vec<u8>, E>,
        trash: &Path,
        step: &mut dyn FnMut(),
    ) -> Result<UndoResult, UndoError<E>> {
        let root = self.root()?;
        self.check_contents(load)?;
        self.sweep(&root);
        let mut at_work = AtWork {
            plan: self,
            load,
            opened: OpenPack::default(),
            root,
            refused: self.refused.clone(),
            step,
        };
        at_work.keep_copies(trash)?;
        let undone = at_work.change();
        // Reported results must survive a loss of power.
        let _ = at_work.root.sync();
        let mut refused = at_work.refused;
        refused.sort_by(|one, two| one.path.cmp(&two.path));
        Ok(UndoResult { undone, refused })
    }

    /// Removes temporary files of an interrupted undo.
    pub fn clean<E>(&self) -> Result<(), UndoError<E>> {
        self.sweep(&self.root()?);
        Ok(())
    }

    fn root<E>(&self) -> Result<RootFolder<'static>, UndoError<E>> {
        RootFolder::open(&self.workspace).map_err(|error| UndoError::Folder {
            path: self.workspace.clone(),
            source: error.into(),
        })
    }

    fn check_contents<E>(&self, load: Load<'_, E>) -> Result<(), UndoError<E>> {
        let opened = OpenPack::default();
        for change in &self.changes {
            if let Some(file @ SnapshotEntry::File { blob, .. }) =
                self.before.entries.get(&change.path)
                && change.action != UndoAction::Mode
                && let Err(source) = self.before.read(file, &opened, load)
            {
                return Err(UndoError::Content {
                    path: change.path.clone(),
                    blob: *blob,
                    source: Box::new(source),
                });
            }
        }
        Ok(())
    }

    fn sweep(&self, root: &RootFolder<'_>) {
        let differ = |path: &&String| self.before.entries.get(*path) != self.after.get(*path);
        for path in self.before.entries.keys().filter(differ) {
            let path = decoded(path);
            // Without the folder there is nothing to remove.
            if let Ok((folder, _)) = root.parent(name::path(&path)) {
                let _ = remove(folder, &beside(&path));
            }
        }
    }
}

struct AtWork<'a, E> {
    plan: &'a UndoPlan,
    load: Load<'a, E>,
    opened: OpenPack,
    root: RootFolder<'static>,
    refused: Vec<UndoRefusal>,
    step: &'a mut dyn FnMut(),
}

impl<E: fmt::Display> AtWork<'_, E> {
    /// Copies all entries that will be removed or overwritten.
    fn keep_copies(&mut self, trash: &Path) -> Result<(), UndoError<E>> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| UndoError::Folder { path, source }
        };
        private_folder(trash).map_err(failed(trash))?;
        for change in self.plan.changes.iter().filter(|change| goes(change)) {
            let path = decoded(&change.path);
            let Some(now) = is_as(&self.root, &path, self.plan.after.get(&change.path)) else {
                continue;
            };
            let to = trash.join(OsStr::from_bytes(&path));
            keep(&to, &now).map_err(failed(&to))?;
            (self.step)();
        }
        File::open(trash)
            .and_then(|trash| Ok(rustix::fs::syncfs(trash)?))
            .map_err(failed(trash))
    }

    /// Removes entries from the deepest, then creates entries from the top. Folders get their modes
    /// after their contents.
    fn change(&mut self) -> Vec<UndoChange> {
        let plan = self.plan;
        let mut undone = Vec::new();
        let (opened, shut): (Vec<&UndoChange>, Vec<&UndoChange>) = plan
            .changes
            .iter()
            .filter(|change| change.action == UndoAction::Mode)
            .partition(|change| self.is_open_folder(change));
        let gone = plan.changes.iter().rev();
        let gone = gone.filter(|change| change.action == UndoAction::Delete);
        let come = plan.changes.iter();
        let come =
            come.filter(|change| matches!(change.action, UndoAction::Restore | UndoAction::Create));
        for change in opened.into_iter().chain(gone).chain(come).chain(shut) {
            match self.one(change) {
                Ok(()) => undone.push(change.clone()),
                Err(why) => self.refused.push(UndoRefusal {
                    path: change.path.clone(),
                    why: why.to_string(),
                }),
            }
            (self.step)();
        }
        self.finish_folders(&mut undone);
        undone.sort_by(|one, two| one.path.cmp(&two.path));
        undone
    }

    /// Sets the modes of the created folders, deepest first.
    fn finish_folders(&mut self, undone: &mut Vec<UndoChange>) {
        for change in undone.clone().iter().rev() {
            let made = matches!(change.action, UndoAction::Create | UndoAction::Restore);
            let (true, Some(SnapshotEntry::Folder { mode: Some(mode) })) =
                (made, self.plan.before.entries.get(&change.path))
            else {
                continue;
            };
            if let Err(error) = self.set_folder_mode(&decoded(&change.path), *mode) {
                undone.retain(|undone| undone.path != change.path);
                self.refused.push(UndoRefusal {
                    path: change.path.clone(),
                    why: format!("it is back, but not who may enter it: {error}"),
                });
            }
            (self.step)();
        }
    }

    /// Creates a folder that can be filled before its mode is set.
    fn is_open_folder(&self, change: &UndoChange) -> bool {
        match self.plan.before.entries.get(&change.path) {
            Some(SnapshotEntry::Folder { mode: Some(mode) }) => mode & 0o300 == 0o300,
            _ => false,
        }
    }

    fn one(&mut self, change: &UndoChange) -> io::Result<()> {
        let path = decoded(&change.path);
        let (before, after) = (
            self.plan.before.entries.get(&change.path),
            self.plan.after.get(&change.path),
        );
        match (change.action, before) {
            (UndoAction::Mode, Some(SnapshotEntry::Folder { mode: Some(mode) })) => {
                self.set_folder_mode(&path, *mode)
            }
            (UndoAction::Mode, Some(wanted)) => self.set_file_mode(&path, wanted, after),
            (UndoAction::Delete, _) => {
                self.must_be_still(&path, after)?;
                let (folder, _) = self.root.parent(name::path(&path))?;
                remove(folder, last(&path))
            }
            (UndoAction::Restore, Some(wanted)) => self.replace(&path, wanted, after),
            (UndoAction::Create, Some(wanted)) => self.create(&path, wanted),
            (UndoAction::Mode | UndoAction::Restore | UndoAction::Create, None) => Ok(()),
        }
    }

    fn must_be_still(
        &self,
        path: &[u8],
        after: Option<&SnapshotEntry>,
    ) -> io::Result<look::PresentEntry> {
        is_as(&self.root, path, after)
            .filter(|now| now.is_still(&self.root, path))
            .ok_or_else(|| io::Error::other("it was changed just now"))
    }

    fn create(&mut self, path: &[u8], wanted: &SnapshotEntry) -> io::Result<()> {
        let (folder, name) = self.root.parent(name::path(path))?;
        if let SnapshotEntry::Folder { .. } = wanted {
            return Ok(rustix::fs::mkdirat(folder, name, new_folder())?);
        }
        let beside = self.make_beside(path, wanted, None)?;
        (self.step)();
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(&folder, &beside[..], &folder, name, flags) {
            // The file system cannot check it; a moment ago the path did not exist.
            Err(Errno::INVAL | Errno::NOSYS) if look::stat(&self.root, path)?.is_none() => {
                Ok(rustix::fs::renameat(&folder, &beside[..], &folder, name)?)
            }
            Err(error) => {
                let _ = remove(&folder, &beside);
                Err(error.into())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Replaces the entry that the run left. An entry that cannot be replaced in one call, such as
    /// a folder, is exchanged.
    fn replace(
        &mut self,
        path: &[u8],
        wanted: &SnapshotEntry,
        after: Option<&SnapshotEntry>,
    ) -> io::Result<()> {
        let (folder, name) = self.root.parent(name::path(path))?;
        let now = self.must_be_still(path, after)?;
        let beside = self.make_beside(path, wanted, Some(&now.entry))?;
        (self.step)();
        let is_folder = |entry: &SnapshotEntry| matches!(entry, SnapshotEntry::Folder { .. });
        let changed = if !now.is_still(&self.root, path) {
            Err(io::Error::other("it was changed just now"))
        } else if is_folder(wanted) || is_folder(&now.entry) {
            let flags = RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(&folder, &beside[..], &folder, name, flags)
                .map_err(io::Error::from)
        } else {
            rustix::fs::renameat(&folder, &beside[..], &folder, name).map_err(io::Error::from)
        };
        (self.step)();
        // Nothing is there after a rename; after an exchange, the run's entry, which has a copy, or
        // an empty folder.
        let _ = remove(&folder, &beside);
        changed
    }

    /// Creates the wanted entry under a temporary name in the same folder.
    fn make_beside(
        &self,
        path: &[u8],
        wanted: &SnapshotEntry,
        now: Option<&SnapshotEntry>,
    ) -> io::Result<Vec<u8>> {
        let (folder, _) = self.root.parent(name::path(path))?;
        let beside = beside(path);
        let _ = remove(&folder, &beside);
        match wanted {
            SnapshotEntry::Folder { .. } => {
                rustix::fs::mkdirat(&folder, &beside[..], new_folder())?
            }
            SnapshotEntry::Link { target } => {
                rustix::fs::symlinkat(&decoded(target)[..], &folder, &beside[..])?;
            }
            SnapshotEntry::File { .. } => {
                let content = self
                    .plan
                    .before
                    .read(wanted, &self.opened, self.load)
                    .map_err(|error| io::Error::other(error.to_string()))?;
                let flags = OFlags::WRONLY
                    | OFlags::CREATE
                    | OFlags::EXCL
                    | OFlags::NOFOLLOW
                    | OFlags::CLOEXEC;
                let own = Mode::RUSR | Mode::WUSR;
                let mut file = File::from(rustix::fs::openat(&folder, &beside[..], flags, own)?);
                file.write_all(&content)?;
                rustix::fs::fchmod(&file, Mode::from_raw_mode(mode_of(wanted, now)))?;
                file.sync_all()?;
            }
            SnapshotEntry::Skipped { .. } => {
                return Err(io::Error::other("its content was not kept"));
            }
        }
        Ok(beside)
    }

    fn set_folder_mode(&self, path: &[u8], mode: u32) -> io::Result<()> {
        // By its name: a folder without permissions cannot be opened.
        let (folder, name) = self.root.parent(name::path(path))?;
        let about = root::stat(&folder, name)?;
        if rustix::fs::FileType::from_raw_mode(about.st_mode) != rustix::fs::FileType::Directory {
            return Err(io::Error::other("it is no longer a folder"));
        }
        let mode = Mode::from_raw_mode(mode);
        Ok(rustix::fs::chmodat(folder, name, mode, AtFlags::empty())?)
    }

    fn set_file_mode(
        &self,
        path: &[u8],
        wanted: &SnapshotEntry,
        after: Option<&SnapshotEntry>,
    ) -> io::Result<()> {
        let now = self.must_be_still(path, after)?;
        let (folder, name) = self.root.parent(name::path(path))?;
        let file = root::open_file(folder, name)?
            .ok_or_else(|| io::Error::other("it is no longer a file"))?;
        let mode = mode_of(wanted, Some(&now.entry));
        Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?)
    }
}

fn new_folder() -> Mode {
    Mode::from_raw_mode(NEW_FOLDER)
}

/// Whether the change removes content, of which a copy is then kept.
fn goes(change: &UndoChange) -> bool {
    matches!(change.action, UndoAction::Delete | UndoAction::Restore)
}

/// Returns the mode of a restored file. Version 1 of snapshots only records whether it is
/// executable.
fn mode_of(wanted: &SnapshotEntry, now: Option<&SnapshotEntry>) -> u32 {
    let SnapshotEntry::File {
        executable, mode, ..
    } = wanted
    else {
        return 0o600;
    };
    let usual = if *executable { 0o700 } else { 0o600 };
    mode.unwrap_or(match now {
        Some(SnapshotEntry::File {
            executable: runs,
            mode: Some(now),
            ..
        }) if runs == executable => *now,
        _ => usual,
    })
}

fn decoded(path: &str) -> Vec<u8> {
    name::decode(path).expect("the entries were checked when they were loaded")
}

fn last(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Returns the temporary name for a path's new entry. Always the same for a path, so that the file
/// left by a crash is found.
fn beside(path: &[u8]) -> Vec<u8> {
    let digest = Digest::of(path).to_string();
    let end: String = digest.chars().rev().take(16).collect();
    format!(".gyrus-undo-{end}").into_bytes()
}

/// Removes a file, a link, or an empty folder.
fn remove(folder: impl AsFd, name: &[u8]) -> io::Result<()> {
    match rustix::fs::unlinkat(&folder, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {
            Ok(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
        }
        done => Ok(done?),
    }
}

fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Copies the entry in the workspace to the trash.
fn keep(to: &PathBuf, now: &look::PresentEntry) -> io::Result<()> {
    let folder = to.parent().unwrap_or(to);
    private_folder(folder)?;
    match &now.entry {
        SnapshotEntry::Folder { .. } => private_folder(to),
        SnapshotEntry::Link { target } => symlink(OsStr::from_bytes(&decoded(target)), to),
        SnapshotEntry::File { .. } => {
            let mut options = fs::OpenOptions::new();
            options.write(true).create_new(true);
            let mode = now.stat.st_mode & 0o700 | 0o600;
            options.mode(mode).open(to)?.write_all(&now.content)
        }
        SnapshotEntry::Skipped { .. } => Ok(()),
    }
}
