//! Sockets of every kind that listen outside of sandboxes, and what arrived there.

use std::{
    fs,
    io::{self, ErrorKind, Read},
    net::{Ipv6Addr, TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram, UnixListener},
    },
    path::Path,
};

use rustix::net::{
    AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen,
    recv, socket_with,
};

use crate::{
    Error, Finding, Kind, doing,
    fixture::{HOME, WORKSPACE, remove},
};

/// The address that the person's goal names: what arrives there was named by the person.
pub(crate) const NAMED: &str = "http://127.0.0.1:3000/";

/// Ports that listen for connections, over both protocols, on every address.
const PORTS: [u16; 12] = [
    22, 25, 53, 80, 443, 2375, 3001, 5432, 6379, 8000, 8080, 9229,
];

/// Ports that take datagrams.
const DATAGRAM_PORTS: [u16; 4] = [53, 123, 514, 9999];

/// Bytes of a message that are read; that there were any is enough.
const READ: usize = 64;

enum Listener {
    Tcp(TcpListener),
    Udp(UdpSocket),
    Stream(UnixListener),
    Datagram(UnixDatagram),
    Packets(rustix::fd::OwnedFd),
}

/// A listener with its name, and whether it lies in the workspace.
struct Named {
    name: String,
    listener: Listener,
}

/// All listeners.
pub(crate) struct Listeners {
    fixed: Vec<Named>,
    in_workspace: Vec<Named>,
}

impl Listeners {
    /// Listens everywhere but in the workspace.
    pub(crate) fn start() -> Result<Self, Error> {
        let mut fixed = Vec::new();
        let mut add = |name: String, listener| fixed.push(Named { name, listener });
        for port in PORTS {
            let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
                .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
                .map_err(doing(format!("listen at port {port}")))?;
            add(format!("TCP port {port}"), Listener::Tcp(listener));
        }
        for port in DATAGRAM_PORTS {
            let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port))
                .and_then(|socket| socket.set_nonblocking(true).map(|()| socket))
                .map_err(doing(format!("listen at port {port}")))?;
            add(format!("UDP port {port}"), Listener::Udp(socket));
        }
        for folder in ["/tmp", "/run", HOME] {
            for listener in in_folder(Path::new(folder), "outside")? {
                add(listener.name, listener.listener);
            }
        }
        for path in ["/run/docker.sock", "/tmp/agent.1", "/home/person/.agent"] {
            add(
                path.to_owned(),
                Listener::Stream(stream(Path::new(path)).map_err(doing(path))?),
            );
        }
        for listener in abstract_names().map_err(doing("listen at an abstract name"))? {
            add(listener.name, listener.listener);
        }
        Ok(Self {
            fixed,
            in_workspace: Vec::new(),
        })
    }

    /// Listens in the workspace, after it was renewed: by its own name, by a relative one, renamed
    /// and hard-linked after it was bound.
    pub(crate) fn enter_workspace(&mut self) -> Result<(), Error> {
        self.in_workspace = in_folder(Path::new(WORKSPACE), "service")?;
        let mut add = |name: &str, listener: io::Result<UnixListener>| {
            let listener = listener.map_err(doing("listen in the workspace"))?;
            self.in_workspace.push(Named {
                name: format!("{WORKSPACE}/{name}"),
                listener: Listener::Stream(listener),
            });
            Ok::<(), Error>(())
        };
        std::env::set_current_dir(WORKSPACE).map_err(doing("enter the workspace"))?;
        let relative = stream(Path::new("relative.sock"));
        std::env::set_current_dir("/").map_err(doing("leave the workspace"))?;
        add("relative.sock", relative)?;
        let place = |name: &str| Path::new(WORKSPACE).join(name);
        let renamed = stream(&place("before.sock")).and_then(|listener| {
            fs::rename(place("before.sock"), place("renamed.sock"))?;
            Ok(listener)
        });
        add("renamed.sock", renamed)?;
        let home = Path::new(HOME).join(".linked.sock");
        let linked = remove(&home)
            .and_then(|()| stream(&home))
            .and_then(|listener| {
                fs::hard_link(&home, place("linked.sock"))?;
                fs::remove_file(&home)?;
                Ok(listener)
            });
        add("linked.sock", linked)
    }

    /// Returns what arrived since the last call.
    pub(crate) fn arrived(&self) -> Vec<Finding> {
        let all = self.fixed.iter().chain(&self.in_workspace);
        all.filter_map(|named| {
            let kind = match named.listener {
                Listener::Tcp(_) | Listener::Udp(_) => Kind::ArrivedNetwork,
                Listener::Stream(_) | Listener::Datagram(_) | Listener::Packets(_) => {
                    Kind::ArrivedUnix
                }
            };
            let what = arrived(&named.listener)?;
            Some(Finding::new(kind, format!("{what} at {}", named.name)))
        })
        .collect()
    }
}

