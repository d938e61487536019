//! The Chrome DevTools Protocol: JSON messages, one object each, with flat sessions
//! (<https://chromedevtools.github.io/devtools-protocol/>). Commands are answered by number;
//! events go, in order, to one listener that must not block.
//!
//! Our own browser is reached over a pipe and never a port, so that no other process on the machine
//! can connect to it. `socket` is for a browser whose port a person has opened.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{json, value::RawValue};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

/// Maximum time for one command. A later answer is not expected.
const CALL_LIMIT: Duration = Duration::from_secs(15);

/// Maximum time after a late answer in which the browser itself answers; else it is given up.
const ALIVE_LIMIT: Duration = Duration::from_secs(5);

/// Maximum bytes of a message; a longer one closes the connection.
const MESSAGE_LIMIT: u64 = 256 * 1024 * 1024;

/// Reason for the end of a browser that gave none.
const CLOSED: &str = "its connection was closed";

/// Failure of a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CdpError {
    /// The browser returned an error.
    #[error("the browser refuses `{method}`: {message}")]
    Refused { method: String, message: String },
    /// No answer came in time.
    #[error("the browser did not answer `{method}` within {} s", CALL_LIMIT.as_secs())]
    TimedOut { method: String },
    #[error("the browser has gone: {reason}")]
    Gone { reason: String },
    /// The browser's answer to a command does not fit the protocol.
    #[error("the browser's answer to `{method}` cannot be read: {reason}")]
    Unreadable { method: String, reason: String },
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct CdpEvent<'a> {
    /// Session of the event; empty for the browser's own.
    pub(crate) session: &'a str,
    pub(crate) method: &'a str,
    params: &'a RawValue,
}

impl CdpEvent<'_> {
    /// Returns the parameters, or `None` if they have another form than expected.
    pub(crate) fn params<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.params.get()).ok()
    }
}

/// Sends whole messages to a browser.
pub(crate) trait Sends: Send + 'static {
    fn send(&mut self, message: Vec<u8>) -> impl Future<Output = io::Result<()>> + Send;
}

/// Receives whole messages from a browser.
pub(crate) trait Hears: Send + 'static {
    /// Reads the next message into `message`, which is empty. Returns `false` at the end.
    fn hear(&mut self, message: &mut Vec<u8>) -> impl Future<Output = io::Result<bool>> + Send;
}

/// The debugging pipe to a browser: messages that end with a NUL.
pub(crate) struct ToPipe<T>(pub(crate) T);

impl<T: AsyncWrite + Send + Unpin + 'static> Sends for ToPipe<T> {
    async fn send(&mut self, mut message: Vec<u8>) -> io::Result<()> {
        message.push(0);
        self.0.write_all(&message).await
    }
}

/// The debugging pipe from a browser.
pub(crate) struct FromPipe<T>(BufReader<T>);

impl<T: AsyncRead> FromPipe<T> {
    pub(crate) fn new(from: T) -> Self {
        Self(BufReader::with_capacity(64 * 1024, from))
    }
}

impl<T: AsyncRead + Send + Unpin + 'static> Hears for FromPipe<T> {
    async fn hear(&mut self, message: &mut Vec<u8>) -> io::Result<bool> {
        // One more byte, to distinguish a message that just fits from one that does not.
        let read = (&mut self.0)
            .take(MESSAGE_LIMIT + 1)
            .read_until(0, message)
            .await?;
        if read > 0 && message.pop() != Some(0) {
            let what =
                format!("it sent a message of more than {MESSAGE_LIMIT} bytes, or half a one");
            return Err(io::Error::other(what));
        }
        Ok(read > 0)
    }
}

