//! A sandbox that was made, and whether a new one would still be the same.

use std::{io, net::TcpListener, os::fd::OwnedFd, path::Path};

use gyrus_contract::{Containment, Layer, Listeners};
use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, statx};

#[derive(Debug)]
pub(super) struct StandingSandbox {
    containment: Containment,
    marks: Marks,
    pub(super) listeners: Option<Listeners>,
}

impl StandingSandbox {
    /// Records the containment of a sandbox that is about to be created.
    pub(super) fn new(containment: &Containment) -> Self {
        Self {
            containment: containment.clone(),
            marks: Marks::of(containment),
            listeners: None,
        }
    }

    /// Whether the sandbox fits this containment, apart from a required layer, which is new for
    /// each command.
    pub(super) fn is(&self, containment: &Containment) -> bool {
        let Containment { layered, .. } = &self.containment;
        let as_made = Containment {
            layered: layered.clone(),
            ..containment.clone()
        };
        let is_like = |(made, wanted): (&Layer, &Layer)| {
            made == wanted || made.required && wanted.required && made.lower == wanted.lower
        };
        as_made == self.containment
            && layered.len() == containment.layered.len()
            && layered.iter().zip(&containment.layered).all(is_like)
    }

    /// Whether every path mounted or hidden in the sandbox is still the same file outside.
    pub(super) fn is_intact(&self) -> bool {
        Marks::of(&self.containment) == self.marks
    }

    /// Drops unread connections of the last command: they would be judged as the next one's.
    pub(super) fn hang_up(&self) -> io::Result<()> {
        let Some(Listeners {
            proxy, forwarded, ..
        }) = &self.listeners
        else {
            return Ok(());
        };
        for listener in forwarded.iter().chain([proxy]) {
            let listener = TcpListener::from(listener.try_clone()?);
            listener.set_nonblocking(true)?;
            // No process is left that could open more connections.
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

    /// Returns duplicates of the sockets, for serving one command.
    pub(super) fn try_clone_listeners(&self) -> io::Result<Option<Listeners>> {
        let Some(listeners) = &self.listeners else {
            return Ok(None);
        };
        let forwarded = listeners.forwarded.iter().map(OwnedFd::try_clone);
        let dialer = listeners.dialer.as_ref().map(OwnedFd::try_clone);
        Ok(Some(Listeners {
            proxy: listeners.proxy.try_clone()?,
            forwarded: forwarded.collect::<io::Result<_>>()?,
            dialer: dialer.transpose()?,
        }))
    }
}

/// The files and folders of which a sandbox consists, and those that it hides, in their present
/// state. A sandbox with other marks would show files that it must hide, or lead to files that do
/// not exist any more.
#[derive(Debug, PartialEq, Eq)]
struct Marks(Vec<Option<Mark>>);

/// Identity of such a file; an inode number alone may soon be another file's.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    device: (u32, u32),
    number: u64,
    /// Creation time, to nanoseconds. Where the file system has none: a file's last change, and
    /// nothing for a folder, which changes all the time.
    since: Option<(i64, u32)>,
}

impl Marks {
    /// Returns the marks of all paths of a containment; a link counts as its target.
    fn of(containment: &Containment) -> Self {
        let Containment {
            writable,
            read_only,
            temporary,
            hidden,
            layered,
            binds,
            sockets,
            ..
        } = containment;
        let layers = layered.iter().map(|layer| &layer.lower);
        let binds = binds.iter().flat_map(|bind| [&bind.place, &bind.source]);
        let paths = writable.iter().chain(read_only).chain([temporary]);
        let paths = paths.chain(hidden).chain(layers).chain(binds);
        let paths = paths.chain(sockets);
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
