//! What applying is about to do, written down before the first file moves, and taking it back.
//!
//! Every file of a changeset has a slot in [`HOME`]: the new file waits there, and the old one
//! lies there afterwards. Each step is one call of the system that moves a file between its slot
//! and its path, so where the two files lie says whether it was done, however it was cut off.
//! Taking back can itself be cut off anywhere, and then be begun again.

use std::path::{Path, PathBuf};

use gyrus_contract::Digest;
use rustix::{
    fs::{Mode, Stat},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::root::{Failed, Root};

/// Where slots are, in the workspace: a rename does not leave its file system.
pub const HOME: &str = ".gyrus-changeset";

/// Attempts at a name for what somebody else wrote meanwhile.
const MAX_NAMES: u32 = 10_000;

/// All that a later process needs to take a changeset back.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Intent {
    pub(super) version: u32,
    /// In the order in which they are done.
    pub(super) steps: Vec<Step>,
    /// Folders that deleting empties, the deepest first, with their modes.
    pub(super) emptied: Vec<(PathBuf, u32)>,
    /// Folders that are missing, the highest first.
    pub(super) made: Vec<PathBuf>,
}

/// One file, by its place in [`Intent::steps`].
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) path: PathBuf,
    pub(super) what: What,
}

/// What happens to a file. Files are told apart by their inodes.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    /// The new file and the old one change places.
    Replace { old: u64, new: u64, after: Digest },
    /// The new file leaves its slot.
    Create { new: u64, after: Digest },
    /// The old file moves into the slot.
    Delete { old: u64 },
}

pub(super) fn slot(number: usize) -> PathBuf {
    Path::new(HOME).join(number.to_string())
}

pub(super) fn record() -> PathBuf {
    Path::new(HOME).join("intent")
}

/// The unfinished changeset that lies in the workspace, if there is one.
pub(super) fn unfinished(root: &Root<'_>) -> Result<Option<Intent>, Failed> {
    let record = record();
    if root.stat(&record)?.is_none() {
        return Ok(None);
    }
    let (bytes, _) = root.read(&record)?;
    match serde_json::from_slice(&bytes) {
        Ok(intent) => Ok(Some(intent)),
        Err(_) => Err(Failed {
            path: record,
            error: Errno::BADMSG,
        }),
    }
}

/// Puts the tree back as it was before. What somebody else wrote over a file of the changeset is
/// kept: the folder with it is named.
pub(super) fn take_back(root: &Root<'_>, intent: &Intent) -> Result<Option<PathBuf>, Failed> {
    let deletes = |step: &&(usize, &Step)| matches!(step.1.what, What::Delete { .. });
    let numbered: Vec<_> = intent.steps.iter().enumerate().collect();
    for (number, step) in numbered.iter().rev().filter(|step| !deletes(step)) {
        take_back_step(root, &slot(*number), step)?;
    }
    for folder in intent.made.iter().rev() {
        match root.remove_folder(folder) {
            // Never made, or in use by somebody else by now: then it is to stay.
            Ok(()) => {}
            Err(Failed {
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

fn take_back_step(root: &Root<'_>, slot: &Path, step: &Step) -> Result<(), Failed> {
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

/// Whatever lies in a slot now and is not of the changeset was written by somebody else.
fn keep_foreign(root: &Root<'_>, intent: &Intent) -> Result<Option<PathBuf>, Failed> {
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

fn new_folder(root: &Root<'_>) -> Result<PathBuf, Failed> {
    let mut last = Errno::EXIST;
    for number in 1..=MAX_NAMES {
        let folder = PathBuf::from(format!(".gyrus-kept-{number}"));
        match root.make_folder(&folder, Mode::RWXU) {
            Ok(()) => return Ok(folder),
            Err(Failed {
                error: Errno::EXIST,
                ..
            }) => {}
            Err(Failed { error, .. }) => {
                last = error;
                break;
            }
        }
    }
    Err(Failed {
        path: ".gyrus-kept".into(),
        error: last,
    })
}

fn inode(root: &Root<'_>, path: &Path) -> Result<Option<u64>, Failed> {
    Ok(root.stat(path)?.as_ref().map(|stat: &Stat| stat.st_ino))
}