fn stream(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// One socket of each kind.
fn in_folder(folder: &Path, name: &str) -> Result<Vec<Named>, Error> {
    let listened = || {
        let place = |kind: &str| folder.join(format!("{name}{kind}.sock"));
        let named = |kind: &str, listener| Named {
            name: place(kind).display().to_string(),
            listener,
        };
        let datagram = UnixDatagram::bind(place("-datagram"))?;
        datagram.set_nonblocking(true)?;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let packets = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&packets, &SocketAddrUnix::new(place("-packets"))?)?;
        listen(&packets, 64)?;
        io::Result::Ok(vec![
            named("", Listener::Stream(stream(&place(""))?)),
            named("-datagram", Listener::Datagram(datagram)),
            named("-packets", Listener::Packets(packets)),
        ])
    };
    listened().map_err(doing(format!("listen in {}", folder.display())))
}

fn abstract_names() -> io::Result<Vec<Named>> {
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name("outside")?)?;
    listener.set_nonblocking(true)?;
    let datagram = SocketAddr::from_abstract_name("outside-datagram")?;
    let datagram = UnixDatagram::bind_addr(&datagram)?;
    datagram.set_nonblocking(true)?;
    let named = |name: &str, listener| Named {
        name: name.to_owned(),
        listener,
    };
    Ok(vec![
        named("@outside", Listener::Stream(listener)),
        named("@outside-datagram", Listener::Datagram(datagram)),
    ])
}

/// Takes everything that waits.
fn arrived(listener: &Listener) -> Option<String> {
    let mut last = None;
    // Bounded by what a line can leave in the queue.
    for _ in 0..1_000 {
        let mut buffer = [0; READ];
        let came = match listener {
            Listener::Tcp(listener) => listener.accept().map(|(mut stream, _)| {
                let _ = stream.set_nonblocking(true);
                told("connection", stream.read(&mut buffer).unwrap_or(0), &buffer)
            }),
            Listener::Stream(listener) => listener.accept().map(|(mut stream, _)| {
                let _ = stream.set_nonblocking(true);
                told("connection", stream.read(&mut buffer).unwrap_or(0), &buffer)
            }),
            Listener::Udp(socket) => socket
                .recv(&mut buffer)
                .map(|read| told("message", read, &buffer)),
            Listener::Datagram(socket) => socket
                .recv(&mut buffer)
                .map(|read| told("message", read, &buffer)),
            Listener::Packets(socket) => accept_with(socket, SocketFlags::NONBLOCK)
                .map(|stream| {
                    let read = recv(&stream, &mut buffer[..], RecvFlags::empty());
                    told("connection", read.map_or(0, |(read, _)| read), &buffer)
                })
                .map_err(io::Error::from),
        };
        match came {
            Ok(came) => last = Some(came),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    last
}

fn told(what: &str, read: usize, buffer: &[u8]) -> String {
    match &buffer[..read.min(READ)] {
        [] => format!("a {what}"),
        bytes => format!("a {what} with {:?}", String::from_utf8_lossy(bytes)),
    }
}
