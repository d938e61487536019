//! A log of the messages of a process that nobody watches, for whoever looks for a cause later.
//!
//! Every line is one of standard error, after its time. A full file becomes `NAME.log.1`, in place of
//! the one before.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// Size in bytes at which a file is full.
const FULL: u64 = 1 << 20;

static LOG: OnceLock<PathBuf> = OnceLock::new();

/// Writes from now on into this file too whatever this process writes to standard error with
/// [`put`](super::put). The file's folder is made.
pub fn keep_log(path: PathBuf) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(&path))?;
    let _ = LOG.set(path);
    Ok(())
}

/// Writes a message into the log, if one is kept. A log that cannot be written holds nothing up.
pub(super) fn note(text: &str) {
    if let Some(path) = LOG.get() {
        let _ = append(path, text);
    }
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|file| file.len() >= FULL) {
        fs::rename(path, path.with_extension("log.1"))?;
    }
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).mode(0o600).open(path)?;
    let time = gyrus_text::utc(gyrus_kernel::now_ms());
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines: String = lines.map(|line| format!("{time} {line}\n")).collect();
    file.write_all(lines.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_followed_by_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve.log");
        append(&path, "one\n\ntwo\n").unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let ends: Vec<_> = text.lines().map(|line| &line[line.len() - 4..]).collect();
        assert_eq!(ends, [" one", " two"], "{text}");
        fs::write(&path, vec![b'x'; FULL as usize]).unwrap();
        append(&path, "three").unwrap();
        assert!(fs::read_to_string(&path).unwrap().ends_with(" three\n"));
        let before = fs::metadata(folder.path().join("serve.log.1")).unwrap();
        assert_eq!(before.len(), FULL);
    }
}
