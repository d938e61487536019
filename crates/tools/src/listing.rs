//! Lists a folder as text.

use std::{
    ffi::OsStr,
    fmt::Write as _,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
};

use gyrus_text::counted;
use rustix::{
    fs::{AtFlags, Dir, FileType, Stat, readlinkat, statat},
    io::Errno,
};

use crate::walk;

/// Maximum number of names in a listing, if they are of usual length.
const MAX_SHOWN: usize = 1_000;

/// Maximum bytes of text of a listing; no further name is shown after it.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Maximum number of names that are read and counted; of a folder with more, any may be shown.
const MAX_READ: usize = 100_000;

/// Lists the folder, sorted by name, a line each: `name`, size, and `/` or `->` for folders and
/// links. Also returns the paths below `given`.
pub(crate) fn list(folder: &OwnedFd, given: &str) -> Result<(String, Vec<String>), Errno> {
    let mut names = Vec::new();
    let mut more = false;
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if names.len() == MAX_READ {
            more = true;
            break;
        }
        names.push(name.to_vec());
    }
    if names.is_empty() {
        return Ok(("(the folder is empty)".to_owned(), Vec::new()));
    }
    names.sort_unstable();
    let mut text = String::new();
    let mut paths = Vec::new();
    let mut shown = 0;
    while shown < names.len().min(MAX_SHOWN) && text.len() < MAX_TEXT_BYTES {
        let name = OsStr::from_bytes(&names[shown]);
        text.push_str(&line(folder, name));
        paths.push(walk::shown(given, Path::new(name)) + slash(folder, name));
        text.push('\n');
        shown += 1;
    }
    if shown < names.len() {
        let than = if more { "more than " } else { "" };
        let _ = write!(
            text,
            "[{shown} of {than}{} entries; use `glob` for others]",
            names.len()
        );
    }
    Ok((text, paths))
}

/// Returns the end of a path in a list: `/` for a folder.
fn slash(folder: &OwnedFd, name: &OsStr) -> &'static str {
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    let is_folder = |stat: Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if stat.is_ok_and(is_folder) { "/" } else { "" }
}

pub(crate) fn line(folder: &OwnedFd, name: &OsStr) -> String {
    let shown = printable(name);
    // Deleted since, or out of reach: the name alone is still true.
    let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return shown;
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => format!("{shown}/"),
        FileType::RegularFile => format!("{shown}  {}", counted(stat.st_size, "byte")),
        FileType::Symlink => match readlinkat(folder, name, Vec::new()) {
            Ok(target) => format!(
                "{shown} -> {}",
                printable(OsStr::from_bytes(target.as_bytes()))
            ),
            Err(_) => format!("{shown} ->"),
        },
        _ => format!(
            "{shown}  ({})",
            crate::place::special(&stat).unwrap_or("special")
        ),
    }
}

/// Returns a name on one line, quoted and escaped if it has unseen characters or is not UTF-8.
pub(crate) fn printable(name: &OsStr) -> String {
    match name.to_str() {
        Some(text)
            if !text.contains('\n') && gyrus_text::unseen_when_reading(text).next().is_none() =>
        {
            text.to_owned()
        }
        _ => format!("{name:?}"),
    }
}
