//! Moves the changes of a layer into the folder, so that it can be continued after a kill at any
//! point.

use std::{
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use gyrus_contract::Digest;
use rustix::{
    fs::{FileType, Mode, OFlags, RenameFlags, Stat, listxattr, removexattr, renameat_with},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use super::{
    AppliedLayer, CallLayer, LayerChanges, LayerError, LayerStep, MovedPaths, PLAN,
    kept::{KeptFiles, LayerChange, Was},
    list::by_number,
    stamp::stamp,
};
use crate::{
    root::{RootError, RootFolder, failed},
    undo::UndoRefusal,
};

const CHANGED_SINCE: &str = "somebody else changed it while the command ran";

/// Maximum number of changes whose files are synced separately.
const MAX_SYNCED: usize = 16;

/// The planned steps, stored on disk.
#[derive(Debug, Serialize, Deserialize)]
struct LayerPlan {
    steps: Vec<LayerStep>,
}

enum StepResult {
    Done(LayerChange),
    /// The entry is gone, for an unknown reason.
    Gone,
    Refused(String),
}

impl CallLayer {
    /// Moves the listed changes into the folder. What other layers of the same owner moved there in
    /// the meantime, `others`, is no change by somebody else. `stepped` is called after every change
    /// on disk; it may end the process.
    ///
    /// # Errors
    /// When the plan cannot be written. What fails for one path is among the refused.
    pub fn apply(
        &self,
        listed: LayerChanges,
        others: &MovedPaths,
        stepped: &mut dyn FnMut(),
    ) -> Result<AppliedLayer, LayerError> {
        let plan = LayerPlan {
            steps: listed.steps,
        };
        if plan.steps.is_empty() {
            return Ok(AppliedLayer::default());
        }
        self.write(&plan)?;
        stepped();
        self.execute(plan, others, stepped)
    }

    /// Continues after a kill; `None` if no move had begun. A repeated call returns the same.
    ///
    /// # Errors
    /// As [`Self::apply`], and when the plan cannot be read.
    pub fn recover(&self, stepped: &mut dyn FnMut()) -> Result<Option<AppliedLayer>, LayerError> {
        let path = self.folder.join(PLAN);
        let wrong = |source| LayerError::File {
            path: path.clone(),
            source,
        };
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(wrong)?,
        };
        let plan = serde_json::from_slice(&text).map_err(|error| wrong(error.into()))?;
        self.execute(plan, &MovedPaths::new(), stepped).map(Some)
    }

    fn write(&self, plan: &LayerPlan) -> Result<(), LayerError> {
        let (path, new) = (self.folder.join(PLAN), self.folder.join("plan.new"));
        let written = || {
            fs::write(&new, serde_json::to_vec(plan)?)?;
            fs::File::open(&new)?.sync_all()?;
            // The new things are on disk before they have their places.
            fs::rename(&new, &path)?;
            if self.sync_few(plan)? {
                fs::File::open(&self.folder)?.sync_all()
            } else {
                Ok(rustix::fs::syncfs(fs::File::open(&self.folder)?)?)
            }
        };
        written().map_err(|source| LayerError::File { path, source })
    }

    /// Syncs the new files separately if they are few, since syncing the file system also writes
    /// what every other program has changed. Returns whether it did.
    fn sync_few(&self, plan: &LayerPlan) -> io::Result<bool> {
        if plan.steps.len() > MAX_SYNCED {
            return Ok(false);
        }
        let upper = RootFolder::open(&self.upper())?;
        for step in &plan.steps {
            let (LayerStep::Put { path, .. } | LayerStep::Swap { path, .. }) = step else {
                continue;
            };
            let kind = upper
                .stat(path)?
                .map(|stat| FileType::from_raw_mode(stat.st_mode));
            match kind {
                Some(FileType::RegularFile) => {}
                Some(FileType::Directory) => return Ok(false),
                _ => continue,
            }
            // Without the right to read it, no single file can be synced.
            let Ok(file) = upper.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK) else {
                return Ok(false);
            };
            rustix::fs::fsync(file)?;
        }
        Ok(true)
    }

    fn execute(
        &self,
        plan: LayerPlan,
        others: &MovedPaths,
        stepped: &mut dyn FnMut(),
    ) -> Result<AppliedLayer, LayerError> {
        let (upper, lower) = self.roots()?;
        let mut moving = LayerMove {
            began: self.began()?,
            upper,
            lower,
            old: Vec::new(),
            others,
        };
        let mut applied = AppliedLayer {
            kept: KeptFiles {
                folder: self.upper(),
                files: Vec::with_capacity(plan.steps.len()),
            },
            refused: Vec::new(),
            moved: MovedPaths::new(),
        };
        for step in plan.steps {
            let path = step.path().to_owned();
            match moving.step(step) {
                Ok(StepResult::Done(kept)) => applied.kept.files.push(kept),
                Ok(StepResult::Gone) => {}
                Ok(StepResult::Refused(why)) => applied.refused.push(UndoRefusal {
                    path: path.display().to_string(),
                    why,
                }),
                Err(error) => applied.refused.push(UndoRefusal {
                    path: path.display().to_string(),
                    why: error.error.to_string(),
                }),
            }
            stepped();
        }
        // Reported results must survive a loss of power.
        let _ = moving.lower.sync();
        // Whoever had a file open has had some time to write to it.
        let late = moving.return_late();
        applied.kept.files.retain(|kept| !late.contains(&kept.path));
        applied.refused.extend(late.iter().map(|path| UndoRefusal {
            path: path.display().to_string(),
            why: CHANGED_SINCE.to_owned(),
        }));
        if !late.is_empty() {
            let _ = moving.lower.sync();
        }
        for kept in &applied.kept.files {
            if let Ok(Some(now)) = moving.lower.stat(&kept.path) {
                applied.moved.insert(kept.path.clone(), changed_at(&now));
            }
        }
        Ok(applied)
    }
}

