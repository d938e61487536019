//! The debugging port of a browser that a person started: finding its address, and speaking to it
//! over a WebSocket.
//!
//! It connects only to this machine, and looks up no names. Everything is bounded in time and size:
//! any program may listen at a port that a person typed.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
    time::Duration,
};

use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use serde::Deserialize;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpStream, tcp::OwnedReadHalf},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{Error, Message, error::ProtocolError, protocol::WebSocketConfig},
};

use crate::cdp::{Hears, Sends};

/// Time limit for a port to prove that it is a browser's debugging port.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

/// Maximum bytes of an answer's first line and headers.
const HEAD: u64 = 16 * 1024;

/// Maximum bytes of the answer to `/json/version`.
const VERSION: u64 = 64 * 1024;

/// Maximum size of one message, in bytes. The largest expected one, a picture or a tree, has a few
/// million.
const MESSAGE: usize = 64 << 20;

/// Path prefix at which browsers offer their own session.
const BROWSER_PATH: &str = "/devtools/browser";

/// The debugging port of a running browser, as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebuggingPort {
    hosts: Vec<IpAddr>,
    port: u16,
    /// Path of the browser's session; `None`: the port is asked.
    path: Option<String>,
    given: String,
}

gyrus_contract::stored_as_text!(DebuggingPort);

impl fmt::Display for DebuggingPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.given)
    }
}

impl DebuggingPort {
    /// Checks that a program listens at the port, before anything else is begun.
    ///
    /// # Errors
    /// When none does.
    pub fn check(&self) -> Result<(), AttachError> {
        let mut failed = None;
        for host in &self.hosts {
            let address = SocketAddr::new(*host, self.port);
            match std::net::TcpStream::connect_timeout(&address, LIMIT) {
                Ok(_) => return Ok(()),
                Err(error) => failed = Some(error),
            }
        }
        Err(self.nobody(failed))
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    fn nobody(&self, failed: Option<io::Error>) -> AttachError {
        AttachError::Nobody {
            at: self.clone(),
            port: self.port,
            source: failed.unwrap_or_else(|| io::Error::other("it has no address")),
        }
    }
}

/// Reason why a running browser cannot be attached to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    #[error("invalid address `{given}` of a browser: {why}; give it as http://127.0.0.1:9222")]
    Address {
        /// The given address, truncated.
        given: String,
        /// The reason why the address is invalid.
        why: &'static str,
    },
    #[error(
        "`{given}` is not on this machine, and such a port asks nobody who they are; bring it here: ssh -L 9222:127.0.0.1:9222 HOST, and name http://127.0.0.1:9222"
    )]
    Elsewhere {
        /// The given address, truncated.
        given: String,
    },
    /// No program listens there.
    #[error(
        "no browser listens at {at}: {source}; start it with --remote-debugging-port={port} --user-data-dir=FOLDER"
    )]
    Nobody {
        /// The address without a listener.
        at: DebuggingPort,
        port: u16,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A program listens at the port but does not answer.
    #[error("what listens at {at} did not answer within {} s; is it a browser's debugging port?", limit.as_secs())]
    Silent {
        /// The address that was tried.
        at: DebuggingPort,
        /// The time limit that was exceeded.
        limit: Duration,
    },
    /// The program at the address is not a browser.
    #[error(
        "what listens at {at} does not speak as a browser's debugging port does: {said}; name the port that the browser was started with"
    )]
    NoBrowser {
        /// The address that was tried.
        at: DebuggingPort,
        /// Description of the program's answer.
        said: String,
    },
}

impl FromStr for DebuggingPort {
    type Err = AttachError;

    fn from_str(text: &str) -> Result<Self, AttachError> {
        let given = gyrus_text::shorten(text, 200).into_owned();
        let wrong = |why| AttachError::Address {
            given: given.clone(),
            why,
        };
        if !text.chars().all(|one| one.is_ascii_graphic()) {
            return Err(wrong("it holds blanks or letters that no address has"));
        }
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let path = match (scheme, path) {
            ("http", "" | "/") => None,
            ("http", _) => return Err(wrong("nothing follows the port")),
            ("ws", path) if path.starts_with(BROWSER_PATH) => Some(path.to_owned()),
            ("ws", _) => return Err(wrong("a browser's own begins with /devtools/browser")),
            _ => return Err(wrong("it must begin with http:// or ws://")),
        };
        let (host, port) = authority
            .rsplit_once(':')
            .ok_or_else(|| wrong("it names no port"))?;
        let port = port.parse().map_err(|_| wrong("it names no port"))?;
        let bare = host.strip_prefix('[').and_then(|six| six.strip_suffix(']'));
        let hosts = match (host, bare.unwrap_or(host).parse::<IpAddr>()) {
            // Never looked up: the name could lead elsewhere.
            ("localhost", _) => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            (_, Ok(address)) if address.is_loopback() => vec![address],
            _ => return Err(AttachError::Elsewhere { given }),
        };
        Ok(Self {
            hosts,
            port,
            path,
            given,
        })
    }
}

/// Connects to a browser, within [`LIMIT`] except in tests.
pub(crate) async fn connect(
    at: &DebuggingPort,
    limit: Duration,
) -> Result<(ToSocket, FromSocket), AttachError> {
    let silent = |_| AttachError::Silent {
        at: at.clone(),
        limit,
    };
    timeout(limit, reach(at)).await.map_err(silent)?
}

