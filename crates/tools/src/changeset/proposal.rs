//! A proposal compared with the files on disk: its diff, or all errors.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Instant,
};

use gyrus_contract::{Digest, FileDiff, Proposal};
use gyrus_workspace::{
    RootFolder,
    changeset::{EXECUTE, ancestors, parents},
    patch,
};
use rustix::fs::{FileType, Stat};

use super::{diff, first_of};
use crate::exact::{ExactError, MAX_FILE_BYTES, Replacement};

/// Maximum bytes of a diff. A person reads the whole diff, so a larger one is refused, never
/// shortened.
const MAX_DIFF_BYTES: usize = 1_900_000;

/// Maximum size of one deleted file that is shown, and of all together, in bytes; the text is for
/// reading only.
const MAX_DELETED_BYTES: usize = 16 << 10;
const MAX_ALL_DELETED_BYTES: usize = 128 << 10;

/// Maximum size of a file that can be deleted, in bytes; its digest identifies the file.
const MAX_GONE_BYTES: u64 = 256 << 20;

/// New state of a file, with the values of its secrets.
pub(super) enum Becomes {
    Content(String),
    Edited(Vec<(String, String)>),
    Patched(String),
    Deleted,
    /// The content stays the same, and only the executable bit changes.
    Same,
}

pub(super) struct ProposedFile {
    pub(super) path: PathBuf,
    pub(super) reason: String,
    /// Digest of the file for which the change was made, if known.
    pub(super) before: Option<Digest>,
    pub(super) becomes: Becomes,
    pub(super) executable: Option<bool>,
}

/// Compares the files with the changes. The error lists everything that is wrong, including the
/// errors in `wrong`. When time is up, the rest is still compared, but coarsely.
pub(super) fn compare(
    root: &RootFolder<'_>,
    summary: &str,
    files: &[ProposedFile],
    mut wrong: Vec<String>,
    until: Instant,
) -> Result<Proposal, String> {
    let mut proposal = Proposal {
        summary: summary.trim().to_owned(),
        changes: Vec::new(),
    };
    let mut bytes = proposal.to_string().len();
    let places = FilesAfter::of(files);
    let mut deleted = MAX_ALL_DELETED_BYTES;
    for file in files {
        let change = places
            .check(root, file)
            .and_then(|()| change(root, file, &mut deleted, until));
        match change {
            Ok(Some(change)) => {
                bytes += change.to_string().len();
                proposal.changes.push(change);
            }
            Ok(None) => {}
            Err(what) => wrong.push(format!("`{}` {what}", file.path.display())),
        }
        if bytes > MAX_DIFF_BYTES {
            let words =
                "the diff is larger than 1.9 MB, too much for a review; propose less at once";
            return Err(words.to_owned());
        }
    }
    first_of(&mut wrong);
    if !wrong.is_empty() {
        return Err(format!("the proposal cannot be made: {}", wrong.join("\n")));
    }
    if proposal.changes.is_empty() {
        let words = "the proposal changes nothing: all files are like this already";
        return Err(words.to_owned());
    }
    Ok(proposal)
}

/// The paths that exist after the changes, and those that do not.
struct FilesAfter<'a> {
    gone: BTreeSet<&'a Path>,
    there: BTreeSet<&'a Path>,
}

impl<'a> FilesAfter<'a> {
    fn of(files: &'a [ProposedFile]) -> Self {
        let (gone, there): (Vec<_>, Vec<_>) = files
            .iter()
            .partition(|file| matches!(file.becomes, Becomes::Deleted));
        let paths = |files: Vec<&'a ProposedFile>| files.iter().map(|file| &*file.path).collect();
        Self {
            gone: paths(gone),
            there: paths(there),
        }
    }

    fn check(&self, root: &RootFolder<'_>, file: &ProposedFile) -> Result<(), String> {
        if self.gone.contains(&*file.path) {
            return Ok(());
        }
        if let Some(above) = ancestors(&file.path).find(|above| self.there.contains(above)) {
            return Err(format!("would lie below the file `{}`", above.display()));
        }
        match parents(root, &file.path, &self.gone) {
            Ok(None) => Ok(()),
            Ok(Some(why)) => Err(why.to_owned()),
            Err(error) => Err(format!("cannot be looked at: {error}")),
        }
    }
}