struct LayerMove<'a> {
    /// Start of the command; later changes in the folder were made by others.
    began: i64,
    upper: RootFolder<'static>,
    lower: RootFolder<'static>,
    /// Entries that this process has moved from the folder into the layer.
    old: Vec<MovedEntry>,
    /// Paths to which other layers were moved.
    others: &'a MovedPaths,
}

/// An entry of the folder that was moved into the layer.
struct MovedEntry {
    path: PathBuf,
    before: Stat,
    /// The entry that replaced it, if one did.
    after: Option<Stat>,
}

impl LayerMove<'_> {
    fn step(&mut self, step: LayerStep) -> Result<StepResult, RootError> {
        match step {
            LayerStep::Put { path, inode } => self.put(path, inode),
            LayerStep::Swap {
                path,
                inode,
                before,
            } => self.swap(path, inode, before),
            LayerStep::Take {
                path,
                inode,
                before,
            } => self.take(path, inode, before),
            LayerStep::Mode {
                path,
                before,
                after,
            } => self.mode(path, before, after),
        }
    }

    fn put(&self, path: PathBuf, inode: u64) -> Result<StepResult, RootError> {
        let (new, now) = (self.upper.stat(&path)?, self.lower.stat(&path)?);
        let is_ours = |stat: &Stat| stat.st_ino == inode;
        match (new, now) {
            (_, Some(now)) if is_ours(&now) => {}
            (Some(new), None) if is_ours(&new) => {
                strip(&self.upper, &path)?;
                self.rename(&self.upper, &self.lower, &path, RenameFlags::NOREPLACE)?;
            }
            (Some(_), Some(_)) => return Ok(StepResult::Refused(CHANGED_SINCE.to_owned())),
            _ => return Ok(StepResult::Gone),
        }
        self.done(path, Was::Nothing)
    }

    fn swap(&mut self, path: PathBuf, inode: u64, before: Digest) -> Result<StepResult, RootError> {
        let (new, now) = (self.upper.stat(&path)?, self.lower.stat(&path)?);
        let Some(now) = now else {
            return Ok(StepResult::Refused(CHANGED_SINCE.to_owned()));
        };
        if now.st_ino != inode {
            if new.is_none_or(|new| new.st_ino != inode) {
                return Ok(StepResult::Gone);
            }
            if self.is_of_somebody_else(&path, &now)? {
                return Ok(StepResult::Refused(CHANGED_SINCE.to_owned()));
            }
            strip(&self.upper, &path)?;
            self.rename(&self.upper, &self.lower, &path, RenameFlags::EXCHANGE)?;
            if self.is_moved_alone(path.clone(), now, new)? {
                return Ok(StepResult::Refused(CHANGED_SINCE.to_owned()));
            }
        } else if self.was_written_late(&path)? {
            self.put_back(&path, Some(&now))?;
            return Ok(StepResult::Refused(CHANGED_SINCE.to_owned()));
        }
        self.kept(path, before)
    }

    fn take(&mut self, path: PathBuf, inode: u64, before: Digest) -> Result<StepResult, RootError> {
        let (mark, now) = (self.upper.stat(&path)?, self.lower.stat(&path)?);
        let is_ours = |stat: &Stat| stat.st_ino == inode;
        match (mark, now) {
            (Some(mark), None) if is_ours(&mark) => {
                if self.was_written_late(&path)? {
                    self.put_back(&path, None)?;
                    return Ok(StepResult::Refused(CHANGED_SINCE.to_owned()));
                }
            }
            (Some(mark), Some(_)) if is_ours(&mark) => {}
            (mark, Some(now)) if is_ours(&now) => {
                if self.is_of_somebody_else(&path, &now)? {
                    return Ok(StepResult::Refused(CHANGED_SINCE.to_owned()));
                }
                if mark.is_some() {
                    self.upper.remove_file(&path)?;
                }
                self.rename(&self.lower, &self.upper, &path, RenameFlags::NOREPLACE)?;
                if self.is_moved_alone(path.clone(), now, None)? {
                    return Ok(StepResult::Refused(CHANGED_SINCE.to_owned()));
                }
            }
            (_, Some(_)) => return Ok(StepResult::Refused(CHANGED_SINCE.to_owned())),
            _ => return Ok(StepResult::Gone),
        }
        self.kept(path, before)
    }

    /// Records that the layer now holds what stood at a path.
    fn kept(&mut self, path: PathBuf, before: Digest) -> Result<StepResult, RootError> {
        let old = self.upper.stat(&path)?;
        let was = Was::Kept {
            path: path.clone(),
            inode: old.map_or(0, |old| old.st_ino),
            before,
        };
        self.done(path, was)
    }

    fn mode(&self, path: PathBuf, before: u32, after: u32) -> Result<StepResult, RootError> {
        let Some(now) = self.lower.stat(&path)? else {
            return Ok(StepResult::Gone);
        };
        let is_folder = FileType::from_raw_mode(now.st_mode) == FileType::Directory;
        match now.st_mode & 0o7777 {
            mode if mode == after => {}
            mode if mode == before && is_folder => {
                self.lower.set_mode(&path, Mode::from_raw_mode(after))?;
            }
            _ => return Ok(StepResult::Refused(CHANGED_SINCE.to_owned())),
        }
        Ok(StepResult::Done(LayerChange {
            path,
            was: Was::Mode { before, after },
            now: None,
        }))
    }

    fn done(&self, path: PathBuf, was: Was) -> Result<StepResult, RootError> {
        let now = stamp(&self.lower, &path)?;
        Ok(StepResult::Done(LayerChange { path, was, now }))
    }

    /// Whether another process changed the folder's entry, or one in it, since the command began.
    fn is_of_somebody_else(&self, path: &Path, now: &Stat) -> Result<bool, RootError> {
        Ok(self.is_change(path, now) || self.holds_change(&self.lower, path, now)?)
    }

    /// Whether an entry was changed since the command began, and not by another layer.
    fn is_change(&self, path: &Path, stat: &Stat) -> bool {
        let changed = changed_at(stat);
        let by_other = |above: &Path| self.others.get(above).is_some_and(|at| changed <= *at);
        changed >= self.began && !path.ancestors().any(by_other)
    }

    /// Whether an entry in a folder was changed since the command began.
    fn holds_change(
        &self,
        root: &RootFolder<'_>,
        path: &Path,
        now: &Stat,
    ) -> Result<bool, RootError> {
        let mut folders = vec![(path.to_owned(), *now)];
        while let Some((path, stat)) = folders.pop() {
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                continue;
            }
            for name in root.names(&path)? {
                let inner = path.join(name);
                if let Some(stat) = root.stat(&inner)? {
                    if self.is_change(&inner, &stat) {
                        return Ok(true);
                    }
                    folders.push((inner, stat));
                }
            }
        }
        Ok(false)
    }

    /// Whether the entry just moved into the layer is the one that was examined in the folder,
    /// since another process may have changed or replaced it in between.
    fn is_as_before(&self, path: &Path, before: &Stat) -> Result<bool, RootError> {
        let moved = self.upper.stat(path)?;
        let same = moved.is_some_and(|moved| is_same(&moved, before));
        Ok(same && !self.holds_change(&self.upper, path, before)?)
    }

    /// Whether another process has written to a file that a killed process moved into the layer.
    fn was_written_late(&self, path: &Path) -> Result<bool, RootError> {
        let old = self.upper.stat(path)?;
        Ok(old.is_some_and(|old| {
            let seconds = old.st_mtime.saturating_mul(1_000_000_000);
            let nanoseconds = i64::try_from(old.st_mtime_nsec).unwrap_or(0);
            seconds.saturating_add(nanoseconds) >= self.began
        }))
    }

    /// Moves entries back that a process which had them open has changed since they were moved.
    /// Returns their paths.
    fn return_late(&mut self) -> Vec<PathBuf> {
        let mut late = Vec::new();
        for moved in std::mem::take(&mut self.old) {
            let is_late = matches!(self.is_as_before(&moved.path, &moved.before), Ok(false));
            if is_late && self.put_back(&moved.path, moved.after.as_ref()).is_ok() {
                late.push(moved.path);
            }
        }
        late
    }

    /// Moves an entry just moved into the layer back if another process changed it in between;
    /// returns whether it did. Otherwise it is examined once more at the end.
    fn is_moved_alone(
        &mut self,
        path: PathBuf,
        before: Stat,
        after: Option<Stat>,
    ) -> Result<bool, RootError> {
        if self.is_as_before(&path, &before)? {
            self.old.push(MovedEntry {
                path,
                before,
                after,
            });
            return Ok(false);
        }
        self.put_back(&path, after.as_ref())?;
        Ok(true)
    }

    /// Moves an entry from the layer back to its place in the folder, unless another process has
    /// changed that place: that is newer.
    fn put_back(&self, path: &Path, after: Option<&Stat>) -> Result<(), RootError> {
        let stands = self.lower.stat(path)?;
        let flags = match (stands, after) {
            (None, _) => RenameFlags::NOREPLACE,
            (Some(now), Some(after)) if is_same(&now, after) => RenameFlags::EXCHANGE,
            (Some(_), _) => return Ok(()),
        };
        self.rename(&self.upper, &self.lower, path, flags)
    }

    /// Moves a path from one side to the same path on the other. The layer may lack folders above a
    /// deleted path.
    fn rename(
        &self,
        from: &RootFolder<'_>,
        to: &RootFolder<'_>,
        path: &Path,
        flags: RenameFlags,
    ) -> Result<(), RootError> {
        let renamed = || {
            let (source, name) = from.parent(path)?;
            let target = match to.parent(path) {
                Err(Errno::NOENT) if std::ptr::eq(to, &self.upper) => to.make_parent(path)?.folder,
                found => found?.0,
            };
            renameat_with(source, name, target, name, flags)
        };
        renamed().map_err(|error| failed(path, error))
    }
}

