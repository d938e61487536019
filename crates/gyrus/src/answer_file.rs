//! The file of `--answer-file`: the answer as the person's own terminal shows it, for them alone.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use gyrus_kernel::{DriveResult, Ending};
use gyrus_text::readable;

use crate::failure::Failure;

/// Checks before a run begins that the answer file can be created.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    let wrong = |what: &str| Failure::usage(format!("--answer-file {}: {what}", path.display()));
    if fs::symlink_metadata(path).is_ok() {
        return Err(wrong("the file exists already").hint("name a new one, or remove it"));
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) || path.file_name().is_none() {
        return Err(wrong("its folder does not exist"));
    }
    Ok(())
}

/// Writes the answer of a run that reached its goal into a new file that nobody else can read.
pub(crate) fn write(path: &Path, finished: &DriveResult) -> Result<(), Failure> {
    let Ending::Reached { claim, .. } = &finished.ending else {
        return Ok(());
    };
    let answer = finished.for_terminal.as_ref().unwrap_or(&claim.answer);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| writeln!(file, "{}", readable(answer.trim_end())));
    written.map_err(|error| {
        Failure::usage(format!(
            "the answer cannot be written to {}",
            path.display()
        ))
        .because(&error)
    })
}
