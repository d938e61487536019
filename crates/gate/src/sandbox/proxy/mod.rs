//! The way out of a sandbox whose network is [`Proxy`](gyrus_contract::Network::Proxy).
//!
//! It runs in gyrus, outside of the sandbox, and accepts on sockets that stand inside. The proxy
//! speaks `CONNECT` and plain HTTP/1 with whole addresses; a forwarded address of loopback takes
//! whatever is sent. For each connection a [`ConnectionPolicy`] is asked while it is held.
//!
//! A name is looked up here, once, and only after it was allowed: looking it up already tells its
//! owner something. The addresses that were found are the ones that are connected to. An address
//! of this machine or of a private network is asked about as such, whatever name led there.
//!
//! A connection has one destination for good. What goes through it is not looked into: whoever may
//! reach a host may reach whatever that host serves.

mod head;
mod reach;

use std::{
    future::{pending, poll_fn},
    io,
    net::SocketAddr,
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
    task::Poll,
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use gyrus_contract::{ConnectionPolicy, Destination, Listeners};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};

use head::{ProxyRequest, RequestHead};
use reach::ProxyRefusal;

/// Maximum number of concurrent connections; more have to wait.
const CONNECTIONS: usize = 64;
/// Connections at once that wait for an answer; more are refused.
const HELD: usize = 32;
/// Longest wait for an answer. A command rarely has that long.
const HOLD_LIMIT: Duration = Duration::from_secs(60 * 60);
/// Time limit for the start of a request to arrive.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// Time limit without a byte in either direction: the longest command may wait for one answer all its time.
const IDLE_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);
/// Pause after a failed attempt to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
const CHUNK_BYTES: usize = 16 * 1024;

/// Socket at which a connection came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProxyEntrance {
    Proxy,
    /// Leads to this address.
    Forwarded(SocketAddr),
}

/// Serves the commands of a sandbox until it is dropped, which closes all connections. Needs a
/// tokio runtime with IO and time.
pub async fn serve(listeners: Listeners, policy: &dyn ConnectionPolicy) -> io::Result<()> {
    let listen = |fd| {
        let listener = std::net::TcpListener::from(fd);
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    };
    let mut doors = vec![(ProxyEntrance::Proxy, listen(listeners.proxy)?)];
    for fd in listeners.forwarded {
        let listener = listen(fd)?;
        doors.push((ProxyEntrance::Forwarded(listener.local_addr()?), listener));
    }
    let held = Semaphore::new(HELD);
    let mut connections = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(_) = connections.next() => {}
            accepted = accept(&doors), if connections.len() < CONNECTIONS => {
                let (door, client) = accepted;
                let desk = ProxyState { policy, held: &held };
                // How a connection fails is the client's to see.
                connections.push(async move {
                    match door {
                        ProxyEntrance::Proxy => attend(client, desk).await,
                        ProxyEntrance::Forwarded(to) => forward(client, to, desk).await,
                    }
                });
            }
        }
    }
}

