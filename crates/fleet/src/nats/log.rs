//! Conditional appends and reads.

use std::{sync::Arc, time::Duration};

use async_nats::{HeaderMap, Message};
use async_trait::async_trait;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    FleetConnection,
    streams::{code, description, server_subject, stream_name},
};
use crate::{
    AppendAnswer, LogSubject, LogUnreachable, Machine, MachineTime, MessageId, OsMachine,
    SharedLog, StoredMessage,
};

/// Error code for a subject whose last message is another one. The description ends with its
/// number.
const WRONG_LAST_SEQUENCE: u64 = 10_071;

/// The condition cannot be checked: something is under way.
const UNDER_WAY: [u64; 2] = [10_164, 10_158];

/// Errors that leave open whether a leader will take the message: it has none, or not yet.
const NO_LEADER: [u64; 3] = [10_008, 10_009, 10_025];

/// Number of messages in one request.
const BATCH: u64 = 256;

/// Maximum size of the messages in one request, in bytes.
const BATCH_BYTES: u64 = 8 << 20;

/// The shared log on the servers of a fleet.
#[derive(Clone)]
pub struct NatsLog {
    connection: FleetConnection,
}

impl NatsLog {
    /// Creates the log over a connection.
    pub fn new(connection: FleetConnection) -> Self {
        Self { connection }
    }

    fn fleet(&self) -> &str {
        &self.connection.address().name
    }
}

#[async_trait]
impl SharedLog for NatsLog {
    async fn append_if(
        &self,
        id: &MessageId,
        expected: u64,
        body: &Arc<[u8]>,
        until: MachineTime,
    ) -> AppendAnswer {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", id.to_string());
        headers.insert("Nats-Expected-Last-Subject-Sequence", expected.to_string());
        let subject = server_subject(self.fleet(), id.subject.as_str());
        let limit = self.connection.client.max_payload();
        if body.len() + 1_024 > limit {
            let why = format!(
                "a message of {} bytes is over the servers' limit, max_payload = {limit}",
                body.len()
            );
            return AppendAnswer::Impossible { why };
        }
        let sent = self
            .connection
            .publish(subject, headers, body.to_vec(), within(until));
        match sent.await {
            Ok(answer) => read_acknowledgement(&answer),
            Err(LogUnreachable { why }) => AppendAnswer::Unknown { why },
        }
    }

    async fn read_from(
        &self,
        subject: &LogSubject,
        after: u64,
        until: MachineTime,
    ) -> Result<Vec<StoredMessage>, LogUnreachable> {
        let time = within(until);
        let late = |_| LogUnreachable {
            why: format!("no answer within {} ms", time.as_millis()),
        };
        tokio::time::timeout(time, self.read(subject, after))
            .await
            .map_err(late)?
    }

    fn news(&self, subject: &LogSubject) -> watch::Receiver<u64> {
        let (sender, receiver) = watch::channel(0);
        let client = self.connection.client.clone();
        let subject = server_subject(self.fleet(), subject.as_str());
        tokio::spawn(async move {
            // A subscription outlives a connection; one that cannot be made means no hints.
            let Ok(mut heard) = client.subscribe(subject).await else {
                return;
            };
            loop {
                tokio::select! {
                    message = heard.next() => {
                        if message.is_none() {
                            return;
                        }
                        sender.send_modify(|count| *count += 1);
                    }
                    () = sender.closed() => return,
                }
            }
        });
        receiver
    }
}

