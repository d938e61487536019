//! All of a changeset, or nothing of it.
//!
//! First everything is looked at, and whatever is not as the changeset says is a conflict. Then
//! the new files are written to their slots, which is where a full disk is noticed. Then the
//! [`Intent`] is written, and from there on every file moves by one rename. Until [`Applied::keep`]
//! has removed the intent, whoever comes next takes everything back: the same call when an error
//! stops it, the value when it is dropped, and any later process after a crash.

use std::{
    collections::BTreeSet,
    io::Write as _,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use gyrus_contract::Digest;
use rustix::{
    fs::{FileType, FlockOperation, Gid, Mode, Stat, Uid, fchmod, fchown, flock, fstat},
    io::Errno,
};

use super::{
    intent::{HOME, Intent, Step, What, record, slot, take_back, unfinished},
    root::{Failed, Root},
};

/// What may execute a file.
const EXECUTE: u32 = 0o111;

/// Somebody may put the folder of slots away while it is being opened.
const MAX_ATTEMPTS: u32 = 8;

/// What one file is to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// Below the workspace.
    pub(super) path: PathBuf,
    /// Of the file as the changeset was made for; `None` if there must be none.
    pub(super) before: Option<Digest>,
    /// `None` to delete it.
    pub(super) after: Option<After>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct After {
    pub(super) content: Vec<u8>,
    /// `None`: as it was, and a new file is not.
    pub(super) executable: Option<bool>,
}

/// Why nothing was applied.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ApplyError {
    /// One sentence for each file that is not as the changeset says.
    #[error("nothing was changed, because files are not as the changeset expects: {}", .0.join("; "))]
    Conflicts(Vec<String>),
    #[error("another changeset is being applied here; nothing was changed, try again later")]
    Busy,
    #[error("{}; nothing was changed{}", .0, room(.0))]
    Failed(#[from] Failed),
    #[error(
        "{why}, and then what was done so far could not be taken back: {then}. The old files are \
         in `{HOME}`; the next changeset takes them back before it begins"
    )]
    Stranded { why: String, then: Failed },
}

impl ApplyError {
    /// It was stopped by this, and then taking it back was.
    fn stranded(self, then: Failed) -> Self {
        let why = match self {
            Self::Conflicts(files) => files.join("; "),
            Self::Failed(failed) => failed.to_string(),
            Self::Busy | Self::Stranded { .. } => self.to_string(),
        };
        Self::Stranded { why, then }
    }
}

fn room(failed: &Failed) -> &'static str {
    match failed.error {
        Errno::NOSPC | Errno::DQUOT => ", make room first",
        _ => "",
    }
}

/// A changeset that is in the tree and can still be taken back, which dropping it does.
pub(super) struct Applied<'a> {
    root: Root<'a>,
    intent: Intent,
    /// Held to the end.
    _lock: OwnedFd,
    settled: bool,
}

/// Applies `changes`, after taking back whatever an earlier attempt left.
pub(super) fn apply<'a>(root: Root<'a>, changes: &[Change]) -> Result<Applied<'a>, ApplyError> {
    let lock = enter(&root)?;
    let outcome = prepare(&root, changes);
    let intent = match outcome {
        Ok(intent) => intent,
        Err(error) => {
            // What stays is in slots that nobody needs; the next changeset removes them.
            let _ = leave(&root);
            return Err(error);
        }
    };
    let mut applied = Applied {
        root,
        intent,
        _lock: lock,
        settled: false,
    };
    match applied.carry_out() {
        Ok(()) => Ok(applied),
        Err(why) => {
            applied.settled = true;
            let taken_back = take_back(&applied.root, &applied.intent);
            match taken_back {
                Ok(_) => {
                    let _ = leave(&applied.root);
                    Err(why)
                }
                Err(then) => Err(why.stranded(then)),
            }
        }
    }
}

