//! The queue of commands that all workers share: one subject of the shared log, whose messages are the
//! same facts that a server's own queue has.
//!
//! Every change is decided for the state after the last message, and appended on the condition that it
//! is still the last. So two workers never start one command, and an agent's limit holds over all of
//! them.
//!
//! After some thousand facts the queue goes on under another subject, which begins with what still
//! matters: a worker that starts reads that alone. The last message of a subject names the next one.
//! Whoever would append after it has read it, and so appends there.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gyrus_runtime::{
    ledger::{Fold as _, LedgerError},
    queue::{CommandQueue, DecideFacts, QueueFact, SharedQueue},
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::{
    AppendAnswer, LogSubject, LogUnreachable, Machine, MachineTime, MessageId, SharedLog,
    StoredMessage, WriterId,
    log::{REQUEST, heard},
    message::is_foreign,
};

/// Pause before an attempt is repeated because of another write.
const PAUSE: Duration = Duration::from_millis(5);

/// The shortest and the longest time within which a worker waits before a change.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
const LONGEST_WAIT: Duration = Duration::from_millis(128);

/// Time between two attempts while the log does not answer.
const SILENCE: Duration = Duration::from_millis(250);

/// Interval between checks for news that no notice announced.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Times between the checks after a notice, the first of which is immediate, because the notice
/// comes before the message is stored.
const LOOKS: [Duration; 3] = [
    Duration::from_millis(4),
    Duration::from_millis(20),
    Duration::from_millis(100),
];

/// Number of facts after which the queue continues under another subject.
const GENERATION: u64 = 20_000;

/// Maximum size of the facts in one message at the beginning of a subject, in bytes.
const SUMMARY_BYTES: usize = 256 << 10;

/// Maximum number of attempts to close a subject while others append to it.
const ATTEMPTS: usize = 100;

/// The first subject of every queue, and the subject with the names of its successors.
const FIRST: &str = "queue.main";
const NEXT: &str = "queue.next";

/// The version of the format that this program writes.
const VERSION: u16 = 1;

#[derive(Default, Serialize, Deserialize)]
struct QueueMessage {
    v: u16,
    writer: String,
    index: u64,
    facts: Vec<QueueFact>,
    /// The subject under which the queue continues; this is the last message of its own then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<NextSubject>,
}

#[derive(Clone, Serialize, Deserialize)]
struct NextSubject {
    subject: String,
    /// Position of the last message of the initial state, which repeats what was known before.
    position: u64,
}

impl NextSubject {
    fn subject(&self) -> Result<LogSubject, LedgerError> {
        let subject = LogSubject::new(&self.subject);
        subject.ok_or_else(|| LedgerError::Shared {
            why: format!("`{}` is not a subject of a queue", self.subject),
        })
    }
}

/// The shared queue, as this worker knows it.
pub struct FleetQueue {
    log: Arc<dyn SharedLog>,
    machine: Arc<dyn Machine>,
    writer: WriterId,
    /// Number of facts after which the queue continues under another subject; `None` if that is
    /// left to others.
    generation: Option<u64>,
    /// Number of messages that this worker has tried to append.
    tried: AtomicU64,
    /// Time for which a change is attempted while the log does not answer; `None` means for ever.
    patience: Option<Duration>,
    known: Mutex<QueueView>,
    /// Held during a change, since only one may be in progress.
    changing: tokio::sync::Mutex<()>,
    /// Time within which this worker waits before a change, in microseconds: it grows each time that
    /// another worker was quicker. Many that wait for the same command do not all try at once.
    waits: AtomicU64,
    changes: watch::Sender<u64>,
    /// Reason why the log does not answer or rejects this worker's messages, while that lasts.
    trouble: watch::Sender<Option<String>>,
}

struct QueueView {
    queue: CommandQueue,
    subject: LogSubject,
    /// The position of the last message.
    position: u64,
    /// Number of facts since the subject began.
    facts: u64,
    /// Whether a message of this worker brought the subject to its maximum length.
    is_long: bool,
    /// The facts that came since the beginning of another subject was written, while one is.
    since: Option<Vec<QueueFact>>,
    /// The number of this worker's last message.
    own: Option<u64>,
}

impl std::fmt::Debug for FleetQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FleetQueue").field(&self.writer).finish()
    }
}

impl FleetQueue {
    /// Opens the shared queue and reads its state. With `patience`, a change is given up after that
    /// time without an answer.
    pub async fn open(
        log: Arc<dyn SharedLog>,
        machine: Arc<dyn Machine>,
        patience: Option<Duration>,
    ) -> Result<Arc<Self>, LedgerError> {
        Self::open_shortened(log, machine, patience, GENERATION).await
    }

