//! Files that a person or a folder names: a named pipe among them would block whoever opens it until
//! another program writes to it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

/// Opens a regular file for reading, without blocking.
///
/// # Errors
/// Those of the operating system; [`io::ErrorKind::IsADirectory`] for a folder, and
/// [`io::ErrorKind::InvalidInput`] for a named pipe, a socket, a device, or a link to nothing: who put it
/// there wants a file to count.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path);
    let file = match file {
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
            return Err(unusable("it is a link to a file that does not exist"));
        }
        file => file?,
    };
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(rustix::io::Errno::ISDIR.into());
    }
    if !kind.is_file() {
        return Err(unusable(
            "it is a pipe, a socket or a device, not a regular file",
        ));
    }
    Ok(file)
}

/// Reads a regular file, without blocking.
///
/// # Errors
/// Those of [`open_regular`] and of reading.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a regular file in UTF-8, without blocking.
///
/// # Errors
/// Those of [`open_regular`] and of reading; [`io::ErrorKind::InvalidData`] for other bytes.
pub fn read_regular_text(path: &Path) -> io::Result<String> {
    io::read_to_string(open_regular(path)?)
}

fn unusable(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_named_pipe_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        for (path, kind) in [
            (pipe.as_path(), io::ErrorKind::InvalidInput),
            (Path::new("/dev/zero"), io::ErrorKind::InvalidInput),
            (folder.path(), io::ErrorKind::IsADirectory),
            (Path::new("/nowhere"), io::ErrorKind::NotFound),
        ] {
            assert_eq!(open_regular(path).unwrap_err().kind(), kind);
        }
    }
}