/// Whether every file is as the changes leave it.
pub(super) fn already(root: &Root<'_>, changes: &[Change]) -> Result<bool, Failed> {
    for change in changes {
        let Some(after) = &change.after else {
            // A folder of that name may belong to the changeset as well.
            match root.stat(&change.path)? {
                Some(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Directory => {
                    return Ok(false);
                }
                Some(_) | None => continue,
            }
        };
        match root.stat(&change.path)? {
            Some(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                let executable = stat.st_mode & EXECUTE != 0;
                let (content, _) = root.read(&change.path)?;
                if content != after.content
                    || after.executable.is_some_and(|wanted| wanted != executable)
                {
                    return Ok(false);
                }
            }
            Some(_) | None => return Ok(false),
        }
    }
    Ok(true)
}

impl Applied<'_> {
    fn carry_out(&mut self) -> Result<(), ApplyError> {
        let numbered = || self.intent.steps.iter().enumerate();
        let deletes = |step: &Step| matches!(step.what, What::Delete { .. });
        for (number, step) in numbered().filter(|(_, step)| deletes(step)) {
            self.root.rename(&step.path, &slot(number))?;
            self.expect_old(number, step)?;
        }
        for (folder, _) in &self.intent.emptied {
            match self.root.remove_folder(folder) {
                Ok(()) => {}
                // Something else is in it, so it stays.
                Err(Failed {
                    error: Errno::NOTEMPTY | Errno::EXIST,
                    ..
                }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for folder in &self.intent.made {
            self.root.make_folder(folder, Mode::from_raw_mode(0o777))?;
        }
        for (number, step) in numbered().filter(|(_, step)| !deletes(step)) {
            match step.what {
                What::Create { .. } => match self.root.rename(&slot(number), &step.path) {
                    Err(Failed {
                        error: Errno::EXIST,
                        ..
                    }) => return Err(conflict(&step.path, "was made just now")),
                    moved => moved?,
                },
                What::Replace { .. } | What::Delete { .. } => {
                    self.root.exchange(&slot(number), &step.path)?;
                    self.expect_old(number, step)?;
                }
            }
        }
        Ok(self.root.sync()?)
    }

    /// Between looking and moving, somebody may have put another file there.
    fn expect_old(&self, number: usize, step: &Step) -> Result<(), ApplyError> {
        let (What::Replace { old, .. } | What::Delete { old }) = step.what else {
            return Ok(());
        };
        let stat = self.root.stat(&slot(number))?;
        match stat.is_some_and(|stat| stat.st_ino == old) {
            true => Ok(()),
            false => Err(conflict(&step.path, "was replaced just now")),
        }
    }

    /// It stays, and cannot be taken back here any more.
    pub(super) fn keep(mut self) -> Result<(), ApplyError> {
        if let Err(why) = self.root.remove_file(&record()) {
            return Err(match self.give_back() {
                Ok(_) => why.into(),
                Err(then) => ApplyError::Failed(why).stranded(then),
            });
        }
        self.settled = true;
        // From here on only slots that nobody needs can stay behind.
        let _ = self.root.sync().and_then(|()| leave(&self.root));
        Ok(())
    }

    /// Everything becomes as it was. Where somebody else wrote over a file meanwhile, the folder
    /// with what they wrote is named.
    pub(super) fn give_back(mut self) -> Result<Option<PathBuf>, Failed> {
        self.settled = true;
        let kept = take_back(&self.root, &self.intent)?;
        let _ = leave(&self.root);
        Ok(kept)
    }
}

impl Drop for Applied<'_> {
    fn drop(&mut self) {
        if !self.settled && take_back(&self.root, &self.intent).is_ok() {
            let _ = leave(&self.root);
        }
    }
}

fn conflict(path: &Path, what: &str) -> ApplyError {
    ApplyError::Conflicts(vec![format!("`{}` {what}", path.display())])
}

/// The folder of slots, empty, and nobody else's while the lock is held.
fn enter(root: &Root<'_>) -> Result<OwnedFd, ApplyError> {
    let home = Path::new(HOME);
    for _ in 0..MAX_ATTEMPTS {
        match root.make_folder(home, Mode::RWXU) {
            Ok(()) => {}
            Err(Failed {
                error: Errno::EXIST,
                ..
            }) => {}
            Err(error) => return Err(error.into()),
        }
        let folder = match root.folder(home) {
            // Whoever had it has just put it away.
            Err(Failed {
                error: Errno::NOENT,
                ..
            }) => continue,
            opened => opened?,
        };
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(ApplyError::Busy),
            Err(error) => return Err(failed(home, error).into()),
        }
        let locked = fstat(&folder).map_err(|error| failed(home, error))?;
        if root.stat(home)?.map(|stat| stat.st_ino) != Some(locked.st_ino) {
            continue;
        }
        if let Some(intent) = unfinished(root)? {
            take_back(root, &intent)?;
        }
        clear(root)?;
        return Ok(folder);
    }
    Err(ApplyError::Busy)
}

/// Takes back what a crash left half done here, if there is anything.
pub(super) fn recover(root: &Root<'_>) -> Result<(), ApplyError> {
    if root.stat(Path::new(HOME))?.is_none() {
        return Ok(());
    }
    let _lock = enter(root)?;
    Ok(leave(root)?)
}

fn clear(root: &Root<'_>) -> Result<(), Failed> {
    for name in root.names(Path::new(HOME))? {
        root.remove_file(&Path::new(HOME).join(name))?;
    }
    Ok(())
}

fn leave(root: &Root<'_>) -> Result<(), Failed> {
    clear(root)?;
    root.remove_folder(Path::new(HOME))
}

/// Looks, writes what is new to its slot, and writes down what will be done.
fn prepare(root: &Root<'_>, changes: &[Change]) -> Result<Intent, ApplyError> {
    let seen = look(root, changes)?;
    let mut intent = Intent {
        version: 1,
        ..Intent::default()
    };
    for (number, (change, old)) in changes.iter().zip(&seen).enumerate() {
        let staged = match &change.after {
            Some(after) => Some((stage(root, number, after, old.as_ref())?, &after.content)),
            None => None,
        };
        let what = match (old, staged) {
            (Some(old), Some((new, content))) => What::Replace {
                old: old.st_ino,
                new,
                after: Digest::of(content),
            },
            (None, Some((new, content))) => What::Create {
                new,
                after: Digest::of(content),
            },
            (Some(old), None) => What::Delete { old: old.st_ino },
            (None, None) => return Err(conflict(&change.path, "is missing already")),
        };
        let path = change.path.clone();
        intent.steps.push(Step { path, what });
    }
    folders(root, &mut intent)?;
    root.sync()?;
    write_down(root, &intent)?;
    Ok(intent)
}

/// What stands at each path, if all of it is as the changeset says.
fn look(root: &Root<'_>, changes: &[Change]) -> Result<Vec<Option<Stat>>, ApplyError> {
    let (mut seen, mut wrong) = (Vec::new(), Vec::new());
    let gone: BTreeSet<&Path> = changes
        .iter()
        .filter(|change| change.after.is_none())
        .map(|change| change.path.as_path())
        .collect();
    for change in changes {
        let stat = root.stat(&change.path)?;
        let why = match (&stat, change.before) {
            (None, None) => parents(root, &change.path, &gone)?,
            (None, Some(_)) => Some("was deleted meanwhile"),
            (Some(stat), before) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => match before {
                    // Moving it needs no right to the file, but its owner meant something by it.
                    Some(_) if stat.st_mode & 0o222 == 0 => Some("is protected against writing"),
                    None => Some("exists already"),
                    Some(before) if root.digest(&change.path)? != Some(before) => {
                        Some("was changed meanwhile")
                    }
                    Some(_) => None,
                },
                FileType::Directory => Some("is a folder"),
                FileType::Symlink => Some("is a symbolic link by now"),
                _ => Some("is no regular file"),
            },
        };
        wrong.extend(why.map(|why| format!("`{}` {why}", change.path.display())));
        seen.push(stat);
    }
    match wrong.is_empty() {
        true => Ok(seen),
        false => Err(ApplyError::Conflicts(wrong)),
    }
}

