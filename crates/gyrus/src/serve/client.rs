//! Talking to a server: of this home by its socket, or another by its address and a token.

use std::{io, path::PathBuf};

use gyrus::runtime::Home;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Method, Request, Response,
    body::{Bytes, Incoming},
    client::conn::http1,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST},
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};

use super::listen;
use crate::failure::Failure;

/// The longest answer in bytes.
const MAX_ANSWER: usize = 64 << 20;

pub(crate) enum ServerLocation {
    OfHome(Box<Home>),
    Socket(PathBuf),
    At {
        /// Host and port.
        host: String,
        token: Option<String>,
    },
}

impl ServerLocation {
    pub(crate) fn of(home: &Home) -> Self {
        ServerLocation::OfHome(Box::new(home.clone()))
    }

    /// Returns the server that a person names: `http://HOST:PORT`, or the path of a socket.
    ///
    /// # Errors
    /// The text is neither such an address nor a path.
    pub(crate) fn named(given: &str, token: Option<String>) -> Result<Self, Failure> {
        if given.starts_with('/') || given.starts_with('.') {
            return Ok(ServerLocation::Socket(PathBuf::from(given)));
        }
        let host = given.strip_prefix("http://").unwrap_or(given);
        let host = host.trim_end_matches('/');
        if host.contains("://") || host.contains('/') || !host.contains(':') {
            return Err(Failure::usage(format!("invalid server `{given}`"))
                .hint("name it as http://HOST:PORT, or by the path of its socket"));
        }
        Ok(ServerLocation::At {
            host: host.to_owned(),
            token,
        })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.json(Method::GET, path, None).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.json(Method::DELETE, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.json(Method::POST, path, Some(body)).await
    }

    async fn json(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let mut answer = self.send(method, path, body).await?;
        let status = answer.status();
        let mut bytes = Vec::new();
        while let Some(frame) = answer.frame().await {
            let frame = frame.map_err(|error| self.broken(&error))?;
            bytes.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
            if bytes.len() > MAX_ANSWER {
                return Err(Failure::failed("the server's answer is too long"));
            }
        }
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if status.is_success() {
            return Ok(value);
        }
        Err(refusal(status.as_u16(), &value))
    }

    /// Carries out a command of the command line at the server, and passes its output on.
    pub(crate) async fn command(
        &self,
        arguments: &[String],
        stdin: &str,
        mut print: impl FnMut(bool, &str) -> Result<(), Failure>,
    ) -> Result<i32, Failure> {
        let body = json!({"arguments": arguments, "stdin": stdin});
        let mut answer = self.send(Method::POST, "/api/command", Some(&body)).await?;
        let status = answer.status();
        let mut waiting = Vec::new();
        let mut code = None;
        while let Some(frame) = answer.frame().await {
            let frame = frame.map_err(|error| self.broken(&error))?;
            waiting.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
            if !status.is_success() {
                continue;
            }
            while let Some(end) = waiting.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = waiting.drain(..=end).collect();
                let piece: Value = serde_json::from_slice(&line).unwrap_or_default();
                if let Some(text) = piece["stdout"].as_str() {
                    print(true, text)?;
                } else if let Some(text) = piece["stderr"].as_str() {
                    print(false, text)?;
                } else if let Some(ended) = piece.get("ended") {
                    code = Some(ended.as_i64().and_then(|code| i32::try_from(code).ok()));
                }
            }
        }
        if !status.is_success() {
            let value = serde_json::from_slice(&waiting).unwrap_or_default();
            return Err(refusal(status.as_u16(), &value));
        }
        code.flatten()
            .ok_or_else(|| Failure::failed("the command ended before it was done"))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response<Incoming>, Failure> {
        let unreachable = |error: &io::Error| {
            Failure::failed(format!("{} cannot be reached", self.name()))
                .because(error)
                .hint("start it: gyrus serve")
        };
        match self {
            ServerLocation::OfHome(home) => {
                let stream = listen::connect(home).await;
                let stream = stream.map_err(|error| unreachable(&error))?;
                self.over(stream, method, path, body).await
            }
            ServerLocation::Socket(socket) => {
                let stream = UnixStream::connect(socket).await;
                let stream = stream.map_err(|error| unreachable(&error))?;
                self.over(stream, method, path, body).await
            }
            ServerLocation::At { host, .. } => {
                let stream = TcpStream::connect(host).await;
                let stream = stream.map_err(|error| unreachable(&error))?;
                self.over(stream, method, path, body).await
            }
        }
    }

    async fn over(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response<Incoming>, Failure> {
        let connecting = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = connecting.map_err(|error| self.broken(&error))?;
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path);
        match self {
            ServerLocation::At { host, token } => {
                request = request.header(HOST, host);
                if let Some(token) = token {
                    request = request.header(AUTHORIZATION, format!("Bearer {token}"));
                }
            }
            ServerLocation::OfHome(_) | ServerLocation::Socket(_) => {
                request = request.header(HOST, "localhost")
            }
        }
        let bytes = match body {
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        let request = request
            .body(Full::new(bytes))
            .map_err(|error| Failure::usage("the request cannot be made").because(&error))?;
        let answer = sender.send_request(request).await;
        answer.map_err(|error| self.broken(&error))
    }

    fn name(&self) -> String {
        match self {
            ServerLocation::OfHome(_) => "the server of this state folder".to_owned(),
            ServerLocation::Socket(path) => format!("the server at {}", path.display()),
            ServerLocation::At { host, .. } => format!("the server at {host}"),
        }
    }

    fn broken(&self, error: &hyper::Error) -> Failure {
        Failure::failed(format!("{} did not answer", self.name())).because(error)
    }
}

/// Returns the failure for a request that the server refused, with the server's words.
fn refusal(status: u16, value: &Value) -> Failure {
    let error = value["error"].as_str().unwrap_or("it gave no reason");
    let failure = match status {
        400 | 404 => Failure::usage(error),
        _ => Failure::failed(format!("the server refused ({status}): {error}")),
    };
    match value["hint"].as_str() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
