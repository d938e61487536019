//! A server on loopback with scripted answers, byte by byte.

use std::{collections::VecDeque, io, net::Ipv4Addr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, Response, Uri},
};
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};

/// Ending of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending {
    /// The proper end of HTTP.
    Clean,
    /// The connection is closed in the middle.
    Abort,
    /// No further data, and the connection stays open.
    Silence,
    /// These bytes come every minute, forever; time runs ahead.
    Drip(&'static str),
}

/// One answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) pieces: Vec<Vec<u8>>,
    pub(crate) ending: Ending,
}

impl Answer {
    /// Returns an answer with a whole body.
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            pieces: vec![body.into()],
            ending: Ending::Clean,
        }
    }

    /// Adds a header.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A received request.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) uri: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

/// The answers of a server, and the requests that it has received.
#[derive(Default)]
struct Stage {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Asked>>,
    /// Time runs ahead as soon as a request is there.
    pauses_time: bool,
}

/// A running server; it stops when dropped.
pub(crate) struct Server {
    pub(crate) url: String,
    stage: Arc<Stage>,
    serving: JoinHandle<()>,
}

impl Server {
    /// Starts a server that gives `answers` one after the other, whatever the request.
    pub(crate) async fn start(answers: Vec<Answer>) -> Self {
        Self::with(Stage {
            answers: Mutex::new(answers.into()),
            ..Stage::default()
        })
        .await
    }

    /// Starts a server that never answers; from the first request on, time runs ahead.
    pub(crate) async fn silent() -> Self {
        Self::with(Stage {
            pauses_time: true,
            ..Stage::default()
        })
        .await
    }

    async fn with(stage: Stage) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stage = Arc::new(stage);
        let router = Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::disable())
            .with_state(stage.clone());
        let serving = tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            stage,
            serving,
        }
    }

    /// Returns all requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.stage.asked.lock().clone()
    }

    /// Closes its port.
    pub(crate) async fn stop(mut self) {
        self.serving.abort();
        // Cancelled, which is what was wanted.
        _ = (&mut self.serving).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(
    State(stage): State<Arc<Stage>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    stage.asked.lock().push(Asked {
        uri: uri.to_string(),
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    });
    let answer = stage.answers.lock().pop_front();
    let Some(answer) = answer else {
        if stage.pauses_time {
            tokio::time::pause();
        }
        return std::future::pending().await;
    };
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    let pieces = stream::iter(answer.pieces.into_iter().map(Ok));
    let body = match answer.ending {
        Ending::Clean => Body::from_stream(pieces),
        Ending::Abort => {
            // What came before is on its way by then.
            let broken = stream::once(async {
                tokio::task::yield_now().await;
                Err(io::Error::other("the cable was pulled"))
            });
            Body::from_stream(pieces.chain(broken))
        }
        Ending::Drip(drop) => {
            tokio::time::pause();
            let drops = stream::repeat(drop).then(async |drop| {
                tokio::time::sleep(Duration::from_secs(60)).await;
                Ok::<_, io::Error>(drop.as_bytes().to_vec())
            });
            Body::from_stream(pieces.chain(drops))
        }
        Ending::Silence => Body::from_stream(pieces.chain(stream::pending::<io::Result<_>>())),
    };
    response.body(body).unwrap()
}
