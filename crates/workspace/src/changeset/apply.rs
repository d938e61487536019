//! Applies a changeset completely or not at all.
//!
//! First all files are compared with the changeset's expectations, and each difference is a
//! conflict. Then the new files are written to their slots, where a full disk is detected. Then the
//! [`Intent`] is written, and from there on every file moves by one rename. Until [`UndoableChangeset::keep`]
//! has removed the intent, everything is undone: by the same call after an error, by the value when
//! it is dropped, and by any later process after a crash.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FileType, FlockOperation, Mode, flock, fstat},
    io::Errno,
};

use super::{
    change::{ApplyError, EXECUTE, FileChange, conflict},
    intent::{HOME, IntentStep, UndoIntent, What, record, slot, take_back, unfinished},
    prepare::prepare,
};
use crate::root::{RootError, RootFolder, failed};

/// Maximum number of attempts to open the folder of slots, which another process may remove
/// meanwhile.
const MAX_ATTEMPTS: u32 = 8;

/// An applied changeset that can still be undone; dropping it undoes it.
pub struct UndoableChangeset<'a> {
    root: RootFolder<'a>,
    intent: UndoIntent,
    /// Lock held to the end.
    _lock: OwnedFd,
    settled: bool,
}

/// Applies `changes`, after undoing an interrupted earlier attempt.
///
/// # Errors
/// All is as it was then, but for [`ApplyError::Stranded`].
pub fn apply<'a>(
    root: RootFolder<'a>,
    changes: &[FileChange],
) -> Result<UndoableChangeset<'a>, ApplyError> {
    let lock = enter(&root)?;
    let outcome = prepare(&root, changes);
    let intent = match outcome {
        Ok(intent) => intent,
        Err(error) => {
            // The remaining slots are unused; the next changeset removes them.
            let _ = leave(&root);
            return Err(error);
        }
    };
    let mut applied = UndoableChangeset {
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

/// Whether every file is already in its new state.
pub fn already(root: &RootFolder<'_>, changes: &[FileChange]) -> Result<bool, RootError> {
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

impl UndoableChangeset<'_> {
    fn carry_out(&mut self) -> Result<(), ApplyError> {
        let numbered = || self.intent.steps.iter().enumerate();
        let deletes = |step: &IntentStep| matches!(step.what, What::Delete { .. });
        for (number, step) in numbered().filter(|(_, step)| deletes(step)) {
            self.root.rename(&step.path, &slot(number))?;
            self.expect_old(number, step)?;
        }
        for (folder, _) in &self.intent.emptied {
            match self.root.remove_folder(folder) {
                Ok(()) => {}
                // Something else is in it, so it stays.
                Err(RootError {
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
                    Err(RootError {
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

    /// Checks the file that was moved out, since another one may have replaced it before the move.
    fn expect_old(&self, number: usize, step: &IntentStep) -> Result<(), ApplyError> {
        let (What::Replace { old, .. } | What::Delete { old }) = step.what else {
            return Ok(());
        };
        let stat = self.root.stat(&slot(number))?;
        if stat.is_some_and(|stat| stat.st_ino == old) {
            Ok(())
        } else {
            Err(conflict(&step.path, "was replaced just now"))
        }
    }

    /// Keeps the changes, after which they cannot be undone here.
    ///
    /// # Errors
    /// When that cannot be recorded: then they are undone.
    pub fn keep(mut self) -> Result<(), ApplyError> {
        if let Err(why) = self.root.remove_file(&record()) {
            return Err(match self.give_back() {
                Ok(_) => why.into(),
                Err(then) => ApplyError::Failed(why).stranded(then),
            });
        }
        self.settled = true;
        // From here on only unused slots can stay behind.
        let _ = self.root.sync().and_then(|()| leave(&self.root));
        Ok(())
    }

    /// Undoes the whole changeset. If another process overwrote a file meanwhile, the folder with
    /// its content is returned.
    ///
    /// # Errors
    /// When a file cannot be moved; the next changeset undoes the rest.
    pub fn give_back(mut self) -> Result<Option<PathBuf>, RootError> {
        self.settled = true;
        let kept = take_back(&self.root, &self.intent)?;
        let _ = leave(&self.root);
        Ok(kept)
    }
}

impl Drop for UndoableChangeset<'_> {
    fn drop(&mut self) {
        if !self.settled && take_back(&self.root, &self.intent).is_ok() {
            let _ = leave(&self.root);
        }
    }
}

/// Opens the folder of slots, empty and locked.
fn enter(root: &RootFolder<'_>) -> Result<OwnedFd, ApplyError> {
    let home = Path::new(HOME);
    for _ in 0..MAX_ATTEMPTS {
        match root.make_folder(home, Mode::RWXU) {
            Ok(()) => {}
            Err(RootError {
                error: Errno::EXIST,
                ..
            }) => {}
            Err(error) => return Err(error.into()),
        }
        let folder = match root.folder(home) {
            // The previous owner has just removed it.
            Err(RootError {
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

/// Undoes a changeset that a crash interrupted here, if there is one.
///
/// # Errors
/// When another changeset is being applied here, or a file cannot be moved.
pub fn recover(root: &RootFolder<'_>) -> Result<(), ApplyError> {
    if root.stat(Path::new(HOME))?.is_none() {
        return Ok(());
    }
    let _lock = enter(root)?;
    Ok(leave(root)?)
}

fn clear(root: &RootFolder<'_>) -> Result<(), RootError> {
    for name in root.names(Path::new(HOME))? {
        root.remove_file(&Path::new(HOME).join(name))?;
    }
    Ok(())
}

fn leave(root: &RootFolder<'_>) -> Result<(), RootError> {
    clear(root)?;
    root.remove_folder(Path::new(HOME))
}
