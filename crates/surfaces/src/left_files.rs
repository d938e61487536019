//! The files that a run left in its folder.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::log_name;
use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::projection::{Happening, HappeningPart, Projection};

/// Paths in the workspace of files that calls produced, newest last.
#[derive(Debug, Clone, Default)]
pub struct LeftFiles(Vec<String>);

impl LeftFiles {
    /// Reads the journal of a run.
    ///
    /// # Errors
    /// There is no such run, or its journal cannot be read.
    pub fn of_run(store: &Store, run: RunId) -> Result<Self, gyrus_journal::Error> {
        let reader = store.reader(&log_name(run))?;
        let (mut projection, mut files) = (Projection::new(), Self::default());
        for entry in reader.entries(1)? {
            for happening in projection.take(&entry?, &reader) {
                files.note(&happening);
            }
        }
        Ok(files)
    }

    /// Adds the files of an event.
    pub fn note(&mut self, happening: &Happening) {
        for part in &happening.parts {
            if let HappeningPart::Files(paths) = part {
                self.0.retain(|file| !paths.contains(file));
                self.0.extend(paths.iter().cloned());
            }
        }
    }

    /// Returns the newest files, at most `most`.
    pub fn newest(&self, most: usize) -> &[String] {
        &self.0[self.0.len().saturating_sub(most)..]
    }
}

/// Reads at most `most` bytes of a file that a run produced, without following links, which the run
/// may have made.
///
/// # Errors
/// The path is not a regular file below the workspace, or the file is too large or unreadable.
pub fn read_left_file(workspace: &Path, path: &str, most: usize) -> io::Result<Vec<u8>> {
    let folder = File::open(workspace)?;
    let file = rustix::fs::openat2(
        &folder,
        path,
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )?;
    let file = File::from(file);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(io::Error::other(format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn nothing_is_read_through_a_link_or_outside() {
        let folder = tempfile::tempdir().unwrap();
        let (work, outside) = (folder.path().join("work"), folder.path().join("outside"));
        fs::create_dir(&work).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("key"), "secret").unwrap();
        fs::write(work.join("three"), "abc").unwrap();
        symlink(&outside, work.join("link")).unwrap();
        symlink(outside.join("key"), work.join("key")).unwrap();
        assert_eq!(read_left_file(&work, "three", 3).unwrap(), b"abc");
        assert!(read_left_file(&work, "three", 2).is_err());
        for path in [
            "link/key",
            "key",
            "../outside/key",
            "/etc/passwd",
            ".",
            "",
            "none",
        ] {
            assert!(read_left_file(&work, path, 100).is_err(), "{path}");
        }
    }
}
