//! Making, moving, deleting and writing files on behalf of a command, in folders of which a part
//! must stay as it is.
//!
//! Landlock has no rules for such folders, so it refuses all of this there. What the supervisor
//! does not do itself it passes on to the kernel, where Landlock judges it. It therefore needs no
//! reason to refuse anything, and nothing is lost when it does not understand a call.

use std::{ffi::CString, fs::File, os::fd::OwnedFd, sync::Arc};

use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, RenameFlags, fstat, linkat, mkdirat, mknodat, open,
        openat, renameat_with, symlinkat, unlinkat,
    },
    io::Errno,
};

use super::{
    CallOutcome, SupervisorState,
    caller::{self, FolderEntry, PathBase},
    linux::SupervisedCall,
};

/// Maximum number of attempts to open a file that comes or goes meanwhile.
const TRIES: usize = 4;

/// Arguments by which a call names an entry: its base and its path, as numbers of arguments.
type EntryArguments = (PathBase, usize);

impl SupervisorState {
    /// Makes a call that creates, removes or opens files for the caller.
    pub(super) fn change_entry(
        self: &Arc<Self>,
        call: &SupervisedCall,
    ) -> Result<CallOutcome, Errno> {
        #[cfg(target_arch = "x86_64")]
        let current = PathBase::Current;
        let at = |base| PathBase::of(call, base);
        let flags = |argument: usize| caller::int(call.arguments[argument]).cast_unsigned();
        // Others leave devices behind.
        let known = RenameFlags::NOREPLACE | RenameFlags::EXCHANGE;
        let rename = |argument| {
            RenameFlags::from_bits(flags(argument)).filter(|asked| known.contains(*asked))
        };
        match call.number {
            libc::SYS_openat => self.open(call, (at(0), 1), flags(2), 3),
            libc::SYS_mkdirat => self.make_folder(call, (at(0), 1), 2),
            libc::SYS_mknodat => self.make_node(call, (at(0), 1), 2),
            libc::SYS_unlinkat => self.remove(call, (at(0), 1), flags(2)),
            libc::SYS_renameat2 => self.rename(call, (at(0), 1), (at(2), 3), rename(4)),
            libc::SYS_linkat if flags(4) == 0 => self.link(call, (at(0), 1), (at(2), 3)),
            libc::SYS_symlinkat => self.link_by_name(call, 0, (at(1), 2)),
            libc::SYS_truncate => self.truncate(call),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => self.open(call, (current, 0), flags(1), 2),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => {
                let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC;
                self.open(call, (current, 0), flags.bits(), 1)
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mkdir => self.make_folder(call, (current, 0), 1),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mknod => self.make_node(call, (current, 0), 1),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_unlink => self.remove(call, (current, 0), 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rmdir => self.remove(call, (current, 0), AtFlags::REMOVEDIR.bits()),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => {
                let plain = Some(RenameFlags::empty());
                self.rename(call, (current, 0), (current, 1), plain)
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_renameat => {
                let plain = Some(RenameFlags::empty());
                self.rename(call, (at(0), 1), (at(2), 3), plain)
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_link => self.link(call, (current, 0), (current, 1)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_symlink => self.link_by_name(call, 0, (current, 1)),
            _ => Ok(CallOutcome::Passed),
        }
    }

    /// Opens the folder of an entry that may be created or removed.
    fn entry(&self, call: &SupervisedCall, (base, path): EntryArguments) -> Option<FolderEntry> {
        self.entry_of(call, base, &caller::path(call, path).ok()?)
    }

    /// Does the same as [`Self::entry`], for a path that was copied.
    pub(super) fn entry_of(
        &self,
        call: &SupervisedCall,
        base: PathBase,
        path: &[u8],
    ) -> Option<FolderEntry> {
        let entry = caller::entry(call, base, path).ok()?;
        self.check_waiting(call).ok()?;
        let places = self.places.as_ref()?;
        places.may_replace(&entry.path).then_some(entry)
    }

    /// Whether a file may be written.
    fn is_writable(&self, handle: &OwnedFd) -> bool {
        match (&self.places, caller::location(handle)) {
            (Some(places), Ok(path)) => places.may_change(&path),
            _ => false,
        }
    }

    fn open(
        self: &Arc<Self>,
        call: &SupervisedCall,
        (base, path): EntryArguments,
        flags: u32,
        mode: usize,
    ) -> Result<CallOutcome, Errno> {
        let flags = OFlags::from_bits_retain(flags);
        if flags.intersects(OFlags::PATH | OFlags::TMPFILE | OFlags::DIRECTORY) {
            return Ok(CallOutcome::Passed);
        }
        let Ok(path) = caller::path(call, path) else {
            return Ok(CallOutcome::Passed);
        };
        let may_make = flags.contains(OFlags::CREATE) && !path.ends_with(b"/");
        for _ in 0..TRIES {
            let links = flags & OFlags::NOFOLLOW;
            match caller::pin_at(call, base, &path, links) {
                Ok(found) if may_make && flags.contains(OFlags::EXCL) => {
                    drop(found);
                    return Err(Errno::EXIST);
                }
                Ok(found) => return self.open_found(call, &found, flags),
                Err(Errno::NOENT) if may_make => {}
                Err(_) => return Ok(CallOutcome::Passed),
            }
            let Ok(entry) = caller::entry(call, base, &path) else {
                return Ok(CallOutcome::Passed);
            };
            self.check_waiting(call)?;
            let places = self.places.as_ref().ok_or(Errno::PERM)?;
            if !places.may_replace(&entry.path) {
                return Ok(CallOutcome::Passed);
            }
            let create = flags | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mode = new_mode(call, call.arguments[mode])?;
            match openat(&entry.folder, &entry.name, create, mode) {
                // Somebody was faster, or a link leads to what is not there.
                Err(Errno::EXIST) => {}
                opened => return Ok(CallOutcome::Opened(opened?, flags & OFlags::CLOEXEC)),
            }
        }
        Ok(CallOutcome::Passed)
    }

    fn open_found(
        self: &Arc<Self>,
        call: &SupervisedCall,
        found: &OwnedFd,
        flags: OFlags,
    ) -> Result<CallOutcome, Errno> {
        self.check_waiting(call)?;
        let kind = FileType::from_raw_mode(fstat(found)?.st_mode);
        if !matches!(kind, FileType::RegularFile | FileType::Fifo) || !self.is_writable(found) {
            return Ok(CallOutcome::Passed);
        }
        if kind == FileType::Fifo && !flags.contains(OFlags::NONBLOCK) {
            // For somebody at its other end.
            self.relieve();
        }
        let made = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let again = (flags & !made) | OFlags::CLOEXEC;
        let opened = open(caller::own_path(found), again, Mode::empty())?;
        Ok(CallOutcome::Opened(opened, flags & OFlags::CLOEXEC))
    }

    fn make_folder(
        &self,
        call: &SupervisedCall,
        named: EntryArguments,
        mode: usize,
    ) -> Result<CallOutcome, Errno> {
        let Some(entry) = self.entry(call, named) else {
            return Ok(CallOutcome::Passed);
        };
        let mode = new_mode(call, call.arguments[mode])?;
        mkdirat(&entry.folder, &entry.name, mode).map(|()| CallOutcome::Done)
    }

    fn make_node(
        &self,
        call: &SupervisedCall,
        named: EntryArguments,
        mode: usize,
    ) -> Result<CallOutcome, Errno> {
        let kind = caller::int(call.arguments[mode]).cast_unsigned();
        let kind = match kind & libc::S_IFMT {
            0 => FileType::RegularFile,
            _ => FileType::from_raw_mode(kind),
        };
        let known = [FileType::RegularFile, FileType::Fifo, FileType::Socket];
        match self.entry(call, named) {
            Some(entry) if known.contains(&kind) => {
                let mode = new_mode(call, call.arguments[mode])?;
                mknodat(&entry.folder, &entry.name, kind, mode, 0).map(|()| CallOutcome::Done)
            }
            _ => Ok(CallOutcome::Passed),
        }
    }

    fn remove(
        &self,
        call: &SupervisedCall,
        named: EntryArguments,
        flags: u32,
    ) -> Result<CallOutcome, Errno> {
        let Some(entry) = self.entry(call, named) else {
            return Ok(CallOutcome::Passed);
        };
        let flags = AtFlags::from_bits(flags).ok_or(Errno::INVAL)?;
        unlinkat(&entry.folder, &entry.name, flags).map(|()| CallOutcome::Done)
    }

    fn rename(
        &self,
        call: &SupervisedCall,
        from: EntryArguments,
        to: EntryArguments,
        flags: Option<RenameFlags>,
    ) -> Result<CallOutcome, Errno> {
        match (self.entry(call, from), self.entry(call, to), flags) {
            (Some(from), Some(to), Some(flags)) => {
                renameat_with(&from.folder, &from.name, &to.folder, &to.name, flags)
                    .map(|()| CallOutcome::Done)
            }
            _ => Ok(CallOutcome::Passed),
        }
    }

    fn link(
        &self,
        call: &SupervisedCall,
        from: EntryArguments,
        to: EntryArguments,
    ) -> Result<CallOutcome, Errno> {
        match (self.entry(call, from), self.entry(call, to)) {
            (Some(from), Some(to)) => {
                let flags = AtFlags::empty();
                linkat(&from.folder, &from.name, &to.folder, &to.name, flags)
                    .map(|()| CallOutcome::Done)
            }
            _ => Ok(CallOutcome::Passed),
        }
    }

    fn link_by_name(
        &self,
        call: &SupervisedCall,
        target: usize,
        named: EntryArguments,
    ) -> Result<CallOutcome, Errno> {
        let Some(entry) = self.entry(call, named) else {
            return Ok(CallOutcome::Passed);
        };
        let target = CString::new(caller::path(call, target)?).map_err(|_| Errno::INVAL)?;
        symlinkat(target, &entry.folder, &entry.name).map(|()| CallOutcome::Done)
    }

    fn truncate(&self, call: &SupervisedCall) -> Result<CallOutcome, Errno> {
        let path = caller::path(call, 0)?;
        let found = caller::pin(call, &path);
        let Some(found) = found.ok().filter(|found| self.is_writable(found)) else {
            return Ok(CallOutcome::Passed);
        };
        self.check_waiting(call)?;
        if FileType::from_raw_mode(fstat(&found)?.st_mode) != FileType::RegularFile {
            return Ok(CallOutcome::Passed);
        }
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let opened = File::from(open(caller::own_path(&found), flags, Mode::empty())?);
        let failed = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        opened.set_len(call.arguments[1]).map_err(failed)?;
        Ok(CallOutcome::Done)
    }
}

/// The rights of a new file.
fn new_mode(call: &SupervisedCall, mode: u64) -> Result<Mode, Errno> {
    let asked = Mode::from_raw_mode(caller::int(mode).cast_unsigned() & 0o7777);
    Ok(asked & !caller::mask(call)?)
}