impl NatsLog {
    /// Returns the time of the last message of a log, by the servers' clock, in UTC milliseconds;
    /// `None` if it has none.
    ///
    /// # Errors
    /// The servers do not answer.
    pub async fn last_ms(
        &self,
        subject: &LogSubject,
        within: Duration,
    ) -> Result<Option<i64>, LogUnreachable> {
        let unreachable = |why: String| LogUnreachable { why };
        let kind = subject.as_str().split('.').next().unwrap_or_default();
        let ask = format!("$JS.API.DIRECT.GET.{}", stream_name(self.fleet(), kind));
        let wanted = json!({"last_by_subj": server_subject(self.fleet(), subject.as_str())});
        let request = async_nats::Request::new()
            .payload(wanted.to_string().into())
            .timeout(Some(within));
        let answer = self.connection.client.send_request(ask, request).await;
        let answer = answer.map_err(|error| unreachable(error.to_string()))?;
        let stamp = answer
            .headers
            .as_ref()
            .and_then(|headers| headers.get("Nats-Time-Stamp"));
        let Some(stamp) = stamp else {
            return Ok(None);
        };
        let at: jiff::Timestamp = stamp
            .as_str()
            .parse()
            .map_err(|_| unreachable(format!("`{}` is not a time", stamp.as_str())))?;
        Ok(Some(at.as_millisecond()))
    }

    async fn read(
        &self,
        subject: &LogSubject,
        after: u64,
    ) -> Result<Vec<StoredMessage>, LogUnreachable> {
        let unreachable = |why: String| LogUnreachable { why };
        let client = &self.connection.client;
        let inbox = client.new_inbox();
        let answers = client.subscribe(inbox.clone()).await;
        let mut answers = answers.map_err(|error| unreachable(error.to_string()))?;
        let kind = subject.as_str().split('.').next().unwrap_or_default();
        let ask = format!("$JS.API.DIRECT.GET.{}", stream_name(self.fleet(), kind));
        let wanted = json!({
            "seq": after + 1,
            "next_by_subj": server_subject(self.fleet(), subject.as_str()),
            "batch": BATCH,
            "max_bytes": BATCH_BYTES,
        });
        let reading = async {
            client
                .publish_with_reply(ask.clone(), inbox, wanted.to_string().into())
                .await
                .map_err(|error| unreachable(error.to_string()))?;
            let mut messages = Vec::new();
            while let Some(answer) = answers.next().await {
                match read_message(answer)? {
                    Some(message) => messages.push(message),
                    None => return Ok(messages),
                }
            }
            Err(unreachable("the connection ended".to_owned()))
        };
        self.connection.unless_forbidden(&ask, reading).await
    }
}

fn within(until: MachineTime) -> Duration {
    until.since(OsMachine.now()).max(Duration::from_millis(1))
}

fn read_acknowledgement(answer: &Value) -> AppendAnswer {
    let Some(code) = code(answer) else {
        return match answer["seq"].as_u64() {
            Some(position) => AppendAnswer::Stored { position },
            None => AppendAnswer::Unknown {
                why: format!("the answer has no number: {answer}"),
            },
        };
    };
    let why = description(answer);
    match code {
        WRONG_LAST_SEQUENCE => {
            let last = why.rsplit(' ').next().and_then(|last| last.parse().ok());
            match last {
                Some(last) => AppendAnswer::Refused { last },
                None => AppendAnswer::Unknown { why },
            }
        }
        code if UNDER_WAY.contains(&code) => AppendAnswer::Busy,
        code if NO_LEADER.contains(&code) => AppendAnswer::Unknown { why },
        _ => AppendAnswer::Impossible { why },
    }
}

/// Parses one message of the answer to a batched get; `None` at its end.
fn read_message(answer: Message) -> Result<Option<StoredMessage>, LogUnreachable> {
    match answer.status.map(|status| status.as_u16()) {
        // The end of the batch, or: there is nothing after the number.
        Some(204 | 404) => return Ok(None),
        None | Some(200) => {}
        Some(status) => {
            let said = answer.description.unwrap_or_default();
            return Err(LogUnreachable {
                why: format!("the servers answer {status} {said}"),
            });
        }
    }
    let number = answer
        .headers
        .as_ref()
        .and_then(|headers| headers.get("Nats-Sequence"));
    let position = number.and_then(|number| number.as_str().parse().ok());
    let position = position.ok_or_else(|| LogUnreachable {
        why: "a message has no number".to_owned(),
    })?;
    Ok(Some(StoredMessage {
        position,
        body: answer.payload.as_ref().into(),
    }))
}