async fn reach(at: &DebuggingPort) -> Result<(ToSocket, FromSocket), AttachError> {
    let no = |said: String| AttachError::NoBrowser {
        at: at.clone(),
        said,
    };
    let path = match &at.path {
        Some(path) => path.clone(),
        None => {
            let (stream, address) = open(at).await?;
            let asked = ask_version(stream, address).await;
            asked.map_err(|error| no(error.to_string()))?
        }
    };
    let (stream, address) = open(at).await?;
    let shaken = shake_hands(stream, address, &path).await;
    shaken.map_err(|error| no(error.to_string()))
}

async fn open(at: &DebuggingPort) -> Result<(TcpStream, SocketAddr), AttachError> {
    let mut failed = None;
    for host in &at.hosts {
        let address = SocketAddr::new(*host, at.port);
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok((stream, address)),
            Err(error) => failed = Some(error),
        }
    }
    Err(at.nobody(failed))
}

/// Reads the first line and the headers of an answer, in lower case except for the first line.
async fn head(from: &mut BufReader<OwnedReadHalf>) -> io::Result<(String, Vec<String>)> {
    let mut from = from.take(HEAD);
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        from.read_until(b'\n', &mut line).await?;
        let text = String::from_utf8_lossy(&line);
        if !text.ends_with('\n') {
            return Err(io::Error::other("it does not answer as web servers do"));
        }
        match text.trim() {
            "" => break,
            text => lines.push(text.to_owned()),
        }
    }
    let mut lines = lines.into_iter();
    let first = lines.next().unwrap_or_default();
    Ok((first, lines.map(|line| line.to_ascii_lowercase()).collect()))
}

fn answered(first: &str) -> io::Error {
    let first = gyrus_text::shorten(first, 100);
    io::Error::other(format!("it answers `{}`", first.escape_debug()))
}

fn header<'a>(headers: &'a [String], name: &str) -> Option<&'a str> {
    headers.iter().find_map(|line| {
        let (of, value) = line.split_once(':')?;
        (of == name).then_some(value.trim())
    })
}

/// Asks for the path of the browser's session. The host and port in the answer are ignored: the
/// connection goes to the address that the person gave.
async fn ask_version(stream: TcpStream, address: SocketAddr) -> io::Result<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct BrowserVersion {
        web_socket_debugger_url: String,
    }
    let (from, mut to) = stream.into_split();
    let request =
        format!("GET /json/version HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    to.write_all(request.as_bytes()).await?;
    let mut from = BufReader::new(from);
    let (first, headers) = head(&mut from).await?;
    if first.split(' ').nth(1) != Some("200") {
        return Err(answered(&first));
    }
    let length = header(&headers, "content-length").and_then(|length| length.parse().ok());
    let mut body = Vec::new();
    from.take(length.unwrap_or(VERSION).min(VERSION))
        .read_to_end(&mut body)
        .await?;
    let version: BrowserVersion = serde_json::from_slice(&body)
        .map_err(|_| io::Error::other("it does not say where its browser is"))?;
    let url = version.web_socket_debugger_url;
    let path = url.find(BROWSER_PATH).and_then(|at| url.get(at..));
    match path {
        Some(path) if path.chars().all(|one| one.is_ascii_graphic()) => Ok(path.to_owned()),
        _ => Err(io::Error::other("it does not say where its browser is")),
    }
}

/// Upgrades a connection to a WebSocket. No origin is named: browsers refuse those of pages.
async fn shake_hands(
    stream: TcpStream,
    address: SocketAddr,
    path: &str,
) -> io::Result<(ToSocket, FromSocket)> {
    stream.set_nodelay(true)?;
    let bounds = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE))
        .max_frame_size(Some(MESSAGE));
    let address = format!("ws://{address}{path}");
    match client_async_with_config(address, stream, Some(bounds)).await {
        Ok((socket, _)) => {
            let (to, from) = socket.split();
            Ok((ToSocket(to), FromSocket(from)))
        }
        Err(Error::Http(answer)) => {
            let first = format!("{:?} {}", answer.version(), answer.status());
            Err(answered(&first))
        }
        Err(error) => Err(io::Error::other(format!("it opens no WebSocket: {error}"))),
    }
}

/// Sending side of a connection.
#[derive(Debug)]
pub(crate) struct ToSocket(SplitSink<WebSocketStream<TcpStream>, Message>);

impl Sends for ToSocket {
    async fn send(&mut self, message: Vec<u8>) -> io::Result<()> {
        let text = String::from_utf8(message).map_err(io::Error::other)?;
        let sent = self.0.send(Message::text(text)).await;
        sent.map_err(io::Error::other)
    }
}

/// Receiving side of a connection. Pings are answered while it is read.
#[derive(Debug)]
pub(crate) struct FromSocket(SplitStream<WebSocketStream<TcpStream>>);

impl Hears for FromSocket {
    async fn hear(&mut self, message: &mut Vec<u8>) -> io::Result<bool> {
        while let Some(received) = self.0.next().await {
            match received {
                Ok(Message::Text(text)) => {
                    message.extend_from_slice(text.as_bytes());
                    return Ok(true);
                }
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(Message::Close(_))
                | Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)) => break,
                Ok(Message::Binary(_) | Message::Frame(_)) => {
                    return Err(io::Error::other("it sent a message that is not text"));
                }
                Err(Error::Capacity(_)) => {
                    let what = format!("it sent a message of more than {MESSAGE} bytes");
                    return Err(io::Error::other(what));
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests;
