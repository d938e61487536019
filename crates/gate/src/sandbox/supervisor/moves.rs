//! Moving folders on behalf of a command that has a layer.
//!
//! An overlay that an ordinary user mounts cannot rename a folder of the lower layer, and answers
//! `EXDEV`. `mv` then copies; most programs fail. Files can be renamed there, so such a folder is
//! moved by making it anew and moving everything in it. What is mounted within a folder cannot be
//! moved, and the caller gets the error that it would get anyway.

use std::{
    ffi::OsString,
    os::{fd::OwnedFd, unix::ffi::OsStringExt},
    sync::Arc,
    thread,
};

use rustix::{
    fs::{
        AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, fchmod,
        fstat, futimens, mkdirat, openat, renameat_with, statat, unlinkat,
    },
    io::Errno,
};

use super::{
    CallOutcome, SupervisorState,
    caller::{self, FolderEntry, PathBase},
    linux::SupervisedCall,
};

/// Maximum number of folders that are moved by creating them anew.
const MAX_FOLDERS: usize = 20_000;

/// Maximum depth of such folders. Two descriptors are open for each level.
const MAX_DEPTH: usize = 200;

/// Memory for the stack of a thread that moves folders.
const STACK_BYTES: usize = 4 << 20;

impl SupervisorState {
    /// Renames a folder; other calls are left to the kernel.
    pub(super) fn move_folder(
        self: &Arc<Self>,
        call: &SupervisedCall,
    ) -> Result<CallOutcome, Errno> {
        let at = |base| PathBase::of(call, base);
        let (from, to, flags) = match call.number {
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => ((PathBase::Current, 0), (PathBase::Current, 1), 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_renameat => ((at(0), 1), (at(2), 3), 0),
            libc::SYS_renameat2 => {
                let flags = caller::int(call.arguments[4]).cast_unsigned();
                ((at(0), 1), (at(2), 3), flags)
            }
            _ => return Ok(CallOutcome::Passed),
        };
        let entry = |(base, path)| caller::entry(call, base, &caller::path(call, path)?);
        let (Ok(from), Ok(to)) = (entry(from), entry(to)) else {
            return Ok(CallOutcome::Passed);
        };
        self.check_waiting(call)?;
        let is_folder = look(&from).is_ok_and(|stat| is_folder(&stat));
        let flags = RenameFlags::from_bits(flags);
        let known = flags.filter(|flags| RenameFlags::NOREPLACE.contains(*flags));
        let (true, Some(flags)) = (is_folder, known) else {
            return Ok(CallOutcome::Passed);
        };
        match renameat_with(&from.folder, &from.name, &to.folder, &to.name, flags) {
            Err(Errno::XDEV) => {
                self.relieve();
                let thread = thread::Builder::new().stack_size(STACK_BYTES);
                let moving = thread.spawn(move || remake(&from, &to));
                let moved = moving.map_err(|_| Errno::XDEV)?.join();
                moved
                    .unwrap_or(Err(Errno::XDEV))
                    .map(|()| CallOutcome::Done)
            }
            renamed => renamed.map(|()| CallOutcome::Done),
        }
    }
}

fn look(entry: &FolderEntry) -> Result<Stat, Errno> {
    statat(&entry.folder, &entry.name, AtFlags::SYMLINK_NOFOLLOW)
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// Moves a folder by creating it anew, if nothing is mounted in it.
fn remake(from: &FolderEntry, to: &FolderEntry) -> Result<(), Errno> {
    if to.path.starts_with(&from.path) {
        return Err(Errno::INVAL);
    }
    let stat = look(from)?;
    let target = statat(&to.folder, ".", AtFlags::empty())?;
    if target.st_dev != stat.st_dev {
        return Err(Errno::XDEV);
    }
    let opened = open_folder(&from.folder, &from.name)?;
    check(&opened, &stat, (&mut 0, 0))?;
    match look(to) {
        Err(Errno::NOENT) => {}
        // An empty folder gives way.
        Ok(_) => unlinkat(&to.folder, &to.name, AtFlags::REMOVEDIR)?,
        Err(error) => return Err(error),
    }
    transfer(&from.folder, &from.name, &to.folder, &to.name)
}

/// Checks that a folder and all its content are in one file system, and that it can be emptied.
fn check(folder: &OwnedFd, top: &Stat, (folders, depth): (&mut usize, usize)) -> Result<(), Errno> {
    *folders += 1;
    if *folders > MAX_FOLDERS || depth > MAX_DEPTH {
        return Err(Errno::XDEV);
    }
    rustix::fs::accessat(
        folder,
        ".",
        rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK,
        AtFlags::empty(),
    )?;
    for name in names(folder)? {
        let stat = statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        if is_folder(&stat) {
            if stat.st_dev != top.st_dev {
                return Err(Errno::XDEV);
            }
            check(&open_folder(folder, &name)?, top, (folders, depth + 1))?;
        }
    }
    Ok(())
}

/// Moves a folder by renaming it where that is possible, else by creating it anew.
fn transfer(
    from: &OwnedFd,
    name: &OsString,
    to: &OwnedFd,
    new_name: &OsString,
) -> Result<(), Errno> {
    match renameat_with(from, name, to, new_name, RenameFlags::NOREPLACE) {
        Err(Errno::XDEV) => {}
        renamed => return renamed,
    }
    let old = open_folder(from, name)?;
    let stat = fstat(&old)?;
    mkdirat(to, new_name, Mode::RWXU)?;
    let new = open_folder(to, new_name)?;
    for inner in names(&old)? {
        let is_folder = is_folder(&statat(&old, &inner, AtFlags::SYMLINK_NOFOLLOW)?);
        if is_folder {
            transfer(&old, &inner, &new, &inner)?;
        } else {
            renameat_with(&old, &inner, &new, &inner, RenameFlags::NOREPLACE)?;
        }
    }
    fchmod(&new, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    let time = |seconds: i64, rest| Timespec {
        tv_sec: seconds,
        tv_nsec: i64::try_from(rest).unwrap_or(0),
    };
    let times = Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    };
    futimens(&new, &times)?;
    unlinkat(from, name, AtFlags::REMOVEDIR)
}

fn open_folder(above: &OwnedFd, name: &OsString) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(above, name, flags, Mode::empty())
}

fn names(folder: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}