    /// Opens the queue with another number of facts after which it continues under another subject.
    pub async fn open_shortened(
        log: Arc<dyn SharedLog>,
        machine: Arc<dyn Machine>,
        patience: Option<Duration>,
        generation: u64,
    ) -> Result<Arc<Self>, LedgerError> {
        let known = QueueView {
            queue: CommandQueue::default(),
            subject: subject(FIRST),
            position: 0,
            facts: 0,
            is_long: false,
            since: None,
            own: None,
        };
        let queue = Self {
            log,
            machine,
            writer: WriterId(gyrus_contract::time_ordered_uuid().as_u128()),
            // Who only asks for something does not stay for that.
            generation: patience.is_none().then_some(generation.max(1)),
            tried: AtomicU64::new(0),
            patience,
            known: Mutex::new(known),
            changing: tokio::sync::Mutex::default(),
            waits: AtomicU64::new(0),
            changes: watch::Sender::new(0),
            trouble: watch::Sender::new(None),
        };
        queue.begin_late().await?;
        queue.catch_up().await?;
        Ok(Arc::new(queue))
    }

    /// Begins with the newest known subject. An older one would do: each leads to the next.
    async fn begin_late(&self) -> Result<(), LedgerError> {
        let unreachable = |LogUnreachable { why }| LedgerError::Shared { why };
        let (names, mut after) = (subject(NEXT), 0);
        loop {
            let shown = self.log.read_from(&names, after, self.until()).await;
            let shown = shown.map_err(unreachable)?;
            let Some(last) = shown.last() else {
                return Ok(());
            };
            after = last.position;
            // What cannot be read is no gyrus's, or newer than this program, and so is what it leads to.
            let names = shown.iter().rev();
            let mut known =
                names.filter_map(|name| serde_json::from_slice::<NextSubject>(&name.body).ok());
            if let Some(next) = known.next() {
                self.known.lock().subject = next.subject()?;
            }
        }
    }

    /// Updates this worker's copy of the queue, until the future is dropped.
    pub async fn follow(&self) {
        let mut subject = self.known.lock().subject.clone();
        let mut news = self.log.news(&subject);
        let mut looks = LOOKS.iter();
        loop {
            // What cannot be read now is read later.
            let _ = self.catch_up().await;
            let now = self.known.lock().subject.clone();
            if now != subject {
                news = self.log.news(&now);
                subject = now;
                looks = LOOKS.iter();
                continue;
            }
            match looks.next() {
                Some(look) => tokio::select! {
                    () = tokio::time::sleep(*look) => {}
                    () = heard(&mut news) => {
                        // Another sign: not so many looks that others have no turn.
                        tokio::time::sleep(LOOKS[0].max(self.waits())).await;
                        looks = LOOKS.iter();
                    }
                },
                None => tokio::select! {
                    () = heard(&mut news) => looks = LOOKS.iter(),
                    () = tokio::time::sleep(LOOK_AGAIN) => {}
                },
            }
        }
    }