/// Accepts the next connection at any entrance.
async fn accept(doors: &[(ProxyEntrance, TcpListener)]) -> (ProxyEntrance, TcpStream) {
    loop {
        let accepted = poll_fn(|context| {
            for (door, listener) in doors {
                if let Poll::Ready(accepted) = listener.poll_accept(context) {
                    return Poll::Ready(accepted.map(|(client, _)| (*door, client)));
                }
            }
            Poll::Pending
        });
        match accepted.await {
            Ok(accepted) => return accepted,
            // It hung up before we came, or there are no descriptors now.
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// State that all connections share.
#[derive(Clone, Copy)]
struct ProxyState<'a> {
    policy: &'a dyn ConnectionPolicy,
    /// Places for connections that wait for an answer.
    held: &'a Semaphore,
}

impl ProxyState<'_> {
    /// Waits until the connection that `client` requests is allowed.
    async fn decide(&self, client: &TcpStream, to: &Destination) -> Result<(), ProxyRefusal> {
        let denied = |reason| ProxyRefusal::Denied {
            to: to.clone(),
            reason,
        };
        let mut deciding = self.policy.decide(to);
        // Most are decided at once, however many others wait.
        let first = poll_fn(|context| Poll::Ready(deciding.as_mut().poll(context)));
        if let Poll::Ready(decided) = first.await {
            return decided.map_err(denied);
        }
        let Ok(_place) = self.held.try_acquire() else {
            let reason = "too many connections wait for an answer already".to_owned();
            return Err(denied(reason));
        };
        tokio::select! {
            decided = deciding => decided.map_err(denied),
            () = hung_up(client) => Err(ProxyRefusal::Gone),
            () = sleep(HOLD_LIMIT) => Err(denied("nobody answered in time".to_owned())),
        }
    }
}

/// Waits until the client closes its side before it was answered.
async fn hung_up(client: &TcpStream) {
    match client.peek(&mut [0]).await {
        Ok(0) | Err(_) => {}
        // What it sends early is for the server; its end cannot be seen behind that.
        Ok(_) => pending().await,
    }
}

async fn attend(mut client: TcpStream, desk: ProxyState<'_>) -> io::Result<()> {
    let head = match timeout(HEAD_LIMIT, head::read(&mut client)).await {
        Ok(Ok(head)) => head,
        Ok(Err(reason)) => return answer(&mut client, "400 Bad Request", reason).await,
        Err(_late) => return answer(&mut client, "408 Request Timeout", "too slow").await,
    };
    let decide = |to: Destination| {
        let client = &client;
        async move { desk.decide(client, &to).await }
    };
    let server = match reach::addresses(&head.to, decide, reach::look_up).await {
        Ok(addresses) => reach::connect(&head.to, &addresses).await,
        Err(refusal) => Err(refusal),
    };
    match server {
        Ok(server) => exchange(client, server, head).await,
        Err(ProxyRefusal::Denied { to, reason }) => {
            let line = format!("the sandbox refuses to connect to {to}: {reason}");
            answer(&mut client, "403 Forbidden", &line).await
        }
        Err(ProxyRefusal::Failed(line)) => answer(&mut client, "502 Bad Gateway", &line).await,
        Err(ProxyRefusal::Gone) => Ok(()),
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

/// Passes on a connection to a forwarded address.
async fn forward(client: TcpStream, at: SocketAddr, desk: ProxyState<'_>) -> io::Result<()> {
    let to = Destination {
        host: at.ip().to_string(),
        port: at.port(),
        name: None,
    };
    // Nothing can be said to a program whose protocol is not known.
    if desk.decide(&client, &to).await.is_err() {
        return Ok(());
    }
    let server = match desk.policy.socket(&to) {
        Some(socket) => TcpSocket::from_std_stream(socket.into())
            .connect(at)
            .await
            .ok(),
        None => reach::connect(&to, &[at]).await.ok(),
    };
    match server {
        Some(server) => pass_on(client, server).await,
        None => Ok(()),
    }
}

/// Sends the first bytes to either side, and passes on data in both directions.
async fn exchange(
    mut client: TcpStream,
    mut server: TcpStream,
    head: RequestHead,
) -> io::Result<()> {
    match &head.wanted {
        ProxyRequest::Tunnel => {
            client
                .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                .await?;
        }
        ProxyRequest::Request(text) => server.write_all(text).await?,
    }
    server.write_all(&head.rest).await?;
    pass_on(client, server).await
}

/// Passes on data in both directions until both sides have ended or neither sends anything.
async fn pass_on(mut client: TcpStream, mut server: TcpStream) -> io::Result<()> {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let passed = AtomicU64::new(0);
    let there = pin!(pump(from_client, to_server, &passed));
    let back = pin!(pump(from_server, to_client, &passed));
    tokio::try_join!(there, back)?;
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
