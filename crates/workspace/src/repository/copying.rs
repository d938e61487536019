//! Copies single files between the real git directory and its copies.
//!
//! The private copy was written by commands: obstacles there (a link, a folder in the place of a
//! file, a folder without permissions) are removed, and links are not followed.

use std::{fs::File, io, path::Path};

use rustix::{
    fs::{
        AtFlags, Mode, OFlags, Timespec, Timestamps, fchmod, fstat, futimens, mkdirat, openat,
        readlinkat, symlinkat, unlinkat,
    },
    io::Errno,
};

use super::{
    RepositoryError,
    folder::{GitFolder, PathKind},
    stamps::PathStamp,
};
use crate::root;

/// Maximum bytes of a file that is copied.
const MAX_COPY: u64 = 1 << 30;

/// Copies a file, a link or a folder (without its contents) to the same path of a copy, with its
/// permissions and its time of last change, by which git judges an index.
pub(super) fn copy(
    from: &GitFolder,
    to: &GitFolder,
    path: &Path,
    stamp: &PathStamp,
) -> Result<(), RepositoryError> {
    if stamp.size() > MAX_COPY {
        let path = from.path().join(path);
        return Err(RepositoryError::TooLarge {
            path,
            limit: MAX_COPY,
        });
    }
    match stamp.kind {
        PathKind::Folder => make_folder(to, path),
        PathKind::File => copy_file(from, to, path),
        PathKind::Link => copy_link(from, to, path),
        PathKind::Missing | PathKind::Other => Ok(()),
    }
}

fn copy_file(from: &GitFolder, to: &GitFolder, path: &Path) -> Result<(), RepositoryError> {
    let failed = |error| root::failed(&from.path().join(path), error);
    let (source, name) = from.parent(path)?;
    let Some(mut source) = root::open_file(&source, name).map_err(failed)? else {
        // Replaced just now: the replacement is seen the next time.
        return Ok(());
    };
    make_way(to, path)?;
    let failed = |error| root::failed(&to.path().join(path), error);
    let mut copy = || {
        let stat = fstat(&source)?;
        let (folder, name) = to.parent(path).map_err(|failed| failed.error)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut target = File::from(openat(&folder, name, flags, Mode::RUSR | Mode::WUSR)?);
        io::copy(&mut source, &mut target)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        fchmod(
            &target,
            Mode::from_raw_mode(stat.st_mode & 0o777) | Mode::RUSR,
        )?;
        let time = Timespec {
            tv_sec: stat.st_mtime,
            tv_nsec: stat.st_mtime_nsec.cast_signed(),
        };
        futimens(
            &target,
            &Timestamps {
                last_access: time,
                last_modification: time,
            },
        )
    };
    copy().map_err(|error| failed(error).into())
}

fn copy_link(from: &GitFolder, to: &GitFolder, path: &Path) -> Result<(), RepositoryError> {
    let (folder, name) = from.parent(path)?;
    let target = match readlinkat(&folder, name, Vec::new()) {
        Ok(target) => target,
        Err(Errno::NOENT | Errno::INVAL) => return Ok(()),
        Err(error) => return Err(root::failed(&from.path().join(path), error).into()),
    };
    make_way(to, path)?;
    let (folder, name) = to.parent(path)?;
    let linked = symlinkat(&target, &folder, name);
    linked.map_err(|error| root::failed(&to.path().join(path), error).into())
}

/// Ensures that the folder of `path` exists, and that `path` does not.
fn make_way(to: &GitFolder, path: &Path) -> Result<(), RepositoryError> {
    if let Some(above) = path.parent() {
        make_folder(to, above)?;
    }
    to.remove_tree(path)
}

/// Ensures that `path` and its ancestors are accessible folders.
pub(super) fn make_folder(to: &GitFolder, path: &Path) -> Result<(), RepositoryError> {
    let failed = |error| root::failed(&to.path().join(path), error);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = to.open_at(Path::new(""), OFlags::RDONLY | OFlags::DIRECTORY)?;
    for part in path {
        let mut opened = openat(&folder, part, flags, Mode::empty());
        if matches!(opened, Err(Errno::LOOP | Errno::NOTDIR)) {
            unlinkat(&folder, part, AtFlags::empty()).map_err(failed)?;
            opened = Err(Errno::NOENT);
        }
        if matches!(opened, Err(Errno::NOENT)) {
            mkdirat(&folder, part, Mode::RWXU).map_err(failed)?;
            opened = openat(&folder, part, flags, Mode::empty());
        }
        if matches!(opened, Err(Errno::ACCESS)) {
            rustix::fs::chmodat(&folder, part, Mode::RWXU, AtFlags::empty()).map_err(failed)?;
            opened = openat(&folder, part, flags, Mode::empty());
        }
        folder = opened.map_err(failed)?;
        if fstat(&folder).map_err(failed)?.st_mode & 0o700 != 0o700 {
            fchmod(&folder, Mode::RWXU).map_err(failed)?;
        }
    }
    Ok(())
}
