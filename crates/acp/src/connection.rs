//! The connection to the client: lines in, lines out, and the requests that it has not answered.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Read, Write},
    thread,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::message::MAX_MESSAGE;

/// Maximum number of queued lines in either direction.
const WAITING: usize = 256;

#[derive(Debug)]
pub(crate) enum EditorLine {
    /// The line, without its end.
    Whole(Vec<u8>),
    TooLong,
}

/// Reads lines on a separate thread, until there are no more.
pub(crate) fn read_lines(
    input: impl Read + Send + 'static,
) -> io::Result<mpsc::Receiver<EditorLine>> {
    let (sender, lines) = mpsc::channel(WAITING);
    thread::Builder::new()
        .name("editor-in".to_owned())
        .spawn(move || {
            let mut input = BufReader::with_capacity(64 << 10, input);
            // An input that cannot be read is one that has ended.
            while let Ok(Some(line)) = next_line(&mut input, MAX_MESSAGE) {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        })?;
    Ok(lines)
}

/// Reads the next line of at most `most` bytes; `None` at the end, where a line end is optional.
fn next_line(input: &mut impl BufRead, most: usize) -> io::Result<Option<EditorLine>> {
    let (mut line, mut too_long, mut is_empty) = (Vec::new(), false, true);
    loop {
        let buffer = match input.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let is_end = buffer.is_empty();
        is_empty &= is_end;
        let feed = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..feed.unwrap_or(buffer.len())];
        if line.len() + part.len() > most {
            too_long = true;
            line = Vec::new();
        } else if !too_long {
            line.extend_from_slice(part);
        }
        let used = feed.map_or(part.len(), |feed| feed + 1);
        input.consume(used);
        match (feed.is_some(), is_end) {
            (false, false) => {}
            (false, true) if is_empty => return Ok(None),
            (_, _) if too_long => return Ok(Some(EditorLine::TooLong)),
            (_, _) => return Ok(Some(EditorLine::Whole(line))),
        }
    }
}

pub(crate) struct EditorClient {
    lines: mpsc::Sender<String>,
    requests: Mutex<ClientRequests>,
}

#[derive(Default)]
struct ClientRequests {
    last: u64,
    open: BTreeMap<u64, oneshot::Sender<Result<Value, Value>>>,
}

pub(crate) struct ClientRequest {
    pub(crate) id: u64,
    /// The answer to the request; an error of the channel means that it was withdrawn.
    pub(crate) answer: oneshot::Receiver<Result<Value, Value>>,
}

impl EditorClient {
    /// Writes lines on a separate thread, which ends when the client is dropped.
    pub(crate) fn new(
        mut output: impl Write + Send + 'static,
    ) -> io::Result<(Self, thread::JoinHandle<()>)> {
        let (lines, mut waiting) = mpsc::channel::<String>(WAITING);
        let writing = thread::Builder::new()
            .name("editor-out".to_owned())
            .spawn(move || {
                while let Some(line) = waiting.blocking_recv() {
                    // Whoever does not read any more has gone: the input ends as well.
                    if output.write_all(line.as_bytes()).is_err() || output.flush().is_err() {
                        return;
                    }
                }
            })?;
        let requests = Mutex::default();
        Ok((Self { lines, requests }, writing))
    }

    pub(crate) async fn send(&self, message: &Value) {
        // A client that has gone is told nothing.
        let _ = self.lines.send(format!("{message}\n")).await;
    }

    pub(crate) async fn answer(&self, id: &Value, result: Value) {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.send(&answer).await;
    }

    /// Sends an update about a session.
    pub(crate) async fn update(&self, session: &str, update: Value) {
        let params = json!({"sessionId": session, "update": update});
        self.notify("session/update", params).await;
    }

    async fn notify(&self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.send(&message).await;
    }

    pub(crate) async fn request(&self, method: &str, params: Value) -> ClientRequest {
        let (sender, answer) = oneshot::channel();
        let id = {
            let mut requests = self.requests.lock();
            requests.last += 1;
            let id = requests.last;
            requests.open.insert(id, sender);
            id
        };
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&message).await;
        ClientRequest { id, answer }
    }

    /// Handles the answer to a request. One to a request that is not open is ignored.
    pub(crate) fn answered(&self, id: u64, outcome: Result<Value, Value>) {
        let open = self.requests.lock().open.remove(&id);
        if let Some(open) = open {
            // Whoever asked may have gone.
            let _ = open.send(outcome);
        }
    }

    /// Withdraws a request; an answer that comes all the same is ignored.
    pub(crate) async fn withdraw(&self, id: u64) {
        let was_open = self.requests.lock().open.remove(&id).is_some();
        if was_open {
            self.notify("$/cancel_request", json!({"requestId": id}))
                .await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_anywhere_and_long_ones_are_skipped() {
        for capacity in [1, 3, 64] {
            let text: &[u8] = b"one\n\nfar too long a line\n12345\nend";
            let mut input = BufReader::with_capacity(capacity, text);
            let mut read = Vec::new();
            while let Some(line) = next_line(&mut input, 5).unwrap() {
                read.push(match line {
                    EditorLine::Whole(line) => String::from_utf8(line).unwrap(),
                    EditorLine::TooLong => "…".to_owned(),
                });
            }
            assert_eq!(read, ["one", "", "…", "12345", "end"]);
        }
        let mut input = BufReader::with_capacity(2, &b"123456"[..]);
        assert!(matches!(
            next_line(&mut input, 5),
            Ok(Some(EditorLine::TooLong))
        ));
        assert!(matches!(next_line(&mut input, 5), Ok(None)));
    }
}