/// What is wrong with the folders above a new file: where one should be, something else is that
/// will not go.
fn parents(
    root: &Root<'_>,
    path: &Path,
    gone: &BTreeSet<&Path>,
) -> Result<Option<&'static str>, Failed> {
    for above in ancestors(path) {
        let Some(stat) = root.stat(above)? else {
            continue;
        };
        let folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        return Ok((!folder && !gone.contains(above)).then_some("would lie below a file"));
    }
    Ok(None)
}

/// The folders above a path, below the workspace, the deepest first.
fn ancestors(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors()
        .skip(1)
        .filter(|above| !above.as_os_str().is_empty())
}

/// The inode of the new file in its slot.
fn stage(
    root: &Root<'_>,
    number: usize,
    after: &After,
    old: Option<&Stat>,
) -> Result<u64, ApplyError> {
    let slot = slot(number);
    let fresh = match after.executable {
        Some(true) => 0o777,
        Some(false) | None => 0o666,
    };
    let mut file = root.create(&slot, Mode::from_raw_mode(fresh))?;
    root.fill(&slot, || {
        file.write_all(&after.content)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let Some(old) = old else { return Ok(()) };
        // Only root can keep another owner; for anybody else the file becomes theirs.
        let owner = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        let _ = fchown(&file, Some(owner.0), Some(owner.1));
        let mode = match after.executable {
            // Whoever may read it may execute it.
            Some(true) => old.st_mode | ((old.st_mode & 0o444) >> 2),
            Some(false) => old.st_mode & !EXECUTE,
            None => old.st_mode,
        };
        fchmod(&file, Mode::from_raw_mode(mode))
    })?;
    let stat = fstat(&file).map_err(|error| failed(&slot, error))?;
    Ok(stat.st_ino)
}

