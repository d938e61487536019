//! What a tree of changes says about the tree below it.
//!
//! The kernel's overlay puts whatever is opened for writing, created, changed or deleted into its
//! upper folder, so an empty folder there is proof that nothing was touched.

use std::{
    fs,
    io::{self, Read},
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

/// Folders where a file may be made and deleted again unpunished: programs' scratch paper.
const SCRATCH: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// More differences than these are not listed.
const MOST: usize = 12;

/// Whether nothing at all happened since the overlay was mounted.
pub(super) fn is_untouched(upper: &Path) -> io::Result<bool> {
    Ok(fs::read_dir(upper)?.next().is_none())
}

/// How `upper` changes `before`, one sentence a difference.
pub(super) fn differences(upper: &Path, before: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    folder(upper, before, Path::new("/"), &mut found)?;
    Ok(found)
}

fn folder(upper: &Path, before: &Path, name: &Path, found: &mut Vec<String>) -> io::Result<()> {
    let mut entries: Vec<PathBuf> = fs::read_dir(upper)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    entries.sort();
    for path in entries {
        if found.len() >= MOST {
            return Ok(());
        }
        let last = path.file_name().unwrap_or_default();
        entry(&path, &before.join(last), &name.join(last), found)?;
    }
    Ok(())
}

fn entry(upper: &Path, before: &Path, name: &Path, found: &mut Vec<String>) -> io::Result<()> {
    let new = fs::symlink_metadata(upper)?;
    let mut tell = |what: &str| found.push(format!("{}: {what}", name.display()));
    if new.file_type().is_char_device() && new.rdev() == 0 {
        tell("deleted");
        return Ok(());
    }
    let Ok(old) = fs::symlink_metadata(before) else {
        tell("created");
        return Ok(());
    };
    if old.file_type() != new.file_type() {
        tell("is of another type");
    } else if (old.mode(), old.uid(), old.gid()) != (new.mode(), new.uid(), new.gid()) {
        tell("has another mode or owner");
    } else if new.is_dir() {
        let before_below = found.len();
        folder(upper, before, name, found)?;
        let is_scratch = SCRATCH.iter().any(|scratch| Path::new(scratch) == name);
        let changed = (old.mtime(), old.mtime_nsec()) != (new.mtime(), new.mtime_nsec());
        if found.len() == before_below && changed && !is_scratch {
            found.push(format!(
                "{}: something was made in it and deleted again",
                name.display()
            ));
        }
    } else if new.is_symlink() {
        if fs::read_link(upper)? != fs::read_link(before)? {
            tell("points elsewhere");
        }
    } else if old.len() != new.len() || (new.is_file() && !same_bytes(upper, before)?) {
        tell("has another content");
    } else if (old.mtime(), old.mtime_nsec()) != (new.mtime(), new.mtime_nsec()) {
        tell("has another time of change");
    } else {
        tell("was opened for writing");
    }
    Ok(())
}

fn same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    let read = |path: &Path| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        fs::File::open(path)?
            .take(64 << 20)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    Ok(read(one)? == read(other)?)
}
