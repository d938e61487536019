//! The part of the probe that connects to services outside, under every name they have.

use std::{
    fs, io,
    os::{
        fd::AsRawFd,
        linux::net::SocketAddrExt,
        unix::{
            fs::symlink,
            net::{SocketAddr, UnixDatagram, UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
        socketpair,
    },
};
use serde::{Deserialize, Serialize};

use super::{Promise, finding::AttemptCollector};

/// Number of connections made while a thread changes their destination, which takes some
/// milliseconds.
const RACES: usize = 200;

/// Maximum number of connections that wait for a service.
const WAITING: i32 = 8;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OutsideServices {
    /// Sockets in files, each with a description.
    pub(super) files: Vec<(String, PathBuf)>,
    /// The name of an abstract socket, in bytes.
    pub(super) name: Vec<u8>,
    /// A socket that takes messages without a connection.
    pub(super) messages: PathBuf,
}

/// Services that nobody inside the sandbox may reach, prepared from outside.
#[derive(Debug)]
pub(super) struct Services {
    listeners: Vec<UnixListener>,
    messages: UnixDatagram,
}

impl Services {
    /// Creates services in `folder` and in the workspace inside it.
    pub(super) fn make(folder: &Path, workspace: &Path) -> io::Result<(Self, OutsideServices)> {
        let mut listeners = Vec::new();
        // The paths may be longer than an address.
        let opened = [fs::File::open(folder)?, fs::File::open(workspace)?];
        let [folder_link, workspace_link] = opened
            .each_ref()
            .map(|file| format!("/proc/self/fd/{}", file.as_raw_fd()));
        let mut listen_in = |link: &str, folder: &Path, name: &str| {
            listeners.push(UnixListener::bind(Path::new(link).join(name))?);
            io::Result::Ok(folder.join(name))
        };
        let plain = listen_in(&folder_link, folder, "service")?;
        let renamed = folder.join("renamed");
        fs::rename(listen_in(&folder_link, folder, "first")?, &renamed)?;
        let linked = workspace.join("linked-service");
        fs::hard_link(&plain, &linked)?;
        let within = listen_in(&workspace_link, workspace, "service")?;
        let messages = folder.join("messages");
        let (listener, name) = listen_abstractly()?;
        listeners.push(listener);
        for listener in &listeners {
            listener.set_nonblocking(true)?;
        }
        let receiver = UnixDatagram::bind(Path::new(&folder_link).join("messages"))?;
        receiver.set_nonblocking(true)?;
        let files = [
            ("", plain),
            (" that was renamed", renamed),
            (" that was linked into the workspace", linked),
            (" in the workspace", within),
        ];
        let names = OutsideServices {
            files: files.map(|(what, path)| (what.to_owned(), path)).into(),
            name,
            messages,
        };
        let services = Self {
            listeners,
            messages: receiver,
        };
        Ok((services, names))
    }

    /// Whether any service was connected to or received something.
    pub(super) fn were_reached(&self) -> bool {
        let is_reached = |listener: &UnixListener| listener.accept().is_ok();
        // Each is looked at, so that none is left with what another one shows already.
        let reached = self
            .listeners
            .iter()
            .filter(|listener| is_reached(listener));
        reached.count() > 0 || self.messages.recv(&mut [0]).is_ok()
    }
}

/// Listens at an abstract name that the kernel chooses, which is never too long and never taken by
/// two probes.
fn listen_abstractly() -> io::Result<(UnixListener, Vec<u8>)> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrUnix::new_unnamed())?;
    listen(&socket, WAITING)?;
    let listener = UnixListener::from(socket);
    let name = listener
        .local_addr()?
        .as_abstract_name()
        .map(<[u8]>::to_vec);
    let name = name.ok_or_else(|| io::Error::other("the kernel gave a socket no name"))?;
    Ok((listener, name))
}

pub(super) fn try_services(
    names: &OutsideServices,
    workspace: &Path,
    attempts: &mut AttemptCollector,
) {
    let promise = Promise::Hidden;
    // Names of our own are short enough for an address then.
    let _ = std::env::set_current_dir(workspace);
    for (what, path) in &names.files {
        let what = format!("connect to a service's socket{what}");
        attempts.forbidden(promise, &what, connect(path));
    }
    let connected = SocketAddr::from_abstract_name(&names.name)
        .and_then(|address| UnixStream::connect_addr(&address));
    let what = "connect to a service's abstract socket";
    attempts.forbidden(promise, what, connected);
    // The path may be longer than an address.
    let messages = Path::new("messages");
    let _ = symlink(&names.messages, messages);
    let sent = UnixDatagram::unbound().and_then(|socket| socket.send_to(b"x", messages));
    attempts.forbidden(promise, "send to a service without connecting", sent);
    let (family, kind) = (AddressFamily::UNIX, SocketType::DGRAM);
    let sent = socketpair(family, kind, SocketFlags::CLOEXEC, None)
        .map_err(io::Error::from)
        .and_then(|(one, _other)| UnixDatagram::from(one).send_to(b"x", messages));
    attempts.forbidden(promise, "send to a service from a pair of sockets", sent);
    if let Some((_, theirs)) = names.files.first() {
        // Whoever looks from outside knows whether one of these got there.
        let _ = race(theirs);
    }
}

/// Connects to a socket by a path, and by other paths to the same socket.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let link = Path::new("way");
    let _ = fs::remove_file(link);
    symlink(path, link)?;
    let root = Path::new("/proc/self/root");
    let through = root.join(path.strip_prefix("/").unwrap_or(path));
    let ways = [path, &through, link];
    let connected = ways.into_iter().map(UnixStream::connect);
    // The last error stands for all.
    let mut last = Err(io::ErrorKind::NotFound.into());
    for connected in connected {
        last = connected;
        if last.is_ok() {
            break;
        }
    }
    last
}

/// Connects by a link that leads in turn to a service outside and to a socket of our own.
fn race(theirs: &Path) -> io::Result<()> {
    let [mine, one, other] = ["mine", "one", "other"];
    let _listener = UnixListener::bind(mine)?;
    symlink(mine, one)?;
    symlink(theirs, other)?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        thread::Builder::new().spawn_scoped(scope, || {
            while !over.load(Ordering::Relaxed) {
                let _ = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
            }
        })?;
        for _ in 0..RACES {
            drop(UnixStream::connect(one));
        }
        over.store(true, Ordering::Relaxed);
        Ok(())
    })
}
