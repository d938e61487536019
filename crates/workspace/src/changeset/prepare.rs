//! All steps before the first file moves: checking that every file is as the changeset expects,
//! writing the new ones to their slots, and writing down what will be done.

use std::{collections::BTreeSet, io::Write as _, path::Path};

use gyrus_contract::Digest;
use rustix::{
    fs::{FileType, Gid, Mode, Stat, Uid, fchmod, fchown, fstat},
    io::Errno,
};

use super::{
    change::{After, ApplyError, EXECUTE, FileChange, conflict},
    intent::{HOME, IntentStep, UndoIntent, What, record, slot},
};
use crate::root::{RootError, RootFolder, failed};

/// Checks the files, writes new ones to their slots, and records the intent.
pub(super) fn prepare(
    root: &RootFolder<'_>,
    changes: &[FileChange],
) -> Result<UndoIntent, ApplyError> {
    let seen = look(root, changes)?;
    let mut intent = UndoIntent {
        version: 1,
        ..UndoIntent::default()
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
        intent.steps.push(IntentStep { path, what });
    }
    folders(root, &mut intent)?;
    root.sync()?;
    write_down(root, &intent)?;
    Ok(intent)
}

/// Returns the current state of each path, if all are as the changeset expects.
///
/// # Errors
/// The conflicts, or a path that cannot be examined.
pub fn look(
    root: &RootFolder<'_>,
    changes: &[FileChange],
) -> Result<Vec<Option<Stat>>, ApplyError> {
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
                _ => Some("is not a regular file"),
            },
        };
        wrong.extend(why.map(|why| format!("`{}` {why}", change.path.display())));
        seen.push(stat);
    }
    if wrong.is_empty() {
        Ok(seen)
    } else {
        Err(ApplyError::Conflicts(wrong))
    }
}

/// Returns the reason why the folders above a new file cannot exist: one of them is another kind of
/// file, which stays.
///
/// # Errors
/// When they cannot be examined.
pub fn parents(
    root: &RootFolder<'_>,
    path: &Path,
    gone: &BTreeSet<&Path>,
) -> Result<Option<&'static str>, RootError> {
    for above in ancestors(path) {
        let Some(stat) = root.stat(above)? else {
            continue;
        };
        let folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        return Ok((!folder && !gone.contains(above)).then_some("would lie below a file"));
    }
    Ok(None)
}

/// Returns the folders above a path, below the workspace, the deepest first.
pub fn ancestors(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors()
        .skip(1)
        .filter(|above| !above.as_os_str().is_empty())
}

/// Writes the new file to its slot and returns its inode.
fn stage(
    root: &RootFolder<'_>,
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
        // Only root can keep another owner; otherwise the file becomes the current user's.
        let owner = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        let _ = fchown(&file, Some(owner.0), Some(owner.1));
        let mode = match after.executable {
            // Users who may read it may execute it.
            Some(true) => old.st_mode | ((old.st_mode & 0o444) >> 2),
            Some(false) => old.st_mode & !EXECUTE,
            None => old.st_mode,
        };
        fchmod(&file, Mode::from_raw_mode(mode))
    })?;
    let stat = fstat(&file).map_err(|error| failed(&slot, error))?;
    Ok(stat.st_ino)
}

/// Determines the folders to create, and those that will be left empty.
fn folders(root: &RootFolder<'_>, intent: &mut UndoIntent) -> Result<(), RootError> {
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
    // A set lists a folder before its contents.
    emptied.reverse();
    (intent.made, intent.emptied) = (made, emptied);
    Ok(())
}

/// Writes the intent to disk atomically.
fn write_down(root: &RootFolder<'_>, intent: &UndoIntent) -> Result<(), RootError> {
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
