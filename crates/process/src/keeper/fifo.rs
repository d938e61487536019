//! Named pipes between a command that goes on beside its call and the run's process.

use std::{fs, fs::File, io, path::Path};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mknodat, open};

/// Creates a named pipe that only this user can open, replacing any file of its name, and opens
/// both of its ends. Reading and writing never wait.
///
/// # Errors
/// The system refuses it, or something else has its name by now.
pub fn make_fifo(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = open(path, flags, Mode::empty())?;
    // A command of the run may have put something else there meanwhile.
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::Fifo {
        return Err(io::Error::other("it is not a pipe"));
    }
    Ok(file.into())
}