/// Function that receives events.
pub(crate) type CdpListener = Box<dyn FnMut(CdpEvent<'_>) + Send>;

type CdpAnswer = Result<Box<RawValue>, CdpError>;

/// A connection to a browser. Clones share it; it ends with the last of them.
#[derive(Debug, Clone)]
pub(crate) struct Cdp {
    shared: Arc<CdpInner>,
}

/// A weak handle on a connection.
#[derive(Debug)]
pub(crate) struct WeakCdp(Weak<CdpInner>);

impl WeakCdp {
    pub(crate) fn upgrade(&self) -> Option<Cdp> {
        self.0.upgrade().map(|shared| Cdp { shared })
    }
}

#[derive(Debug)]
struct CdpInner {
    next: AtomicU64,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    waiting: Mutex<PendingCalls>,
}

#[derive(Debug, Default)]
struct PendingCalls {
    calls: HashMap<u64, (String, oneshot::Sender<CdpAnswer>)>,
    /// Reason why no answer will come any more.
    gone: Option<String>,
}

#[derive(Serialize)]
struct CdpCommand<'a, P> {
    id: u64,
    method: &'a str,
    params: P,
    #[serde(rename = "sessionId", skip_serializing_if = "str::is_empty")]
    session: &'a str,
}

#[derive(Deserialize)]
struct CdpMessage<'a> {
    id: Option<u64>,
    method: Option<&'a str>,
    #[serde(rename = "sessionId", default)]
    session: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<CdpRefusal>,
}

#[derive(Deserialize)]
struct CdpRefusal {
    message: String,
    data: Option<String>,
}

impl Cdp {
    /// Starts a connection over `to` and `from` that lasts until they end or all clones are
    /// dropped. Also returns the handle of the reading task.
    pub(crate) fn start(
        to: impl Sends,
        from: impl Hears,
        listener: impl FnOnce(&Cdp) -> CdpListener,
    ) -> (Self, JoinHandle<()>) {
        let (outgoing, queue) = mpsc::unbounded_channel();
        let cdp = Self {
            shared: Arc::new(CdpInner {
                next: AtomicU64::new(1),
                outgoing,
                waiting: Mutex::default(),
            }),
        };
        let listener = listener(&cdp);
        // Weak, so that its own tasks do not keep the connection alive.
        let shared = Arc::downgrade(&cdp.shared);
        tokio::spawn(write(to, queue));
        let reading = tokio::spawn(async move {
            let mut listener = listener;
            let answer = |id, answer: CdpAnswer| {
                if let Some(shared) = shared.upgrade() {
                    shared.answer(id, answer);
                }
            };
            let ended = read(from, &mut listener, answer).await;
            let reason = match ended {
                Ok(()) => CLOSED.to_owned(),
                Err(error) => error.to_string(),
            };
            if let Some(shared) = shared.upgrade() {
                shared.give_up(&reason);
            }
        });
        (cdp, reading)
    }

