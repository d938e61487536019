//! The intent of a changeset, recorded before the first file moves, and its undo.
//!
//! Every file of a changeset has a slot in [`HOME`] for the new file before the move and the old
//! one afterwards. Each step is one system call that moves a file between its slot and its path, so
//! the places of the two files show whether it was done. The undo can itself be interrupted
//! anywhere and started again.

use std::path::{Path, PathBuf};

use gyrus_contract::Digest;
use rustix::{
    fs::{Mode, Stat},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::root::{RootError, RootFolder};

/// Folder of the slots, in the workspace because a rename cannot leave its file system.
pub const HOME: &str = ".gyrus-changeset";

/// Maximum number of attempts at a name for a foreign file.
const MAX_NAMES: u32 = 10_000;

/// The data that a later process needs to undo a changeset.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct UndoIntent {
    pub(super) version: u32,
    /// The steps in the order of their execution.
    pub(super) steps: Vec<IntentStep>,
    /// Folders that deletions leave empty, the deepest first, with their modes.
    pub(super) emptied: Vec<(PathBuf, u32)>,
    /// Folders to create, ancestors first.
    pub(super) made: Vec<PathBuf>,
}

/// The step of one file, with its number as the place of the file in [`Intent::steps`].
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct IntentStep {
    pub(super) path: PathBuf,
    pub(super) what: What,
}

/// Change of a file. Files are identified by their inodes.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    /// Exchange the new file and the old one.
    Replace { old: u64, new: u64, after: Digest },
    /// Move the new file out of its slot.
    Create { new: u64, after: Digest },
    /// Move the old file into the slot.
    Delete { old: u64 },
}

pub(super) fn slot(number: usize) -> PathBuf {
    Path::new(HOME).join(number.to_string())
}

pub(super) fn record() -> PathBuf {
    Path::new(HOME).join("intent")
}

/// Returns the unfinished changeset in the workspace, if there is one.
pub(super) fn unfinished(root: &RootFolder<'_>) -> Result<Option<UndoIntent>, RootError> {
    let record = record();
    if root.stat(&record)?.is_none() {
        return Ok(None);
    }
    let (bytes, _) = root.read(&record)?;
    match serde_json::from_slice(&bytes) {
        Ok(intent) => Ok(Some(intent)),
        Err(_) => Err(RootError {
            path: record,
            error: Errno::BADMSG,
        }),
    }
}

/// Restores the tree to its old state. A foreign file that replaced one of the changeset is kept:
/// the folder with it is named.
pub(super) fn take_back(
    root: &RootFolder<'_>,
    intent: &UndoIntent,
) -> Result<Option<PathBuf>, RootError> {
    let deletes = |step: &&(usize, &IntentStep)| matches!(step.1.what, What::Delete { .. });
    let numbered: Vec<_> = intent.steps.iter().enumerate().collect();
    for (number, step) in numbered.iter().rev().filter(|step| !deletes(step)) {
        take_back_step(root, &slot(*number), step)?;
    }
    for folder in intent.made.iter().rev() {
        match root.remove_folder(folder) {
            // Never made, or in use by another process now: then it stays.
            Ok(()) => {}
            Err(RootError {
                error: Errno::NOENT | Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST,
                ..
            }) => {}
            Err(error) => return Err(error),
        }
    }
    for (folder, mode) in intent.emptied.iter().rev() {
        let mode = Mode::from_raw_mode(*mode);
        if root.stat(folder)?.is_none() {
            root.make_folder(folder, mode)?;
        }
        let stat = root.stat(folder)?;
        if stat.is_some_and(|stat| Mode::from_raw_mode(stat.st_mode) != mode) {
            root.set_mode(folder, mode)?;
        }
    }
    for (number, step) in numbered.iter().rev().filter(deletes) {
        take_back_step(root, &slot(*number), step)?;
    }
    root.sync()?;
    let kept = keep_foreign(root, intent)?;
    root.remove_file(&record())?;
    root.sync()?;
    Ok(kept)
}

fn take_back_step(root: &RootFolder<'_>, slot: &Path, step: &IntentStep) -> Result<(), RootError> {
    let (in_slot, there) = (inode(root, slot)?, inode(root, &step.path)?);
    match step.what {
        What::Replace { old, new, .. } => {
            if there != Some(new) && in_slot != Some(old) {
                return Ok(());
            }
            match there {
                Some(_) => root.exchange(slot, &step.path),
                None => root.rename(slot, &step.path),
            }
        }
        What::Create { .. } => match (in_slot, there) {
            (None, Some(_)) => root.rename(&step.path, slot),
            _ => Ok(()),
        },
        What::Delete { .. } => match (in_slot, there) {
            (Some(_), None) => root.rename(slot, &step.path),
            _ => Ok(()),
        },
    }
}

/// Keeps files of other processes that are in slots of the changeset.
fn keep_foreign(root: &RootFolder<'_>, intent: &UndoIntent) -> Result<Option<PathBuf>, RootError> {
    let mut kept = None;
    for (number, step) in intent.steps.iter().enumerate() {
        let slot = slot(number);
        let Some(lies) = root.digest(&slot)? else {
            continue;
        };
        let ours = match step.what {
            What::Replace { after, .. } | What::Create { after, .. } => lies == after,
            What::Delete { .. } => false,
        };
        if !ours {
            let folder = match &kept {
                Some(folder) => folder,
                None => kept.insert(new_folder(root)?),
            };
            root.rename(&slot, &folder.join(number.to_string()))?;
        }
    }
    Ok(kept)
}

fn new_folder(root: &RootFolder<'_>) -> Result<PathBuf, RootError> {
    let mut last = Errno::EXIST;
    for number in 1..=MAX_NAMES {
        let folder = PathBuf::from(format!(".gyrus-kept-{number}"));
        match root.make_folder(&folder, Mode::RWXU) {
            Ok(()) => return Ok(folder),
            Err(RootError {
                error: Errno::EXIST,
                ..
            }) => {}
            Err(RootError { error, .. }) => {
                last = error;
                break;
            }
        }
    }
    Err(RootError {
        path: ".gyrus-kept".into(),
        error: last,
    })
}

fn inode(root: &RootFolder<'_>, path: &Path) -> Result<Option<u64>, RootError> {
    Ok(root.stat(path)?.as_ref().map(|stat: &Stat| stat.st_ino))
}
