//! A proposal compared with the files on disk: its diff, or all errors.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    path::{Path, PathBuf},
    time::Instant,
};

use gyrus_contract::Digest;
use gyrus_workspace::{
    Root,
    changeset::{EXECUTE, ancestors, parents},
};
use rustix::fs::{FileType, Stat};

use super::{
    diff::{self, DiffError},
    first_of,
};
use crate::exact::{ExactError, MAX_FILE_BYTES, Replacement};

/// Maximum bytes of a diff. A person reads the whole diff, so a larger one is refused, never
/// shortened.
const MAX_DIFF_BYTES: usize = 1 << 20;

/// Maximum bytes shown of one deleted file, and of all together; the text is for reading only.
const MAX_DELETED_BYTES: usize = 16 << 10;
const MAX_ALL_DELETED_BYTES: usize = 128 << 10;

/// Maximum bytes of a file that can be deleted: its digest identifies the file.
const MAX_GONE_BYTES: u64 = 256 << 20;

/// New state of a file, with the values of its secrets.
pub(super) enum Becomes {
    Content(String),
    Edited(Vec<(String, String)>),
    Patched(String),
    Deleted,
    /// The content stays; only the executable bit changes.
    Same,
}

/// A file of the proposal.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) reason: String,
    /// Digest of the file that the change was made for, if known.
    pub(super) before: Option<Digest>,
    pub(super) becomes: Becomes,
    pub(super) executable: Option<bool>,
}

/// Returns the whole diff. The error lists everything that is wrong, including the errors in
/// `wrong`. When time is up, the rest is still written, but coarsely.
pub(super) fn diff(
    root: &Root<'_>,
    summary: &str,
    files: &[File],
    mut wrong: Vec<String>,
    until: Instant,
) -> Result<String, String> {
    let mut text = String::new();
    comment(&mut text, summary);
    let nothing = text.len();
    let places = Places::of(files);
    let mut deleted = MAX_ALL_DELETED_BYTES;
    for file in files {
        let section = places
            .check(root, file)
            .and_then(|()| Section::of(root, file, until));
        match section {
            Ok(Some(section)) => section.write(file, &mut deleted, &mut text),
            Ok(None) => {}
            Err(what) => wrong.push(format!("`{}` {what}", file.path.display())),
        }
        if text.len() > MAX_DIFF_BYTES {
            let words =
                "the diff is larger than 1 MiB, too much for a review; propose less at once";
            return Err(words.to_owned());
        }
    }
    first_of(&mut wrong);
    if !wrong.is_empty() {
        return Err(format!("the proposal cannot be made: {}", wrong.join("\n")));
    }
    if text.len() == nothing {
        let words = "the proposal changes nothing: all files are like this already";
        return Err(words.to_owned());
    }
    Ok(text)
}

fn comment(text: &mut String, words: &str) {
    for line in words.trim().lines() {
        let _ = writeln!(text, "# {}", line.trim_end());
    }
}

/// The files that exist and those that do not exist after the changes.
struct Places<'a> {
    gone: BTreeSet<&'a Path>,
    there: BTreeSet<&'a Path>,
}

impl<'a> Places<'a> {
    fn of(files: &'a [File]) -> Self {
        let (gone, there): (Vec<_>, Vec<_>) = files
            .iter()
            .partition(|file| matches!(file.becomes, Becomes::Deleted));
        let paths = |files: Vec<&'a File>| files.iter().map(|file| &*file.path).collect();
        Self {
            gone: paths(gone),
            there: paths(there),
        }
    }

    /// Checks that the file can be created at its path.
    fn check(&self, root: &Root<'_>, file: &File) -> Result<(), String> {
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

/// A file that the proposal changes.
struct Section {
    /// Digest of the current file; `None` if there is none yet.
    now: Option<Digest>,
    /// The new executable bit, if it changes.
    executable: Option<bool>,
    body: Body,
}

enum Body {
    Hunks(String),
    /// The file is deleted; holds its old text, if it is text.
    Deleted(Option<String>),
}

impl Section {
    /// Returns `None` if nothing would change.
    fn of(root: &Root<'_>, file: &File, until: Instant) -> Result<Option<Self>, String> {
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
        let body = match (&file.becomes, old.map(|(content, _)| content)) {
            (Becomes::Deleted, Some(old)) => {
                let body = Body::Deleted(String::from_utf8(old).ok());
                return Ok(Some(Self {
                    now,
                    executable: None,
                    body,
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
        if body.is_empty() && executable.is_none() && now.is_some() {
            return Ok(None);
        }
        Ok(Some(Self {
            now,
            executable,
            body: Body::Hunks(body),
        }))
    }

    /// Writes the section. `deleted` is the number of bytes of deleted files that may still be
    /// shown.
    fn write(&self, file: &File, deleted: &mut usize, text: &mut String) {
        let _ = match self.now {
            Some(digest) => writeln!(text, "diff {} {digest}", file.path.display()),
            None => writeln!(text, "diff {} new", file.path.display()),
        };
        comment(text, &file.reason);
        match self.executable {
            Some(true) => text.push_str("executable\n"),
            Some(false) => text.push_str("not executable\n"),
            None => {}
        }
        match &self.body {
            Body::Hunks(hunks) => text.push_str(hunks),
            Body::Deleted(old) => {
                text.push_str("deleted\n");
                let old = old.as_deref().unwrap_or_default();
                let hunk = diff::hunks(old, "", Instant::now());
                if hunk.len() <= MAX_DELETED_BYTES.min(*deleted) {
                    *deleted -= hunk.len();
                    text.push_str(&hunk);
                }
            }
        }
    }
}

/// Returns an error for a file that a changeset cannot replace or delete.
fn ordinary(stat: &Stat) -> Result<(), String> {
    let why = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_mode & 0o222 == 0 => "is protected against writing",
        FileType::RegularFile if stat.st_nlink > 1 => {
            "has hard links, so that changing it could change a file elsewhere"
        }
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "is a folder; name the files in it",
        FileType::Symlink => "is a symbolic link by now",
        _ => "is no regular file",
    };
    Err(why.to_owned())
}

/// Returns the hunks for a file with new content.
fn hunks(file: &File, old: Vec<u8>, until: Instant) -> Result<String, String> {
    let no_text = || "is not UTF-8 text, so it can only be deleted".to_owned();
    let File { path, becomes, .. } = file;
    if matches!(becomes, Becomes::Patched(diff) if diff.is_empty()) {
        return Ok(String::new());
    }
    let old = String::from_utf8(old).map_err(|_| no_text())?;
    let new = match becomes {
        Becomes::Content(content) => return Ok(diff::hunks(&old, content, until)),
        Becomes::Edited(edits) => edited(path, old.clone().into_bytes(), edits)?,
        Becomes::Patched(diff) => diff::patch(old.as_bytes(), diff).map_err(fits_not)?,
        Becomes::Same | Becomes::Deleted => return Ok(String::new()),
    };
    let new = String::from_utf8(new).map_err(|_| no_text())?;
    Ok(diff::hunks(&old, &new, until))
}

fn fits_not(error: DiffError) -> String {
    format!("does not fit its diff: {error}")
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
