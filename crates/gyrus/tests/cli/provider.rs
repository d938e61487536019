//! A provider on this machine: it speaks the protocol that most servers speak, over plain HTTP, and
//! says what a test wants.

use std::{
    io::Write,
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::http::{self, Message};

/// Reply to a question, and the way in which the connection ends.
pub(crate) enum Says {
    /// A whole answer: status, content type, body.
    Answer(u16, &'static str, String),
    /// The beginning of a stream, and then nothing more.
    Dies(String),
    /// Too many requests, for so many seconds.
    Limited(u32),
}

/// A running provider. It ends with the test's process.
pub(crate) struct Provider {
    pub(crate) address: String,
    /// The bodies of the questions so far.
    pub(crate) asked: Arc<Mutex<Vec<Value>>>,
}

impl Provider {
    /// Answers the n-th question, counted from 0, with what `says` returns.
    pub(crate) fn start(says: impl Fn(usize, &Value) -> Says + Send + 'static) -> Self {
        Self::with_pages(|_| None, says)
    }

    /// As [`Provider::start`], and answers what is asked about the server itself with what `pages`
    /// returns for the path; otherwise with a list of one model.
    pub(crate) fn with_pages(
        pages: impl Fn(&str) -> Option<Says> + Send + 'static,
        says: impl Fn(usize, &Value) -> Says + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
        let heard = asked.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                // One after the other is enough for a test; a broken pipe is the test's business.
                let _ = serve(stream, &heard, &pages, &says);
            }
        });
        Self { address, asked }
    }

    /// As `--model` takes it.
    pub(crate) fn model(&self) -> String {
        format!("{}#tiny", self.address)
    }
}

fn serve(
    stream: TcpStream,
    asked: &Mutex<Vec<Value>>,
    pages: &impl Fn(&str) -> Option<Says>,
    says: &impl Fn(usize, &Value) -> Says,
) -> std::io::Result<()> {
    let request = Message::read(&stream)?;
    let said = if request.method() == "GET" {
        let list = json!({"object": "list", "data": [{"id": "tiny", "object": "model"}]});
        let list = || Says::Answer(200, "application/json", list.to_string());
        pages(request.path()).unwrap_or_else(list)
    } else {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let number = {
            let mut asked = asked.lock();
            asked.push(body.clone());
            asked.len() - 1
        };
        says(number, &body)
    };
    let mut stream = stream;
    match said {
        Says::Answer(status, kind, body) => http::answer(&stream, status, kind, &body),
        Says::Dies(start) => write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 100000\r\n\
             \r\n{start}"
        ),
        Says::Limited(seconds) => write!(
            stream,
            "HTTP/1.1 429 Too Many Requests\r\nretry-after: {seconds}\r\ncontent-length: 0\r\n\r\n"
        ),
    }
}

/// A streamed reply of these deltas.
pub(crate) fn stream(deltas: &[Value], finish: &str) -> Says {
    let mut body = String::new();
    for delta in deltas {
        body.push_str(&event(
            &json!({"index": 0, "delta": delta, "finish_reason": null}),
        ));
    }
    body.push_str(&event(
        &json!({"index": 0, "delta": {}, "finish_reason": finish}),
    ));
    let usage = json!({
        "id": "c", "object": "chat.completion.chunk", "model": "tiny", "choices": [],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    });
    body.push_str(&format!("data: {usage}\n\ndata: [DONE]\n\n"));
    Says::Answer(200, "text/event-stream", body)
}

/// One event of a stream.
pub(crate) fn event(choice: &Value) -> String {
    let chunk = json!({
        "id": "c", "object": "chat.completion.chunk", "model": "tiny", "choices": [choice]
    });
    format!("data: {chunk}\n\n")
}

/// Words, streamed.
pub(crate) fn words(text: &str) -> Says {
    stream(&[json!({"role": "assistant", "content": text})], "stop")
}

/// A call, streamed.
pub(crate) fn call(tool: &str, arguments: &Value) -> Says {
    let call = json!({"tool_calls": [{
        "index": 0, "id": format!("call_{tool}"), "type": "function",
        "function": {"name": tool, "arguments": arguments.to_string()}
    }]});
    stream(
        &[json!({"role": "assistant", "content": ""}), call],
        "tool_calls",
    )
}

/// A refusal, as providers word them.
pub(crate) fn refusal(status: u16, code: &str, message: &str) -> Says {
    let body = json!({"error": {"message": message, "type": code, "code": code}});
    Says::Answer(status, "application/json", body.to_string())
}
