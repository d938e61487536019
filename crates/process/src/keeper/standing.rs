//! A sandbox that was made, and whether it is still what a new one would be.

use std::{io, net::TcpListener, os::fd::OwnedFd, path::Path};

use gyrus_contract::{Containment, Listeners};
use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, statx};

/// A sandbox of a keeper's.
#[derive(Debug)]
pub(super) struct Standing {
    containment: Containment,
    marks: Marks,
    pub(super) listeners: Option<Listeners>,
}

impl Standing {
    /// One that is about to be made.
    pub(super) fn new(containment: &Containment) -> Self {
        Self {
            containment: containment.clone(),
            marks: Marks::of(containment),
            listeners: None,
        }
    }

    /// Whether it is what this asks for.
    pub(super) fn is(&self, containment: &Containment) -> bool {
        self.containment == *containment
    }

    /// Whether everything that is mounted in it, or hidden by it, is what still stands there
    /// outside.
    pub(super) fn is_intact(&self) -> bool {
        Marks::of(&self.containment) == self.marks
    }

    /// Drops connections that the command left behind, unread: they would be judged as the next
    /// one's.
    pub(super) fn hang_up(&self) -> io::Result<()> {
        let Some(Listeners { proxy, forwarded }) = &self.listeners else {
            return Ok(());
        };
        for listener in forwarded.iter().chain([proxy]) {
            let listener = TcpListener::from(listener.try_clone()?);
            listener.set_nonblocking(true)?;
            // Nobody is left to make more of them.
            loop {
                match listener.accept() {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() != io::ErrorKind::ConnectionAborted => {
                        return Err(error);
                    }
                    Ok(_) | Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// The sockets again, for whoever serves one command.
    pub(super) fn try_clone_listeners(&self) -> io::Result<Option<Listeners>> {
        let Some(Listeners { proxy, forwarded }) = &self.listeners else {
            return Ok(None);
        };
        let forwarded = forwarded.iter().map(OwnedFd::try_clone);
        Ok(Some(Listeners {
            proxy: proxy.try_clone()?,
            forwarded: forwarded.collect::<io::Result<_>>()?,
        }))
    }
}

/// The files and folders that a sandbox was made of, and those that it hides, as they are now. A
/// sandbox with other marks would show what it must hide, or lead to what is not there any more.
#[derive(Debug, PartialEq, Eq)]
struct Marks(Vec<Option<Mark>>);

/// One of them; a number alone may soon be another file's.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    device: (u32, u32),
    number: u64,
    /// When it was made, to nanoseconds. Where the file system does not know: when a file was last
    /// changed; nothing for a folder, which changes all the time.
    since: Option<(i64, u32)>,
}

impl Marks {
    /// The marks of all paths of a containment; a link counts as what it leads to.
    fn of(containment: &Containment) -> Self {
        let Containment {
            writable,
            read_only,
            temporary,
            hidden,
            layered,
            binds,
            ..
        } = containment;
        let layers = layered.iter().map(|layer| &layer.lower);
        let binds = binds.iter().flat_map(|bind| [&bind.place, &bind.source]);
        let paths = writable.iter().chain(read_only).chain([temporary]);
        let paths = paths.chain(hidden).chain(layers).chain(binds);
        Self(paths.map(|path| Mark::of(path)).collect())
    }
}

impl Mark {
    fn of(path: &Path) -> Option<Self> {
        let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::BTIME | StatxFlags::CTIME;
        let Statx {
            stx_mask,
            stx_mode,
            stx_ino,
            stx_btime,
            stx_ctime,
            stx_dev_major,
            stx_dev_minor,
            ..
        } = statx(CWD, path, AtFlags::empty(), wanted).ok()?;
        let is_folder = FileType::from_raw_mode(stx_mode.into()) == FileType::Directory;
        let since = match stx_mask & StatxFlags::BTIME.bits() {
            0 if is_folder => None,
            0 => Some(stx_ctime),
            _ => Some(stx_btime),
        };
        Some(Self {
            device: (stx_dev_major, stx_dev_minor),
            number: stx_ino,
            since: since.map(|time| (time.tv_sec, time.tv_nsec)),
        })
    }
}