    /// Sends a command to `session` (empty: the browser itself) and returns its result.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        session: &str,
        method: &str,
        params: impl Serialize,
    ) -> Result<T, CdpError> {
        let answer = self.ask(session, method, params, CALL_LIMIT).await;
        if let Err(CdpError::TimedOut { .. }) = answer {
            self.check_alive().await?;
        }
        let answer = answer?;
        serde_json::from_str(answer.get()).map_err(|error| CdpError::Unreadable {
            method: method.to_owned(),
            reason: error.to_string(),
        })
    }

    /// Closes the connection if the browser does not answer at all. A page that does not answer is
    /// no reason.
    async fn check_alive(&self) -> Result<(), CdpError> {
        let asked = self
            .ask("", "Browser.getVersion", json!({}), ALIVE_LIMIT)
            .await;
        if let Err(CdpError::TimedOut { .. }) = asked {
            let silent = (CALL_LIMIT + ALIVE_LIMIT).as_secs();
            self.give_up(&format!("it did not answer for {silent} s"));
            return Err(self.shared.gone());
        }
        Ok(())
    }

    async fn ask(
        &self,
        session: &str,
        method: &str,
        params: impl Serialize,
        limit: Duration,
    ) -> CdpAnswer {
        let (sender, answer) = oneshot::channel();
        let id = self.order(session, method, params, Some(sender))?;
        match timeout(limit, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_dropped)) => Err(self.shared.gone()),
            Err(_late) => {
                self.shared.waiting.lock().calls.remove(&id);
                Err(CdpError::TimedOut {
                    method: method.to_owned(),
                })
            }
        }
    }

    /// Like [`Self::call`], without waiting for the answer. Errors are lost.
    pub(crate) fn send(&self, session: &str, method: &str, params: impl Serialize) {
        let _ = self.order(session, method, params, None);
    }

    /// Returns the reason why the browser is gone, if it is.
    pub(crate) fn ended(&self) -> Option<String> {
        self.shared.waiting.lock().gone.clone()
    }

    /// Closes the connection: no further answer will come.
    pub(crate) fn give_up(&self, reason: &str) {
        self.shared.give_up(reason);
    }

    /// Returns a weak handle, which lets the connection close with its last other handle.
    pub(crate) fn clone_weak(&self) -> WeakCdp {
        WeakCdp(Arc::downgrade(&self.shared))
    }

    fn order(
        &self,
        session: &str,
        method: &str,
        params: impl Serialize,
        sender: Option<oneshot::Sender<CdpAnswer>>,
    ) -> Result<u64, CdpError> {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let unreadable = |error: serde_json::Error| CdpError::Unreadable {
            method: method.to_owned(),
            reason: error.to_string(),
        };
        let message = serde_json::to_vec(&CdpCommand {
            id,
            method,
            params,
            session,
        })
        .map_err(unreadable)?;
        if let Some(sender) = sender {
            let mut waiting = self.shared.waiting.lock();
            if waiting.gone.is_some() {
                drop(waiting);
                return Err(self.shared.gone());
            }
            waiting.calls.insert(id, (method.to_owned(), sender));
        }
        if self.shared.outgoing.send(message).is_err() {
            self.shared.give_up(CLOSED);
            return Err(self.shared.gone());
        }
        Ok(id)
    }
}

impl CdpInner {
    fn answer(&self, id: u64, answer: CdpAnswer) {
        let waiting = self.waiting.lock().calls.remove(&id);
        if let Some((method, sender)) = waiting {
            let answer = answer.map_err(|error| match error {
                CdpError::Refused { message, .. } => CdpError::Refused { method, message },
                other => other,
            });
            // The receiver is gone if the call was dropped.
            let _ = sender.send(answer);
        }
    }

    fn give_up(&self, reason: &str) {
        let mut waiting = self.waiting.lock();
        waiting.gone.get_or_insert_with(|| reason.to_owned());
        waiting.calls.clear();
    }

    fn gone(&self) -> CdpError {
        let reason = self.waiting.lock().gone.clone();
        CdpError::Gone {
            reason: reason.unwrap_or_else(|| "it ended".to_owned()),
        }
    }
}

async fn write(mut to: impl Sends, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(message) = queue.recv().await {
        if to.send(message).await.is_err() {
            return;
        }
    }
}

async fn read(
    mut from: impl Hears,
    listener: &mut CdpListener,
    answer: impl Fn(u64, CdpAnswer),
) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if !from.hear(&mut line).await? {
            return Ok(());
        }
        let message: CdpMessage<'_> = serde_json::from_slice(&line)
            .map_err(|error| io::Error::other(format!("it sent no protocol: {error}")))?;
        match (message.id, message.method) {
            (Some(id), _) => answer(id, answered(&message)),
            (None, Some(method)) => listener(CdpEvent {
                session: message.session,
                method,
                params: message.params.unwrap_or(RawValue::NULL),
            }),
            (None, None) => {}
        }
        // One huge message must not keep its memory for ever.
        line.shrink_to(1024 * 1024);
    }
}

