//! The one way out of a sandbox whose network is [`Proxy`](gyrus_contract::Network::Proxy).
//!
//! It runs in gyrus, outside of the sandbox, accepts on a socket that stands inside, and connects
//! to hosts that were granted. It speaks `CONNECT` and plain HTTP/1 with whole addresses; names
//! are looked up here, and the address that was looked at is the one that is connected to. An
//! address of this machine or of a private network must have been granted by its number, so a
//! name that leads there gets nobody in.
//!
//! What goes through a tunnel is not looked into: whoever may reach a host may reach whatever
//! that host serves.

mod address;
mod head;

use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, lookup_host},
    sync::Semaphore,
    task::JoinSet,
    time::timeout,
};

pub(crate) use address::is_public;
use head::{Head, Wanted};

/// Connections at once; more have to wait.
const CONNECTIONS: usize = 64;
/// For the start of a request to arrive.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// For a name to be looked up, and for each address to answer.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Addresses of a name that are tried.
const ADDRESSES: usize = 4;
/// Without a byte in either direction.
const IDLE_LIMIT: Duration = Duration::from_secs(300);
/// Denials that are remembered; more of them tell nobody more.
const DENIALS: usize = 100;
const CHUNK_BYTES: usize = 16 * 1024;

/// Which hosts were granted.
pub trait Hosts: Send + Sync {
    /// Whether this host may be reached at this port. `host` is in lower case, without a dot at
    /// its end; addresses of version 6 stand without brackets.
    fn allows(&self, host: &str, port: u16) -> bool;
}

impl<F: Fn(&str, u16) -> bool + Send + Sync> Hosts for F {
    fn allows(&self, host: &str, port: u16) -> bool {
        self(host, port)
    }
}

/// A connection that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Denial {
    /// Where it should have gone.
    pub host: String,
    /// At which port.
    pub port: u16,
    /// Why not.
    pub reason: &'static str,
}

/// What a proxy refused, to tell whoever started the command.
#[derive(Debug, Clone, Default)]
pub struct Denials(Arc<Mutex<Vec<Denial>>>);

impl Denials {
    /// Everything so far, each once, in the order of their coming.
    pub fn list(&self) -> Vec<Denial> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn add(&self, denial: Denial) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < DENIALS && !known.contains(&denial) {
            known.push(denial);
        }
    }
}

const NOT_GRANTED: &str = "it was not granted";
const NOT_PUBLIC: &str = "its name leads to a private address, which must be granted by number";

/// Serves the commands of a sandbox until it is dropped, which closes all connections. Needs a
/// tokio runtime with IO and time. `listener` is [`Confined::listener`](super::Confined::listener).
pub async fn serve(listener: OwnedFd, hosts: Arc<dyn Hosts>, denials: Denials) -> io::Result<()> {
    let listener = std::net::TcpListener::from(listener);
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        // Those that have ended must not pile up.
        while connections.try_join_next().is_some() {}
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return Ok(());
        };
        let (client, _) = match listener.accept().await {
            Ok(accepted) => accepted,
            // It hung up before we came, or there are no descriptors now.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        let (hosts, denials) = (Arc::clone(&hosts), denials.clone());
        connections.spawn(async move {
            // How a connection fails is the client's to see.
            let _ = attend(client, &*hosts, &denials).await;
            drop(place);
        });
    }
}

/// Why a request goes nowhere, with a status and a line for the one who asked.
enum Refusal {
    Denied(Denial),
    Failed(&'static str, String),
}

async fn attend(mut client: TcpStream, hosts: &dyn Hosts, denials: &Denials) -> io::Result<()> {
    let head = match timeout(HEAD_LIMIT, head::read(&mut client)).await {
        Ok(Ok(head)) => head,
        Ok(Err(reason)) => return answer(&mut client, "400 Bad Request", reason).await,
        Err(_late) => return answer(&mut client, "408 Request Timeout", "too slow").await,
    };
    match connect(&head, hosts).await {
        Ok(server) => exchange(client, server, head).await,
        Err(Refusal::Denied(denial)) => {
            let Denial { host, port, reason } = &denial;
            let line = format!("the sandbox refuses to connect to {host}:{port}: {reason}");
            denials.add(denial);
            answer(&mut client, "403 Forbidden", &line).await
        }
        Err(Refusal::Failed(status, line)) => answer(&mut client, status, &line).await,
    }
}

async fn answer(client: &mut TcpStream, status: &str, line: &str) -> io::Result<()> {
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{line}\n",
        line.len() + 1
    );
    client.write_all(text.as_bytes()).await?;
    client.shutdown().await
}

/// Connects to what is wanted, if it may be.
async fn connect(head: &Head, hosts: &dyn Hosts) -> Result<TcpStream, Refusal> {
    let (host, port) = (head.host.as_str(), head.port);
    let deny = |reason| {
        let host = host.to_owned();
        Refusal::Denied(Denial { host, port, reason })
    };
    if !hosts.allows(host, port) {
        return Err(deny(NOT_GRANTED));
    }
    let addresses = match host.parse::<IpAddr>() {
        // Granted by number.
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_name) => {
            let found = resolve(host, port).await?;
            let public: Vec<_> = found
                .into_iter()
                .filter(|found| is_public(found.ip()))
                .collect();
            if public.is_empty() {
                return Err(deny(NOT_PUBLIC));
            }
            public
        }
    };
    let mut reason = "no answer in time".to_owned();
    for address in addresses.into_iter().take(ADDRESSES) {
        match timeout(CONNECT_LIMIT, TcpStream::connect(address)).await {
            Ok(Ok(server)) => return Ok(server),
            Ok(Err(error)) => reason = error.to_string(),
            Err(_late) => {}
        }
    }
    let line = format!("{host}:{port} cannot be reached: {reason}");
    Err(Refusal::Failed("502 Bad Gateway", line))
}

async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Refusal> {
    let failed = |reason: &str| {
        let line = format!("{host} cannot be looked up: {reason}");
        Refusal::Failed("502 Bad Gateway", line)
    };
    match timeout(CONNECT_LIMIT, lookup_host((host, port))).await {
        Ok(Ok(found)) => Ok(found.collect()),
        Ok(Err(error)) => Err(failed(&error.to_string())),
        Err(_late) => Err(failed("no answer in time")),
    }
}

/// Lets both sides talk until both have ended or neither says anything.
async fn exchange(mut client: TcpStream, mut server: TcpStream, head: Head) -> io::Result<()> {
    match &head.wanted {
        Wanted::Tunnel => {
            client
                .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                .await?;
        }
        Wanted::Request(text) => server.write_all(text).await?,
    }
    server.write_all(&head.rest).await?;
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let passed = AtomicU64::new(0);
    tokio::try_join!(
        pump(from_client, to_server, &passed),
        pump(from_server, to_client, &passed),
    )?;
    Ok(())
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    passed: &AtomicU64,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let before = passed.load(Ordering::Relaxed);
        let count = match timeout(IDLE_LIMIT, from.read(&mut chunk)).await {
            Ok(count) => count?,
            // The other direction may be busy.
            Err(_) if passed.load(Ordering::Relaxed) != before => continue,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        };
        if count == 0 {
            // A side that says no more may still listen.
            return to.shutdown().await;
        }
        timeout(IDLE_LIMIT, to.write_all(&chunk[..count])).await??;
        passed.fetch_add(1, Ordering::Relaxed);
    }
}
