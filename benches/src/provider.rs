//! A provider on loopback that costs little: it speaks Chat Completions and answers at once.
//!
//! Every conversation is the same: a file is written, read again, and the work is done. Which
//! answer is due stands in the request itself, so one server serves any number of runs.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Instant,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::post,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{Barrier, mpsc},
    task::JoinHandle,
};

/// Model calls of one conversation.
pub(crate) const CALLS: usize = 3;

/// A running server. Dropping it stops it.
pub(crate) struct Provider {
    address: SocketAddr,
    /// When each request was whole.
    pub(crate) asked: mpsc::UnboundedReceiver<Instant>,
    serving: JoinHandle<()>,
}

struct Stage {
    asked: mpsc::UnboundedSender<Instant>,
    together: Barrier,
}

impl Provider {
    /// Listens on a free port. The first request of a conversation is answered when `together`
    /// conversations have begun, so that they are surely under way at the same time.
    pub(crate) async fn start(together: usize) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (sender, asked) = mpsc::unbounded_channel();
        let stage = Stage {
            asked: sender,
            together: Barrier::new(together),
        };
        let router = Router::new()
            .route("/v1/chat/completions", post(answer))
            .with_state(Arc::new(stage));
        let serving = tokio::spawn(async {
            // It ends with its task only.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            address,
            asked,
            serving,
        })
    }

    /// Returns the base URL at which it listens.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[derive(Deserialize)]
struct Request {
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
}

async fn answer(State(stage): State<Arc<Stage>>, body: Bytes) -> Response {
    let Ok(request) = serde_json::from_slice::<Request>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    // Nobody may be counting.
    let _ = stage.asked.send(Instant::now());
    let results = request.messages.iter();
    let stream = match results.filter(|message| message.role == "tool").count() {
        0 => {
            stage.together.wait().await;
            let content = "A line of a note, as a model may write one.\n".repeat(5);
            call("write", json!({ "path": "note.txt", "content": content }))
        }
        1 => call("read", json!({ "path": "note.txt" })),
        _ => call("finish", json!({ "reached": true, "answer": "done" })),
    };
    ([(CONTENT_TYPE, "text/event-stream")], stream).into_response()
}

/// The stream of a reply that calls one tool.
pub(crate) fn call(tool: &str, arguments: Value) -> String {
    let function = json!({ "name": tool, "arguments": arguments.to_string() });
    let call = json!({ "index": 0, "id": "call-1", "type": "function", "function": function });
    let said = json!({ "content": "I go on with the note.", "tool_calls": [call] });
    let chunk = json!({
        "model": "m",
        "choices": [{ "index": 0, "delta": said, "finish_reason": "tool_calls" }],
        "usage": { "prompt_tokens": 900, "completion_tokens": 60 },
    });
    format!("data: {chunk}\n\ndata: [DONE]\n\n")
}