fn answered(message: &CdpMessage<'_>) -> CdpAnswer {
    if let Some(refusal) = &message.error {
        let mut words = refusal.message.clone();
        if let Some(data) = &refusal.data {
            words = format!("{words} ({data})");
        }
        return Err(CdpError::Refused {
            method: String::new(),
            message: words,
        });
    }
    Ok(message.result.unwrap_or(RawValue::NULL).to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc as std_mpsc;

    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, DuplexStream, duplex};

    use super::*;

    /// Returns a connection to a scripted browser: the test writes its messages.
    fn connected() -> (Cdp, DuplexStream, DuplexStream, std_mpsc::Receiver<String>) {
        let (to, theirs) = duplex(1 << 20);
        let (ours, from) = duplex(1 << 20);
        let (heard, events) = std_mpsc::channel();
        let (cdp, _reading) = Cdp::start(ToPipe(to), FromPipe::new(from), |_| {
            Box::new(move |event: CdpEvent<'_>| {
                let params: Option<Value> = event.params();
                let _ = heard.send(format!("{} {} {params:?}", event.session, event.method));
            })
        });
        (cdp, theirs, ours, events)
    }

    async fn next(stream: &mut DuplexStream) -> Value {
        let mut line = Vec::new();
        loop {
            match stream.read_u8().await.unwrap() {
                0 => return serde_json::from_slice(&line).unwrap(),
                byte => line.push(byte),
            }
        }
    }

    #[tokio::test]
    async fn answers_find_their_calls_whatever_their_order() {
        let (cdp, mut heard, mut says, events) = connected();
        let asking = async {
            tokio::join!(
                cdp.call::<Value>("", "A.a", json!({"x": 1})),
                cdp.call::<Value>("s", "B.b", json!({})),
            )
        };
        let browser = async {
            let (first, second) = (next(&mut heard).await, next(&mut heard).await);
            assert_eq!(first["params"]["x"], 1);
            assert!(first.get("sessionId").is_none());
            assert_eq!(second["sessionId"], "s");
            for line in [
                json!({"method": "E.e", "sessionId": "s", "params": {"n": 2}}),
                json!({"id": second["id"], "error": {"message": "no", "data": "why"}}),
                json!({"id": 999, "result": {}}),
                json!({"id": first["id"], "result": {"y": 1}}),
            ] {
                says.write_all(format!("{line}\0").as_bytes())
                    .await
                    .unwrap();
            }
        };
        let ((one, two), ()) = tokio::join!(asking, browser);
        assert_eq!(one.unwrap(), json!({"y": 1}));
        assert_eq!(
            two.unwrap_err().to_string(),
            "the browser refuses `B.b`: no (why)"
        );
        assert_eq!(
            events.try_recv().unwrap(),
            r#"s E.e Some(Object {"n": Number(2)})"#
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_browser_is_given_up_and_a_silent_page_is_not() {
        let (cdp, mut heard, mut says, _events) = connected();
        let page = async {
            let silent = cdp.call::<Value>("page", "A.a", json!({})).await;
            assert!(
                matches!(silent, Err(CdpError::TimedOut { .. })),
                "{silent:?}"
            );
            assert_eq!(cdp.ended(), None);
            cdp.call::<Value>("page", "A.a", json!({})).await
        };
        let browser = async {
            assert_eq!(next(&mut heard).await["method"], "A.a");
            let alive = next(&mut heard).await;
            let answer = json!({"id": alive["id"], "result": {}});
            says.write_all(format!("{answer}\0").as_bytes())
                .await
                .unwrap();
        };
        let (given_up, ()) = tokio::join!(page, browser);
        let reason = "it did not answer for 20 s".to_owned();
        assert_eq!(given_up, Err(CdpError::Gone { reason }));
    }

    #[tokio::test]
    async fn an_end_in_the_middle_answers_everybody() {
        for last in ["", "{\"id\":", "no json\0", "{\"id\":1,\"result\":{}"] {
            let (cdp, heard, mut says, _events) = connected();
            let asking = cdp.call::<Value>("", "A.a", json!({}));
            let browser = async {
                says.write_all(last.as_bytes()).await.unwrap();
                drop((says, heard));
            };
            let (one, ()) = tokio::join!(asking, browser);
            assert!(matches!(one, Err(CdpError::Gone { .. })), "{last}: {one:?}");
            let again = cdp.call::<Value>("", "A.a", json!({})).await;
            assert!(matches!(again, Err(CdpError::Gone { .. })), "{again:?}");
            assert!(cdp.ended().is_some());
        }
    }
}
