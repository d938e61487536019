//! The queue of commands that all workers share: one subject of the shared log, whose messages are the
//! same facts that a server's own queue has.
//!
//! Every change is decided for the state after the last message, and appended on the condition that it
//! is still the last. So two workers never start one command, and an agent's limit holds over all of
//! them.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gyrus_runtime::{
    ledger::{Fold as _, LedgerError},
    queue::{Decide, Queue, QueueFact, SharedQueue},
};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::{
    AppendAnswer, LogSubject, LogUnreachable, Machine, MachineTime, MessageId, SharedLog,
    StoredMessage, WriterId, log::heard,
};

/// Time for one request.
const REQUEST: Duration = Duration::from_secs(5);

/// Time between two attempts at what another write is in the way of.
const PAUSE: Duration = Duration::from_millis(5);

/// Time between two attempts while the log does not answer.
const SILENCE: Duration = Duration::from_millis(250);

/// Time after which is looked for news that nobody told of.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Times after a sign of news at which it is looked for: the sign comes before the message is stored.
const LOOKS: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(4),
    Duration::from_millis(20),
    Duration::from_millis(100),
];

/// The version of the format that this program writes.
const VERSION: u16 = 1;

/// A message of the queue.
#[derive(Serialize, Deserialize)]
struct Message {
    v: u16,
    writer: String,
    index: u64,
    facts: Vec<QueueFact>,
}

/// The shared queue, as one worker knows it.
pub struct FleetQueue {
    log: Arc<dyn SharedLog>,
    machine: Arc<dyn Machine>,
    subject: LogSubject,
    writer: WriterId,
    /// Number of messages that were tried.
    tried: AtomicU64,
    /// Time for which a change is tried while the log does not answer; `None` means for ever.
    patience: Option<Duration>,
    known: Mutex<Known>,
    /// Held by the one change that is under way.
    changing: tokio::sync::Mutex<()>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Known {
    queue: Queue,
    /// The place of the last message.
    position: u64,
    /// The number of this worker's last message.
    own: Option<u64>,
}

impl std::fmt::Debug for FleetQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FleetQueue").field(&self.subject).finish()
    }
}

impl FleetQueue {
    /// Opens the shared queue and reads all of it.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn open(
        log: Arc<dyn SharedLog>,
        machine: Arc<dyn Machine>,
        patience: Option<Duration>,
    ) -> Result<Arc<Self>, LedgerError> {
        let queue = Self {
            log,
            machine,
            subject: LogSubject::new("queue.main").expect("it is a name"),
            writer: WriterId(gyrus_contract::time_ordered_uuid().as_u128()),
            tried: AtomicU64::new(0),
            patience,
            known: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            changes: watch::Sender::new(0),
        };
        queue.catch_up().await?;
        Ok(Arc::new(queue))
    }

    /// Keeps what this worker knows up to date, until this is dropped.
    pub async fn follow(&self) {
        let mut news = self.log.news(&self.subject);
        loop {
            for look in LOOKS {
                tokio::time::sleep(look).await;
                // What cannot be read now is read later.
                let _ = self.catch_up().await;
            }
            tokio::select! {
                () = heard(&mut news) => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // A panic elsewhere leaves it whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn until(&self) -> MachineTime {
        self.machine.now() + REQUEST
    }

    /// Reads what was appended.
    async fn catch_up(&self) -> Result<(), LedgerError> {
        loop {
            let after = self.known().position;
            let shown = self.log.read_from(&self.subject, after, self.until()).await;
            let shown = shown.map_err(|LogUnreachable { why }| LedgerError::Shared { why })?;
            if shown.is_empty() {
                return Ok(());
            }
            for stored in shown {
                self.take(&stored)?;
            }
        }
    }

    fn take(&self, stored: &StoredMessage) -> Result<(), LedgerError> {
        let unreadable = |why: &str| LedgerError::Shared {
            why: format!("message {} of the queue: {why}", stored.position),
        };
        let message: Message =
            serde_json::from_slice(&stored.body).map_err(|error| unreadable(&error.to_string()))?;
        if message.v > VERSION {
            return Err(unreadable("a newer gyrus wrote it; update this one"));
        }
        let mut known = self.known();
        // Two that read at once may have been shown the same.
        if stored.position <= known.position {
            return Ok(());
        }
        known.position = stored.position;
        if message.writer == self.writer.to_string() {
            known.own = Some(message.index);
        }
        for fact in message.facts {
            known.queue.apply(fact);
        }
        drop(known);
        self.changes.send_modify(|changes| *changes += 1);
        Ok(())
    }

    async fn agree(&self, decide: &mut Decide<'_>) -> Result<(), LedgerError> {
        let _changing = self.changing.lock().await;
        let give_up = self.patience.map(|patience| self.machine.now() + patience);
        let mut silence = self.catch_up().await.err();
        loop {
            if let Some(error) = silence.take() {
                if give_up.is_some_and(|at| self.machine.now() >= at) {
                    return Err(error);
                }
                tokio::time::sleep(SILENCE).await;
                silence = self.catch_up().await.err();
                continue;
            }
            let (facts, position) = {
                let known = self.known();
                (decide(&known.queue), known.position)
            };
            if facts.is_empty() {
                return Ok(());
            }
            match self.append(facts, position).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(Silent(error)) => silence = Some(error),
            }
        }
    }

    /// Appends facts after a message. Returns whether they are in the log; if not, they will never be.
    async fn append(&self, facts: Vec<QueueFact>, position: u64) -> Result<bool, Silent> {
        let index = self.tried.fetch_add(1, Ordering::Relaxed);
        let message = Message {
            v: VERSION,
            writer: self.writer.to_string(),
            index,
            facts,
        };
        let body = serde_json::to_vec(&message)
            .map_err(|error| Silent(LedgerError::Unwritable(error)))?
            .into();
        let id = MessageId {
            subject: self.subject.clone(),
            writer: self.writer,
            index,
        };
        loop {
            let appended = self.log.append_if(&id, position, &body, self.until()).await;
            let silent = match appended {
                AppendAnswer::Impossible { why } => {
                    return Err(Silent(LedgerError::Shared { why }));
                }
                AppendAnswer::Unknown { why } => Some(LedgerError::Shared { why }),
                AppendAnswer::Stored { .. } | AppendAnswer::Refused { .. } | AppendAnswer::Busy => {
                    None
                }
            };
            // Whatever the answer was: the log itself says whether it is there.
            let read = self.catch_up().await;
            {
                let known = self.known();
                if known.own == Some(index) {
                    return Ok(true);
                }
                // Another message has its place.
                if known.position > position {
                    return Ok(false);
                }
            }
            let silent = read.err().or(silent);
            match silent {
                Some(error) if self.patience.is_some() => return Err(Silent(error)),
                // It may still arrive, and as long as that is not known, nothing else may be
                // decided: the same message is tried again.
                Some(_) => tokio::time::sleep(SILENCE).await,
                None => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

/// The log does not answer, or not usefully.
struct Silent(LedgerError);

impl SharedQueue for FleetQueue {
    fn change<'a>(
        &'a self,
        decide: &'a mut Decide<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<(), LedgerError>> + Send + 'a>> {
        Box::pin(self.agree(decide))
    }

    fn look(&self, look: &mut dyn FnMut(&Queue)) {
        look(&self.known().queue);
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
