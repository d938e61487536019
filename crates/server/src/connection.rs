//! Connections: what a peer may do to the server before it has said who it is.

use std::{
    collections::BTreeSet,
    fs, io,
    net::SocketAddr,
    os::unix::fs::MetadataExt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{Extension, Router};
use gyrus_contract::Principal;
use gyrus_process::keeper;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    sync::{Semaphore, watch},
    task::JoinSet,
};

/// Maximum number of connections; more are closed at once.
const MAX_CONNECTIONS: usize = 512;

/// Time within which the head of a request must have arrived.
const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// Maximum size of the head of a request in bytes, and its maximum number of fields.
const MAX_HEAD: usize = 32 << 10;
const MAX_FIELDS: usize = 64;

/// Time for which connections may remain open after the server was told to stop.
const GRACE: Duration = Duration::from_secs(2);

/// A socket on which a server listens.
pub enum ServerListener {
    /// A network address.
    Network(TcpListener),
    /// A socket in the file system. Only the user who owns the server may connect, and acts as its
    /// owner, under this name.
    Local(UnixListener, Principal),
}

/// The other end of a connection.
#[derive(Debug, Clone)]
pub enum Peer {
    /// The connection came over the network, from this address to this address.
    Network {
        from: SocketAddr,
        /// The server's address.
        to: SocketAddr,
        /// Whether the peer is part of a run, once that is known.
        of_run: Arc<OnceLock<bool>>,
    },
    /// The connection came over a local socket.
    Local {
        pid: Option<u32>,
        /// The name under which the peer acts.
        principal: Principal,
    },
}

impl Peer {
    /// Whether the process at the other end is, or descends from, a process that drives a run or a
    /// command of one. `drivers` returns the processes that drive runs.
    pub(crate) fn is_part_of_a_run(&self, drivers: impl FnOnce() -> BTreeSet<u32>) -> bool {
        match self {
            Peer::Local { pid: None, .. } => true,
            Peer::Local { pid: Some(pid), .. } => is_of_run(*pid, &drivers()),
            Peer::Network { from, to, of_run } => {
                *of_run.get_or_init(|| may_be_of_run(*from, *to, drivers))
            }
        }
    }
}

/// Whether the other end of a connection may be part of a run of this user. A process that has
/// ended since it sent its request counts as one, because that cannot be ruled out.
fn may_be_of_run(
    from: SocketAddr,
    to: SocketAddr,
    drivers: impl FnOnce() -> BTreeSet<u32>,
) -> bool {
    let is_here = from.ip().is_loopback() || from.ip() == to.ip();
    if !is_here {
        return false;
    }
    let Some(socket) = other_end(from, to) else {
        return true;
    };
    let own = fs::metadata("/proc/self").map(|process| process.uid()).ok();
    if own != Some(0) && own != Some(socket.uid) {
        return false;
    }
    let drivers = drivers();
    let processes = processes(socket.inode);
    processes.is_empty() || processes.into_iter().any(|pid| is_of_run(pid, &drivers))
}

fn is_of_run(pid: u32, drivers: &BTreeSet<u32>) -> bool {
    drivers.contains(&pid) || keeper::is_below_a_keeper(pid)
}

/// Returns this user's processes that have the socket with this inode number.
fn processes(inode: u64) -> Vec<u32> {
    let socket = format!("socket:[{inode}]");
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let files = fs::read_dir(process.path().join("fd"));
        let has = files.into_iter().flatten().flatten().any(|file| {
            let leads = fs::read_link(file.path());
            leads.is_ok_and(|leads| leads.as_os_str() == socket.as_str())
        });
        if has {
            found.push(pid);
        }
    }
    found
}

struct LocalSocket {
    inode: u64,
    uid: u32,
}