/// Compares one file; `None` if nothing would change. `deleted` is the number of bytes of deleted
/// files that may still be shown.
fn change(
    root: &RootFolder<'_>,
    file: &ProposedFile,
    deleted: &mut usize,
    until: Instant,
) -> Result<Option<FileDiff>, String> {
    let failed = |error| format!("cannot be looked at: {error}");
    let old = match root.stat(&file.path).map_err(failed)? {
        None => None,
        Some(stat) => {
            ordinary(&stat)?;
            let is_deleted = matches!(file.becomes, Becomes::Deleted);
            let most = if is_deleted {
                MAX_GONE_BYTES
            } else {
                MAX_FILE_BYTES
            };
            if stat.st_size.unsigned_abs() > most {
                let most = most >> 20;
                return Err(format!(
                    "is larger than {most} MB, too large for a changeset"
                ));
            }
            let (content, stat) = root.read(&file.path).map_err(failed)?;
            Some((content, stat))
        }
    };
    let now = old.as_ref().map(|(content, _)| Digest::of(content));
    if file.before.is_some() && file.before != now {
        return Err("was changed meanwhile".to_owned());
    }
    let executes = |stat: &Stat| stat.st_mode & EXECUTE != 0;
    let was = old.as_ref().is_some_and(|(_, stat)| executes(stat));
    let unchanged = FileDiff {
        path: file.path.display().to_string(),
        before: now,
        reason: file.reason.trim().to_owned(),
        ..FileDiff::default()
    };
    let hunks = match (&file.becomes, old.map(|(content, _)| content)) {
        (Becomes::Deleted, Some(old)) => {
            let text = std::str::from_utf8(&old).ok();
            let hunks = text.map(|old| patch::hunks(old, "", Instant::now()));
            let most = MAX_DELETED_BYTES.min(*deleted);
            let hunks = hunks.filter(|hunks| hunks.len() <= most);
            *deleted -= hunks.as_ref().map_or(0, String::len);
            return Ok(Some(FileDiff {
                deleted: true,
                git_id: hunks.is_none().then(|| patch::git_id(&old)),
                hunks: hunks.unwrap_or_default(),
                ..unchanged
            }));
        }
        (Becomes::Deleted | Becomes::Same, None) => return Err("is not there".to_owned()),
        (Becomes::Edited(_), None) => {
            return Err("is not there; give its whole `content`".to_owned());
        }
        (Becomes::Same, Some(_)) => String::new(),
        (_, old) => hunks(file, old.unwrap_or_default(), until)?,
    };
    let executable = file.executable.filter(|wanted| *wanted != was);
    if hunks.is_empty() && executable.is_none() && now.is_some() {
        return Ok(None);
    }
    Ok(Some(FileDiff {
        executable,
        hunks,
        ..unchanged
    }))
}

/// Returns an error for a file that cannot be replaced or deleted by a changeset.
fn ordinary(stat: &Stat) -> Result<(), String> {
    let why = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_mode & 0o222 == 0 => "is protected against writing",
        FileType::RegularFile if stat.st_nlink > 1 => {
            "has hard links, so that changing it could change a file elsewhere"
        }
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "is a folder; name the files in it",
        FileType::Symlink => "is a symbolic link by now",
        _ => "is not a regular file",
    };
    Err(why.to_owned())
}

/// Returns the hunks for a file with new content.
fn hunks(file: &ProposedFile, old: Vec<u8>, until: Instant) -> Result<String, String> {
    let no_text = || "is not UTF-8 text, so it can only be deleted".to_owned();
    let ProposedFile { path, becomes, .. } = file;
    if matches!(becomes, Becomes::Patched(diff) if diff.is_empty()) {
        return Ok(String::new());
    }
    let old = String::from_utf8(old).map_err(|_| no_text())?;
    let new = match becomes {
        Becomes::Content(content) => return Ok(patch::hunks(&old, content, until)),
        Becomes::Edited(edits) => edited(path, old.clone().into_bytes(), edits)?,
        Becomes::Patched(diff) => diff::patch(old.as_bytes(), diff)
            .map_err(|error| format!("does not fit its diff: {error}"))?,
        Becomes::Same | Becomes::Deleted => return Ok(String::new()),
    };
    let new = String::from_utf8(new).map_err(|_| no_text())?;
    Ok(patch::hunks(&old, &new, until))
}

fn edited(
    path: &Path,
    mut content: Vec<u8>,
    edits: &[(String, String)],
) -> Result<Vec<u8>, String> {
    let name = path.display().to_string();
    for (number, (old, new)) in (1..).zip(edits) {
        let replacement = Replacement {
            old: old.clone(),
            new: new.clone(),
            all: false,
        };
        let made = replacement.made_in(&name, &content).map_err(|error| {
            let more = match &error {
                ExactError::Empty => ", or give the whole `content`",
                ExactError::Same
                | ExactError::Missing { .. }
                | ExactError::Several { .. }
                | ExactError::TooLarge { .. } => "",
            };
            format!("cannot be edited (edit {number}): {error}{more}")
        })?;
        content = made.content;
    }
    Ok(content)
}