/// Whether two looks show the same entry with the same content, as far as times and sizes show.
/// Moving an entry changes neither.
fn is_same(one: &Stat, other: &Stat) -> bool {
    let of = |stat: &Stat| {
        let time = (stat.st_mtime, stat.st_mtime_nsec);
        (stat.st_ino, stat.st_mode, time)
    };
    let is_folder = FileType::from_raw_mode(one.st_mode) == FileType::Directory;
    of(one) == of(other) && (is_folder || one.st_size == other.st_size)
}

/// Returns the time of an entry's last change, in nanoseconds.
fn changed_at(stat: &Stat) -> i64 {
    let seconds = stat.st_ctime.saturating_mul(1_000_000_000);
    seconds.saturating_add(i64::try_from(stat.st_ctime_nsec).unwrap_or(0))
}

/// Removes the marks that an overlay leaves on its files.
fn strip(root: &RootFolder<'_>, path: &Path) -> Result<(), RootError> {
    let mut things = vec![path.to_owned()];
    while let Some(path) = things.pop() {
        let Some(stat) = root.stat(&path)? else {
            continue;
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Symlink {
            continue;
        }
        let opened = root
            .open_at(&path, OFlags::PATH)
            .map_err(|error| failed(&path, error))?;
        strip_one(&opened);
        if kind == FileType::Directory {
            let names = root.names(&path)?;
            things.extend(names.into_iter().map(|name| path.join(name)));
        }
    }
    Ok(())
}

fn strip_one(opened: &OwnedFd) {
    let place = by_number(opened);
    let mut names = vec![0; 4096];
    let Ok(length) = listxattr(place.as_path(), &mut names[..]) else {
        return;
    };
    for name in names[..length].split(|byte| *byte == 0) {
        let Ok(name) = std::str::from_utf8(name) else {
            continue;
        };
        if name.starts_with("trusted.overlay.") || name.starts_with("user.overlay.") {
            // A mark that stays has no meaning outside of an overlay.
            let _ = removexattr(place.as_path(), name);
        }
    }
}
