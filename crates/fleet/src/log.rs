//! The contract of a shared log: narrow, so that any engine with a conditional append can serve.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{MachineTime, WriterId};

/// Time limit of one request.
pub(crate) const REQUEST: Duration = Duration::from_secs(5);

/// The name of one history in a shared log: words of `[a-z0-9-]`, joined by dots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogSubject(Arc<str>);

impl LogSubject {
    /// Returns the subject with this name; `None` if it is not one.
    pub fn new(name: &str) -> Option<Self> {
        let is_word = |word: &str| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        };
        (name.len() <= 200 && name.split('.').all(is_word)).then(|| Self(name.into()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LogSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of one message. An engine may answer a repeated message with the place of the first,
/// without looking at the condition, so no two writers may ever use the same name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MessageId {
    pub subject: LogSubject,
    pub writer: WriterId,
    /// The number of the message among those of its writer.
    pub index: u64,
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            subject,
            writer,
            index,
        } = self;
        write!(f, "{subject}/{writer}/{index}")
    }
}

/// A message of a shared log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// The position of the message: greater than that of every message before it, of whichever
    /// subject.
    pub position: u64,
    pub body: Arc<[u8]>,
}

/// The answer to a conditional append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendAnswer {
    /// The message is stored, now or by an earlier attempt, and outlives any crash.
    Stored { position: u64 },
    /// This attempt stored nothing, because the subject has another last message. An earlier
    /// attempt may be that one.
    Refused {
        /// The position of the last message; 0 if there is none.
        last: u64,
    },
    /// This attempt stored nothing, because another append to the subject is in progress, maybe an
    /// earlier attempt of the same message.
    Busy,
    /// The message may be stored, or may be stored later.
    Unknown { why: String },
    /// The engine will never store the message: it is full, or denies permission.
    Impossible { why: String },
}

/// The shared log does not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the shared log does not answer: {why}")]
pub struct LogUnreachable {
    pub why: String,
}

/// A log that many machines share.
#[async_trait]
pub trait SharedLog: Send + Sync {
    /// Appends a message if the last message of its subject has this position; 0 means that there
    /// is none. Answers by `until` at the latest. Dropping the future withdraws nothing.
    async fn append_if(
        &self,
        id: &MessageId,
        expected: u64,
        body: &Arc<[u8]>,
        until: MachineTime,
    ) -> AppendAnswer;

    /// Returns messages of a subject after a place, in order and without a gap. It may be what was
    /// there a while ago, and it need not be all.
    ///
    /// # Errors
    /// The engine does not answer by `until`.
    async fn read_from(
        &self,
        subject: &LogSubject,
        after: u64,
        until: MachineTime,
    ) -> Result<Vec<StoredMessage>, LogUnreachable>;

    /// Returns a receiver that changes when a subject may have new messages. It is a hint: it may
    /// come early, late, or not at all.
    fn news(&self, subject: &LogSubject) -> watch::Receiver<u64>;
}

/// Returns when there may be new messages; never if the sender is gone.
pub(crate) async fn heard(news: &mut watch::Receiver<u64>) {
    if news.changed().await.is_err() {
        std::future::pending().await
    }
}
