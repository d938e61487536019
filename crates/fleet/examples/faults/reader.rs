//! The streams as they are on the servers, read without anything of gyrus; and what was seen of them
//! while all went on.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use futures_util::StreamExt as _;
use gyrus_contract::Digest;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// The streams that are read.
pub(crate) const STREAMS: [&str; 4] = ["runs", "queue", "inbox", "blobs"];

/// Number of messages that are asked for at once.
const BATCH: u64 = 256;

/// Time for one request.
const REQUEST: Duration = Duration::from_secs(5);

/// Interval between two looks at what was stored.
const LOOK: Duration = Duration::from_millis(200);

/// The kind of the last entry of a call, as it stands in a line.
const RESULT: &[u8] = b"\"tool.result\"";

/// A stored message.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    /// The place in its stream.
    pub(crate) position: u64,
    /// The subject without the fleet's name.
    pub(crate) subject: String,
    /// The time by the clock of the server that took it, in microseconds since 1970.
    pub(crate) at_us: i64,
    pub(crate) body: Arc<[u8]>,
}

impl Message {
    /// Returns the hash of the subject and the content.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&[self.subject.as_bytes(), b"\n", &self.body].concat())
    }
}

/// The hash of each message that was seen, by stream and place.
pub(crate) type Seen = BTreeMap<(&'static str, u64), Digest>;

/// Reads some messages of a stream after a place; none if a server shows no more.
async fn read_some(
    client: &async_nats::Client,
    stream: &str,
    after: u64,
) -> anyhow::Result<Vec<Message>> {
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await?;
    let wanted = json!({"seq": after + 1, "next_by_subj": "gyrus.main.>", "batch": BATCH});
    let ask = format!("$JS.API.DIRECT.GET.gyrus-main-{stream}");
    client
        .publish_with_reply(ask, inbox, wanted.to_string().into())
        .await?;
    let mut messages = Vec::new();
    while let Some(answer) = tokio::time::timeout(REQUEST, answers.next()).await? {
        match answer.status.map(|status| status.as_u16()) {
            Some(204 | 404) => return Ok(messages),
            None | Some(200) => {}
            Some(status) => bail!("the servers answer {status}"),
        }
        let headers = answer.headers.context("a message without headers")?;
        let header = |name: &str| headers.get(name).map(|value| value.as_str().to_owned());
        let subject = header("Nats-Subject").context("a message without a subject")?;
        let at: jiff::Timestamp = header("Nats-Time-Stamp")
            .context("a message without a time")?
            .parse()?;
        messages.push(Message {
            position: header("Nats-Sequence")
                .context("a message without a place")?
                .parse()?,
            subject: subject
                .strip_prefix("gyrus.main.")
                .unwrap_or(&subject)
                .to_owned(),
            at_us: at.as_microsecond(),
            body: answer.payload.as_ref().into(),
        });
    }
    bail!("the connection ended")
}

/// Reads all of a stream, up to the last message that its leader has.
pub(crate) async fn read_all(
    client: &async_nats::Client,
    stream: &'static str,
) -> anyhow::Result<Vec<Message>> {
    let ask = format!("$JS.API.STREAM.INFO.gyrus-main-{stream}");
    let until = std::time::Instant::now() + Duration::from_secs(60);
    let mut messages: Vec<Message> = Vec::new();
    loop {
        let info = client.request(ask.clone(), "".into()).await;
        let info = info.ok().and_then(|info| {
            let info: Value = serde_json::from_slice(&info.payload).ok()?;
            info["state"]["last_seq"].as_u64()
        });
        if let Some(last) = info {
            loop {
                let after = messages.last().map_or(0, |message| message.position);
                if after >= last {
                    return Ok(messages);
                }
                match read_some(client, stream, after).await {
                    Ok(more) if !more.is_empty() => messages.extend(more),
                    Ok(_) | Err(_) => break,
                }
            }
        }
        ensure!(
            std::time::Instant::now() < until,
            "the stream {stream} cannot be read to its end"
        );
        tokio::time::sleep(LOOK).await;
    }
}

/// Notes what is stored, as soon as a server shows it.
#[derive(Default)]
pub(crate) struct Recorder {
    seen: Mutex<Seen>,
    /// Number of calls whose result was seen.
    results: AtomicU64,
}

impl Recorder {
    /// Notes until this is dropped.
    pub(crate) async fn record(&self, client: &async_nats::Client) {
        let mut places = [0; STREAMS.len()];
        loop {
            for (stream, place) in STREAMS.into_iter().zip(&mut places) {
                // What cannot be read now is read later.
                while let Ok(messages) = read_some(client, stream, *place).await {
                    let Some(last) = messages.last() else {
                        break;
                    };
                    *place = last.position;
                    self.note(stream, &messages);
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn note(&self, stream: &'static str, messages: &[Message]) {
        let mut seen = self.seen.lock();
        for message in messages {
            seen.insert((stream, message.position), message.digest());
            if stream == "runs" {
                let found = message.body.windows(RESULT.len());
                let found = found.filter(|bytes| *bytes == RESULT).count();
                self.results
                    .fetch_add(u64::try_from(found).unwrap_or(0), Ordering::Relaxed);
            }
        }
    }

    /// Returns the number of calls whose result was seen.
    pub(crate) fn results(&self) -> u64 {
        self.results.load(Ordering::Relaxed)
    }

    /// Returns what was seen.
    pub(crate) fn seen(&self) -> Seen {
        let seen = self.seen.lock();
        seen.clone()
    }
}