/// Returns the other socket of a connection, from the kernel's table (`proc(5)`).
fn other_end(from: SocketAddr, to: SocketAddr) -> Option<LocalSocket> {
    let (from, to) = (in_table(from), in_table(to));
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let table = fs::read_to_string(table).unwrap_or_default();
        for line in table.lines().skip(1) {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let (Some(local), Some(remote)) = (fields.get(1), fields.get(2)) else {
                continue;
            };
            if from.contains(&(*local).to_owned()) && to.contains(&(*remote).to_owned()) {
                return Some(LocalSocket {
                    inode: fields.get(9)?.parse().ok()?,
                    uid: fields.get(7)?.parse().ok()?,
                });
            }
        }
    }
    None
}

/// Returns the ways in which the table may write an address: 32-bit words in the order of this
/// machine's bytes, in hexadecimal digits, and the port.
fn in_table(address: SocketAddr) -> Vec<String> {
    let port = address.port();
    let word = |bytes: &[u8]| {
        let word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        format!("{word:08X}")
    };
    let long = |octets: [u8; 16]| -> String { octets.chunks(4).map(word).collect() };
    match address {
        SocketAddr::V4(v4) => {
            let mapped = v4.ip().to_ipv6_mapped().octets();
            vec![
                format!("{}:{port:04X}", word(&v4.ip().octets())),
                format!("{}:{port:04X}", long(mapped)),
            ]
        }
        SocketAddr::V6(v6) => vec![format!("{}:{port:04X}", long(v6.ip().octets()))],
    }
}

/// Answers requests on these sockets until `stop` is true.
///
/// # Errors
/// A socket can no longer be listened on.
pub async fn serve(
    listeners: Vec<ServerListener>,
    router: Router,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut listening = JoinSet::new();
    for listener in listeners {
        let (router, stop) = (router.clone(), stop.clone());
        listening.spawn(listen(listener, router, Arc::clone(&places), stop));
    }
    let failed = tokio::select! {
        Some(ended) = listening.join_next() => ended.map_err(io::Error::other)?,
        _ = stop.wait_for(|stop| *stop) => Ok(()),
    };
    // Each holds a place while it lives.
    let all = u32::try_from(MAX_CONNECTIONS).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(GRACE, places.acquire_many(all)).await;
    failed
}

async fn listen(
    listener: ServerListener,
    router: Router,
    places: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    loop {
        match &listener {
            ServerListener::Network(listener) => {
                let (stream, from) = match listener.accept().await {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        not_fatal(error).await?;
                        continue;
                    }
                };
                let Ok(to) = stream.local_addr() else {
                    continue;
                };
                // Small answers are not held back.
                let _ = stream.set_nodelay(true);
                let peer = Peer::Network {
                    from,
                    to,
                    of_run: Arc::default(),
                };
                begin(stream, peer, &router, &places, &stop);
            }
            ServerListener::Local(listener, owner) => {
                let (stream, _) = match listener.accept().await {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        not_fatal(error).await?;
                        continue;
                    }
                };
                let own = fs::metadata("/proc/self").map(|process| process.uid()).ok();
                let Ok(credentials) = stream.peer_cred() else {
                    continue;
                };
                if Some(credentials.uid()) != own {
                    continue;
                }
                let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok());
                let peer = Peer::Local {
                    pid,
                    principal: owner.clone(),
                };
                begin(stream, peer, &router, &places, &stop);
            }
        }
    }
}

/// Continues after an error of accepting: neither a connection that broke before it was accepted
/// nor a temporary lack of file descriptors is a reason to stop.
async fn not_fatal(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::ConnectionAborted
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::Interrupted => Ok(()),
        _ if matches!(error.raw_os_error(), Some(23 | 24)) => {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(())
        }
        _ => Err(error),
    }
}

fn begin(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    router: &Router,
    places: &Arc<Semaphore>,
    stop: &watch::Receiver<bool>,
) {
    let Ok(place) = Arc::clone(places).try_acquire_owned() else {
        return;
    };
    let service = TowerToHyperService::new(router.clone().layer(Extension(peer)));
    let mut stop = stop.clone();
    tokio::spawn(async move {
        let _place = place;
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN)
            .max_buf_size(MAX_HEAD)
            .max_headers(MAX_FIELDS);
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            _ = stop.wait_for(|stop| *stop) => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(GRACE, connection).await;
    });
}
