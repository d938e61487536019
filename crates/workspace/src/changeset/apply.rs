//! All of a changeset, or nothing of it.
//!
//! First everything is looked at, and whatever is not as the changeset says is a conflict. Then
//! the new files are written to their slots, which is where a full disk is noticed. Then the
//! [`Intent`] is written, and from there on every file moves by one rename. Until [`Applied::keep`]
//! has removed the intent, whoever comes next takes everything back: the same call when an error
//! stops it, the value when it is dropped, and any later process after a crash.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use gyrus_contract::Digest;
use rustix::{
    fs::{FileType, FlockOperation, Mode, flock, fstat},
    io::Errno,
};

use super::{
    intent::{HOME, Intent, Step, What, record, slot, take_back, unfinished},
    prepare::prepare,
};
use crate::root::{Failed, Root, failed};

/// What may execute a file.
pub const EXECUTE: u32 = 0o111;

/// Somebody may put the folder of slots away while it is being opened.
const MAX_ATTEMPTS: u32 = 8;

/// What one file is to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Below the workspace.
    pub path: PathBuf,
    /// Of the file as the changeset was made for; `None` if there must be none.
    pub before: Option<Digest>,
    /// `None` to delete it.
    pub after: Option<After>,
}

/// What a file is to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct After {
    /// All of it.
    pub content: Vec<u8>,
    /// `None`: as it was, and a new file is not.
    pub executable: Option<bool>,
}

/// Why nothing was applied.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// One sentence for each file that is not as the changeset says.
    #[error("nothing was changed, because files are not as the changeset expects: {}", .0.join("; "))]
    Conflicts(Vec<String>),
    /// The folder of slots is locked.
    #[error("another changeset is being applied here; nothing was changed, try again later")]
    Busy,
    /// A call of the system; all is as it was.
    #[error("{}; nothing was changed{}", .0, room(.0))]
    Failed(#[from] Failed),
    /// It failed half way, and so did taking it back.
    #[error(
        "{why}, and then what was done so far could not be taken back: {then}. The old files are \
         in `{HOME}`; the next changeset takes them back before it begins"
    )]
    Stranded {
        /// Why it was not applied.
        why: String,
        /// Why it was not taken back.
        then: Failed,
    },
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
pub struct Applied<'a> {
    root: Root<'a>,
    intent: Intent,
    /// Held to the end.
    _lock: OwnedFd,
    settled: bool,
}

/// Applies `changes`, after taking back whatever an earlier attempt left.
///
/// # Errors
/// All is as it was then, but for [`ApplyError::Stranded`].
pub fn apply<'a>(root: Root<'a>, changes: &[FileChange]) -> Result<Applied<'a>, ApplyError> {
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
///
/// # Errors
/// When a file cannot be read.
pub fn already(root: &Root<'_>, changes: &[FileChange]) -> Result<bool, Failed> {
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
    ///
    /// # Errors
    /// When that cannot be recorded: then it is taken back.
    pub fn keep(mut self) -> Result<(), ApplyError> {
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
    ///
    /// # Errors
    /// When a file cannot be moved; the next changeset takes back the rest.
    pub fn give_back(mut self) -> Result<Option<PathBuf>, Failed> {
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

pub(super) fn conflict(path: &Path, what: &str) -> ApplyError {
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
///
/// # Errors
/// When another changeset is being applied here, or a file cannot be moved.
pub fn recover(root: &Root<'_>) -> Result<(), ApplyError> {
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