/// Which folders will be missing, and which will be left empty.
fn folders(root: &Root<'_>, intent: &mut Intent) -> Result<(), Failed> {
    let above = |wanted: fn(&What) -> bool| -> BTreeSet<&Path> {
        let steps = intent.steps.iter().filter(|step| wanted(&step.what));
        steps.flat_map(|step| ancestors(&step.path)).collect()
    };
    let filled = above(|what| !matches!(what, What::Delete { .. }));
    let left = above(|what| matches!(what, What::Delete { .. }));
    let (mut made, mut emptied) = (Vec::new(), Vec::new());
    for folder in &filled {
        let stat = root.stat(folder)?;
        let is_folder = |stat: Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if !stat.is_some_and(is_folder) {
            made.push((*folder).to_owned());
        }
    }
    for folder in left.difference(&filled) {
        if let Some(stat) = root.stat(folder)? {
            emptied.push(((*folder).to_owned(), stat.st_mode & 0o7777));
        }
    }
    // A set lists a folder before what is in it.
    emptied.reverse();
    (intent.made, intent.emptied) = (made, emptied);
    Ok(())
}

/// The intent is on disk completely, or not at all.
fn write_down(root: &Root<'_>, intent: &Intent) -> Result<(), Failed> {
    let draft = Path::new(HOME).join("draft");
    let bytes = serde_json::to_vec(intent).map_err(|_| failed(&draft, Errno::ILSEQ))?;
    let mut file = root.create(&draft, Mode::RUSR | Mode::WUSR)?;
    root.fill(&draft, || {
        file.write_all(&bytes)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    })?;
    root.sync()?;
    root.rename(&draft, &record())?;
    root.sync()
}

fn failed(path: &Path, error: Errno) -> Failed {
    Failed {
        path: path.to_owned(),
        error,
    }
}
