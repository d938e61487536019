//! Files below one folder, opened part by part so that no symbolic link is ever followed: neither
//! one that was there nor one that is swapped in between.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat},
};

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A folder held open. Paths are relative to it, with `/` between plain parts.
pub(crate) struct Root(OwnedFd);

impl Root {
    /// Opens a folder, following links in its own path.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(CWD, path, flags, Mode::empty())?))
    }

    /// The folder at `path`; the root itself if it is empty.
    pub(crate) fn folder(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let mut folder = rustix::fs::openat(&self.0, c".", FOLDER, Mode::empty())?;
        for part in path
            .split(|byte| *byte == b'/')
            .filter(|part| !part.is_empty())
        {
            folder = rustix::fs::openat(&folder, part, FOLDER, Mode::empty())?;
        }
        Ok(folder)
    }

    /// The folder that holds `path`, and the last part.
    pub(crate) fn parent<'a>(&self, path: &'a [u8]) -> io::Result<(OwnedFd, &'a [u8])> {
        match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => Ok((self.folder(&path[..slash])?, &path[slash + 1..])),
            None => Ok((self.folder(b"")?, path)),
        }
    }
}

/// The names in a folder, without `.` and `..`, in the order of the file system.
pub(crate) fn names(
    folder: &OwnedFd,
) -> io::Result<impl Iterator<Item = io::Result<Vec<u8>>> + use<>> {
    let names = Dir::read_from(folder)?.filter_map(|entry| match entry {
        Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => None,
        Ok(entry) => Some(Ok(entry.file_name().to_bytes().to_vec())),
        Err(e) => Some(Err(e.into())),
    });
    Ok(names)
}

/// What a name stands for, links not followed.
pub(crate) fn stat(folder: impl AsFd, name: &[u8]) -> io::Result<Stat> {
    Ok(rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Opens a regular file for reading. `None` if the name stands for something else by now; a pipe
/// does not block.
pub(crate) fn open_file(folder: impl AsFd, name: &[u8]) -> io::Result<Option<File>> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::LOOP) => return Ok(None),
        Err(e) => return Err(e.into()),
    };
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    Ok((kind == FileType::RegularFile).then_some(file))
}

/// The content, of which at most `limit` bytes and one more are read.
pub(crate) fn read(file: &File, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content)?;
    Ok(content)
}
