//! Whether a socket was made by the command, or by somebody outside.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use rustix::{
    fs::{FileType, Mode, OFlags, fstat, fstatfs, major, minor, open},
    io::Errno,
};

use super::diagnosis::{self, Diagnosis, ListeningSocket};

/// File systems in which the inode numbers that the kernel lists with sockets are those of single
/// files: ext2 to ext4, tmpfs, XFS, F2FS. Others number files by subvolume or by layer.
const NUMBERED: [i64; 4] = [0xef53, 0x0102_1994, 0x5846_5342, 0xf2f5_2010];

/// Maximum number of known listening sockets of the command. Closed ones are forgotten first.
const SOCKETS: usize = 1_024;

/// Boundary between the sockets of the command and those of others.
#[derive(Debug)]
pub(in super::super) struct Boundary {
    sign: Sign,
    let_in: LetIn,
    /// Whether the PID namespace is the command's own.
    own_processes: bool,
    /// The connection for queries, kept between them.
    diagnosis: Mutex<Option<Diagnosis>>,
}

/// Sockets of others that the command may connect to, each by its path. They are held open: no other
/// file can take the place of one.
#[derive(Debug, Default)]
pub(in super::super) struct LetIn(Vec<(PathBuf, OwnedFd)>);

impl LetIn {
    /// Opens the sockets that exist, before the command's mounts cover any.
    pub(in super::super) fn open(paths: &[PathBuf]) -> Self {
        let held = paths.iter().filter_map(|path| {
            let file = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
            Some((path.clone(), file))
        });
        Self(held.collect())
    }

    fn has(&self, device: u64, number: u64) -> bool {
        let mut held = self.0.iter().filter_map(|(_, file)| fstat(file).ok());
        held.any(|file| (file.st_dev, file.st_ino) == (device, number))
    }
}

/// Sign by which the sockets of the command are known.
#[derive(Debug)]
enum Sign {
    /// A network in which no other process is.
    Network,
    /// All sockets are the command's, except those on which others listened before it started.
    Others(BTreeSet<diagnosis::SocketIdentity>),
    /// The command's sockets are those on which the supervisor listened for it.
    Noted(Mutex<BTreeSet<diagnosis::SocketIdentity>>),
}

/// Knowledge about the process that created a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SocketOrigin {
    /// The command created the socket, or it is let in.
    Inside,
    /// Only a connection can tell: who listens has a number in the command's PID namespace, or has
    /// none.
    Unknown,
    /// Another process created the socket, or nobody listens on it.
    Outside,
}

impl Boundary {
    /// Creates the boundary for a network namespace that only the command's processes have used.
    pub(in super::super) fn of_own_network(own_processes: bool) -> Self {
        Self::new(Sign::Network, own_processes)
    }

    /// Records the machine's listening sockets before the command starts.
    pub(in super::super) fn of_machine(own_processes: bool) -> io::Result<Self> {
        let listed = Diagnosis::open()?.listening()?;
        let others = listed.iter().map(|socket| socket.identity).collect();
        Ok(Self::new(Sign::Others(others), own_processes))
    }

    /// Among the processes and in the network of the machine. What the command listens on has to
    /// be [noted](Self::note).
    pub(in super::super) fn of_noted() -> Self {
        Self::new(Sign::Noted(Mutex::default()), false)
    }

    fn new(sign: Sign, own_processes: bool) -> Self {
        Self {
            sign,
            let_in: LetIn::default(),
            own_processes,
            diagnosis: Mutex::default(),
        }
    }

    pub(in super::super) fn letting_in(self, let_in: LetIn) -> Self {
        Self { let_in, ..self }
    }

    /// Returns the socket that is let in by this path, if one is.
    pub(super) fn let_in_at(&self, path: &[u8]) -> Option<OwnedFd> {
        let path = Path::new(OsStr::from_bytes(path));
        let mut held = self.let_in.0.iter();
        let (_, file) = held.find(|(known, _)| known == path)?;
        file.try_clone().ok()
    }

    /// Records a socket on which the command is about to listen.
    pub(super) fn note(&self, socket: &OwnedFd) -> Result<(), Errno> {
        let Sign::Noted(noted) = &self.sign else {
            return Ok(());
        };
        let identity = diagnosis::identity(socket)?;
        let mut noted = noted.lock();
        if noted.len() >= SOCKETS {
            let listed = self.listening().map_err(|_| Errno::NOBUFS)?;
            let living: BTreeSet<_> = listed.iter().map(|socket| socket.identity).collect();
            noted.retain(|known| living.contains(known));
        }
        noted.insert(identity);
        Ok(())
    }

    /// The origin of a socket in a file system.
    pub(super) fn of_file(&self, file: &OwnedFd) -> Result<SocketOrigin, Errno> {
        let data = fstat(file)?;
        if FileType::from_raw_mode(data.st_mode) != FileType::Socket {
            return Ok(SocketOrigin::Outside);
        }
        if self.let_in.has(data.st_dev, data.st_ino) {
            return Ok(SocketOrigin::Inside);
        }
        let kind = fstatfs(file)?.f_type;
        let is_numbered = NUMBERED.contains(&kind) && u32::try_from(data.st_ino).is_ok();
        // The kernel lists 32 bits of it.
        let number = data.st_ino as u32;
        // As the kernel has it, see `MKDEV` there.
        let device = major(data.st_dev) << 20 | minor(data.st_dev);
        let is_same = |socket: &ListeningSocket| {
            let file = socket.file;
            file.is_some_and(|(at, its)| its == number && (!is_numbered || at == device))
        };
        Ok(self.judge(is_same, is_numbered))
    }

    /// The origin of a socket with a name that belongs to a network.
    pub(super) fn of_name(&self, name: &[u8]) -> SocketOrigin {
        match &self.sign {
            // There are no other names.
            Sign::Network => SocketOrigin::Inside,
            Sign::Others(_) | Sign::Noted(_) => {
                self.judge(|socket| socket.name.as_deref() == Some(name), false)
            }
        }
    }

    fn listening(&self) -> io::Result<Vec<ListeningSocket>> {
        let kept = || self.diagnosis.lock();
        let taken = kept().take();
        let diagnosis = taken.map_or_else(Diagnosis::open, Ok)?;
        let listed = diagnosis.listening()?;
        *kept() = Some(diagnosis);
        Ok(listed)
    }

    fn judge(&self, is_same: impl Fn(&ListeningSocket) -> bool, is_exact: bool) -> SocketOrigin {
        // Nothing is lost if the kernel cannot list sockets.
        let Ok(listed) = self.listening() else {
            return self.unknown();
        };
        let mut found = listed.iter().filter(|socket| is_same(socket)).peekable();
        if found.peek().is_none() {
            return SocketOrigin::Outside;
        }
        match &self.sign {
            Sign::Network if is_exact => SocketOrigin::Inside,
            Sign::Network => self.unknown(),
            Sign::Others(others) if found.all(|socket| others.contains(&socket.identity)) => {
                SocketOrigin::Outside
            }
            Sign::Others(_) => self.unknown(),
            Sign::Noted(noted) => {
                let noted = noted.lock();
                if found.all(|socket| noted.contains(&socket.identity)) {
                    SocketOrigin::Inside
                } else {
                    SocketOrigin::Outside
                }
            }
        }
    }

    fn unknown(&self) -> SocketOrigin {
        if self.own_processes {
            SocketOrigin::Unknown
        } else {
            SocketOrigin::Outside
        }
    }
}
