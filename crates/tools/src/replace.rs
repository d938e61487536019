//! Replaces the content of a file atomically and keeps its mode.

use std::{
    fs::File,
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, Write as _},
};

use gyrus_workspace::Parent;
use rustix::{
    fs::{
        Access, AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid, accessat, fchmod, fchown, fsync,
        openat, renameat, statat, unlinkat,
    },
    io::Errno,
};

use crate::place::{AccessPlace, PlaceError, special};

/// Maximum number of attempts to find an unused name for the temporary file.
const MAX_NAME_ATTEMPTS: u32 = 8;

/// Returns the file to be replaced; `None` if there is none yet. Fails if it is not a regular file,
/// or may not be written.
pub(crate) fn target(
    place: &AccessPlace<'_>,
    parent: &Parent<'_>,
) -> Result<Option<Stat>, PlaceError> {
    let failed = |error| place.error(error);
    let stat = match statat(&parent.folder, parent.name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Some("a folder; name a file in it"),
        FileType::Symlink => return Err(failed(Errno::LOOP)),
        _ => special(&stat),
    };
    if let Some(kind) = kind {
        let path = place.given().to_owned();
        return Err(PlaceError::Special { path, kind });
    }
    // Replacing needs no right to the file itself, but its owner meant something by it.
    accessat(
        &parent.folder,
        parent.name,
        Access::WRITE_OK,
        AtFlags::empty(),
    )
    .map_err(failed)?;
    Ok(Some(stat))
}

/// Replaces a file by writing beside it and renaming, so that the file always has either the old
/// content or the new.
pub(crate) fn replace(
    parent: &Parent<'_>,
    before: Option<&Stat>,
    content: &[u8],
) -> Result<(), Errno> {
    // A descriptor for the path alone cannot be synced.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(&parent.folder, ".", flags, Mode::empty())?;
    let (mut file, name) = temporary(&parent.folder)?;
    let written = fill(&mut file, before, content)
        .and_then(|()| renameat(&parent.folder, &name, &parent.folder, parent.name));
    if let Err(error) = written {
        // The file never had its real name; if even this fails, only a stray file is left.
        let _ = unlinkat(&parent.folder, &name, AtFlags::empty());
        return Err(error);
    }
    fsync(&folder)
}

/// Creates a file with an unused name. The name of the target may be too long to append to.
fn temporary(folder: &impl std::os::fd::AsFd) -> Result<(File, String), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..MAX_NAME_ATTEMPTS {
        // Its keys are random in each process and differ each time.
        let name = format!(
            ".gyrus-write-{:016x}",
            RandomState::new().build_hasher().finish()
        );
        match openat(folder, &name, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => return Ok((file.into(), name)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

fn fill(file: &mut File, before: Option<&Stat>, content: &[u8]) -> Result<(), Errno> {
    let errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    file.write_all(content).map_err(errno)?;
    if let Some(stat) = before {
        // Only root can keep another owner; otherwise the file becomes the current user's.
        let owner = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
        let _ = fchown(&*file, Some(owner.0), Some(owner.1));
        fchmod(&*file, Mode::from_raw_mode(stat.st_mode))?;
    }
    fsync(&*file)
}