    /// Returns a receiver of the reason why the log does not answer or accept messages, which is
    /// `None` once it does.
    pub fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.trouble.subscribe()
    }

    fn tell_trouble(&self, why: Option<String>) {
        self.trouble.send_if_modified(|trouble| {
            let is_other = *trouble != why;
            *trouble = why;
            is_other
        });
    }

    fn until(&self) -> MachineTime {
        self.machine.now() + REQUEST
    }

    /// Reads the newly appended facts.
    async fn catch_up(&self) -> Result<(), LedgerError> {
        loop {
            let (subject, after) = {
                let known = self.known.lock();
                (known.subject.clone(), known.position)
            };
            let shown = self.log.read_from(&subject, after, self.until()).await;
            let shown = shown.map_err(|LogUnreachable { why }| LedgerError::Shared { why })?;
            if shown.is_empty() {
                return Ok(());
            }
            for stored in shown {
                self.take(&subject, &stored)?;
            }
        }
    }

    fn take(&self, subject: &LogSubject, stored: &StoredMessage) -> Result<(), LedgerError> {
        let unreadable = |why: &str| LedgerError::Shared {
            why: format!("message {} of the queue: {why}", stored.position),
        };
        let message = match serde_json::from_slice::<QueueMessage>(&stored.body) {
            Ok(message) => message,
            Err(_) if is_foreign(&stored.body) => QueueMessage::default(),
            Err(error) => return Err(unreadable(&error.to_string())),
        };
        if message.v > VERSION {
            return Err(unreadable("a newer gyrus wrote it; update this one"));
        }
        let mut known = self.known.lock();
        // Two that read at once may have been shown the same.
        if known.subject != *subject || stored.position <= known.position {
            return Ok(());
        }
        known.position = stored.position;
        let facts = known.facts + u64::try_from(message.facts.len()).unwrap_or(u64::MAX);
        if message.writer == self.writer.to_string() {
            known.own = Some(message.index);
            let length = self.generation.unwrap_or(u64::MAX);
            known.is_long |= facts / length > known.facts / length;
        }
        known.facts = facts;
        if let Some(since) = &mut known.since {
            since.extend(message.facts.iter().cloned());
        }
        for fact in message.facts {
            known.queue.apply(fact);
        }
        if let Some(next) = message.next {
            // What it begins with is known here.
            (known.subject, known.position, known.facts) = (next.subject()?, next.position, 0);
            known.is_long = false;
        }
        drop(known);
        self.changes.send_modify(|changes| *changes += 1);
        Ok(())
    }

    async fn agree(&self, decide: &mut DecideFacts<'_>) -> Result<(), LedgerError> {
        let _changing = self.changing.lock().await;
        let give_up = self.patience.map(|patience| self.machine.now() + patience);
        self.wait_for_turn().await;
        let mut silence = self.catch_up().await.err();
        loop {
            if let Some(error) = silence.take() {
                self.tell_trouble(Some(error.to_string()));
                if give_up.is_some_and(|at| self.machine.now() >= at) {
                    return Err(error);
                }
                tokio::time::sleep(SILENCE).await;
                silence = self.catch_up().await.err();
                continue;
            }
            let (facts, place) = {
                let known = self.known.lock();
                (decide(&known.queue), known.place())
            };
            if facts.is_empty() {
                return Ok(());
            }
            match self.append(facts, None, &place).await {
                Ok(true) => break,
                Ok(false) => {
                    let longer = (2 * self.waits()).clamp(SHORTEST_WAIT, LONGEST_WAIT);
                    self.set_waits(longer);
                    self.wait_for_turn().await;
                }
                Err(Unsaid::Unknown(error)) => silence = Some(error),
                Err(Unsaid::Impossible(error)) if give_up.is_some() => return Err(error),
                Err(Unsaid::Impossible(error)) => silence = Some(error),
            }
        }
        self.tell_trouble(None);
        self.set_waits(self.waits() / 2);
        // What this is about is done; if the rest fails, another worker does it later.
        let _ = self.go_on_elsewhere().await;
        Ok(())
    }

    /// Waits for a random part of the time that contention makes necessary.
    async fn wait_for_turn(&self) {
        let waits = self.waits();
        if !waits.is_zero() {
            // The last bits of an id are random.
            let random = gyrus_contract::time_ordered_uuid().as_u128() & 0xffff;
            let share = u32::try_from(random).unwrap_or(0);
            tokio::time::sleep(waits * share / 0x1_0000).await;
        }
    }

    fn waits(&self) -> Duration {
        Duration::from_micros(self.waits.load(Ordering::Relaxed))
    }

    fn set_waits(&self, waits: Duration) {
        let waits = u64::try_from(waits.as_micros()).unwrap_or(u64::MAX);
        self.waits.store(waits, Ordering::Relaxed);
    }

    /// Continues under another subject if this one is long enough. Only the worker that wrote the
    /// last fact does so.
    async fn go_on_elsewhere(&self) -> Result<(), LedgerError> {
        let (mut facts, mut place) = {
            let mut known = self.known.lock();
            if !std::mem::take(&mut known.is_long) {
                return Ok(());
            }
            known.since = Some(Vec::new());
            (known.queue.facts(), known.place())
        };
        let name = format!("queue.{}", gyrus_contract::time_ordered_uuid().simple());
        let mut beginning = SubjectBeginning {
            subject: subject(&name),
            position: 0,
            messages: 0,
        };
        for _ in 0..ATTEMPTS {
            if !self.begin_with(&mut beginning, facts).await? {
                // It is left as it is, and nobody ever reads it.
                break;
            }
            let next = NextSubject {
                subject: name.clone(),
                position: beginning.position,
            };
            let body = serde_json::to_vec(&next).map_err(LedgerError::Unwritable)?;
            match self.append(Vec::new(), Some(next), &place).await {
                Ok(true) => {
                    self.name_next(&body.into()).await;
                    break;
                }
                Ok(false) => {}
                Err(_) => break,
            }
            // Others were quicker: what they said is to stand there, too.
            let mut known = self.known.lock();
            if known.subject != place.subject {
                break;
            }
            facts = known.since.replace(Vec::new()).unwrap_or_default();
            place = known.place();
        }
        self.known.lock().since = None;
        Ok(())
    }

    /// Appends facts to a subject with no other writer; returns whether they are there.
    async fn begin_with(
        &self,
        beginning: &mut SubjectBeginning,
        facts: Vec<QueueFact>,
    ) -> Result<bool, LedgerError> {
        for facts in in_messages(facts)? {
            let id = MessageId {
                subject: beginning.subject.clone(),
                writer: self.writer,
                index: beginning.messages,
            };
            let body = self.message(beginning.messages, facts, None)?;
            let position = beginning.position;
            let appended = self.log.append_if(&id, position, &body, self.until());
            let AppendAnswer::Stored { position } = appended.await else {
                return Ok(false);
            };
            (beginning.position, beginning.messages) = (position, beginning.messages + 1);
        }
        Ok(true)
    }

    /// Records the name of the newest subject, for workers that start. If that fails, they begin
    /// with an older one.
    async fn name_next(&self, body: &Arc<[u8]>) {
        let names = subject(NEXT);
        let mut last = 0;
        while let Ok(shown) = self.log.read_from(&names, last, self.until()).await {
            match shown.last() {
                Some(newest) => last = newest.position,
                None => break,
            }
        }
        let id = MessageId {
            subject: names,
            writer: self.writer,
            index: self.tried.fetch_add(1, Ordering::Relaxed),
        };
        let _ = self.log.append_if(&id, last, body, self.until()).await;
    }

    fn message(
        &self,
        index: u64,
        facts: Vec<QueueFact>,
        next: Option<NextSubject>,
    ) -> Result<Arc<[u8]>, LedgerError> {
        let message = QueueMessage {
            v: VERSION,
            writer: self.writer.to_string(),
            index,
            facts,
            next,
        };
        let body = serde_json::to_vec(&message).map_err(LedgerError::Unwritable)?;
        Ok(body.into())
    }

    /// Appends facts after a message. Returns whether they are in the log; if not, they will never be.
    async fn append(
        &self,
        facts: Vec<QueueFact>,
        next: Option<NextSubject>,
        place: &LastMessage,
    ) -> Result<bool, Unsaid> {
        let index = self.tried.fetch_add(1, Ordering::Relaxed);
        let body = self
            .message(index, facts, next)
            .map_err(Unsaid::Impossible)?;
        let id = MessageId {
            subject: place.subject.clone(),
            writer: self.writer,
            index,
        };
        loop {
            let appended = self
                .log
                .append_if(&id, place.position, &body, self.until())
                .await;
            let silent = match appended {
                AppendAnswer::Impossible { why } => {
                    return Err(Unsaid::Impossible(LedgerError::Shared { why }));
                }
                AppendAnswer::Unknown { why } => Some(LedgerError::Shared { why }),
                AppendAnswer::Stored { .. } | AppendAnswer::Refused { .. } | AppendAnswer::Busy => {
                    None
                }
            };
            // Whatever the answer was: the log itself says whether it is there.
            let read = self.catch_up().await;
            {
                let known = self.known.lock();
                if known.own == Some(index) {
                    return Ok(true);
                }
                // Another message has its place.
                if known.place() != *place {
                    return Ok(false);
                }
            }
            let silent = read.err().or(silent);
            match silent {
                Some(error) if self.patience.is_some() => return Err(Unsaid::Unknown(error)),
                // It may still arrive, and as long as that is not known, nothing else may be
                // decided: the same message is tried again.
                Some(error) => {
                    self.tell_trouble(Some(error.to_string()));
                    tokio::time::sleep(SILENCE).await;
                }
                None => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

/// The beginning of a subject, in encoded form.
struct SubjectBeginning {
    subject: LogSubject,
    position: u64,
    messages: u64,
}

#[derive(PartialEq, Eq)]
struct LastMessage {
    subject: LogSubject,
    position: u64,
}

impl QueueView {
    fn place(&self) -> LastMessage {
        LastMessage {
            subject: self.subject.clone(),
            position: self.position,
        }
    }
}

fn subject(name: &str) -> LogSubject {
    LogSubject::new(name).expect("it is a name")
}

/// Splits facts into portions that each fit into a message.
fn in_messages(facts: Vec<QueueFact>) -> Result<Vec<Vec<QueueFact>>, LedgerError> {
    let (mut messages, mut bytes) = (vec![Vec::new()], 0);
    for fact in facts {
        let size = serde_json::to_vec(&fact)
            .map_err(LedgerError::Unwritable)?
            .len();
        if bytes > 0 && bytes + size > SUMMARY_BYTES {
            messages.push(Vec::new());
            bytes = 0;
        }
        bytes += size;
        if let Some(last) = messages.last_mut() {
            last.push(fact);
        }
    }
    Ok(messages)
}

/// Facts are not in the log, as far as is known.
enum Unsaid {
    /// The log does not answer.
    Unknown(LedgerError),
    /// The log does not accept the facts.
    Impossible(LedgerError),
}

impl SharedQueue for FleetQueue {
    fn change<'a>(
        &'a self,
        decide: &'a mut DecideFacts<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<(), LedgerError>> + Send + 'a>> {
        Box::pin(self.agree(decide))
    }

    fn look(&self, look: &mut dyn FnMut(&CommandQueue)) {
        look(&self.known.lock().queue);
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
