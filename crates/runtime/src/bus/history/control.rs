//! The control log of a history: who has acknowledged what, and which logs there are.
//!
//! Its state is a fold of records. A log that has grown long is replaced by one that begins with
//! the state. Who holds the newest control log holds the history.

use std::{collections::BTreeMap, sync::Arc};

use gyrus_journal::{Error, LockWait, LogName, NewEntry, Store, Writer};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use tokio::sync::OwnedMutexGuard;

use super::logs::{KIND, LogSpan, read_payload};
use crate::bus::error::BusError;

/// Number of records after which the control log is replaced.
const CONTROL_RECORDS: usize = 10_000;

/// Number of attempts to take the newest control log while its holder replaces it.
const TAKE_ATTEMPTS: usize = 16;

/// Prefix of the ids of control logs.
const PREFIX: &str = "control-";

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::bus) struct ControlState {
    /// The lowest position that the next event may have.
    pub(in crate::bus) next: u64,
    /// Number of times that the last log was reopened after its creation.
    pub(in crate::bus) takings: u32,
    /// The completed logs, oldest first.
    pub(in crate::bus) closed: Vec<LogSpan>,
    /// The durable subscribers by their names.
    pub(in crate::bus) subscribers: BTreeMap<String, SubscriberState>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::bus) struct SubscriberState {
    /// The position of the last acknowledged event; 0 if there is none.
    pub(in crate::bus) acknowledged: u64,
    /// The time at which the subscriber last connected or acknowledged an event, in milliseconds
    /// since 1970.
    pub(in crate::bus) seen_ms: i64,
    /// The progress of the subscriber's subscription, while it is connected.
    #[serde(skip)]
    pub(in crate::bus) connected: Option<SubscriberProgress>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::bus) struct SubscriberProgress {
    /// The position of the last event that was delivered.
    pub(in crate::bus) delivered: u64,
    /// The position up to which all matching events were delivered.
    pub(in crate::bus) passed: u64,
}

impl SubscriberState {
    /// Returns the position up to which the subscriber needs nothing any more: also events that do
    /// not match count, once it has acknowledged all before them that do.
    pub(in crate::bus) fn settled(&self) -> u64 {
        match self.connected {
            Some(progress) if self.acknowledged >= progress.delivered => {
                self.acknowledged.max(progress.passed)
            }
            Some(_) | None => self.acknowledged,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::bus) enum ControlRecord {
    /// The complete state so far.
    Snapshot(ControlState),
    /// A subscriber starts behind the position `acknowledged`.
    Subscribed {
        name: String,
        acknowledged: u64,
        at_ms: i64,
    },
    /// A subscriber has handled all events up to the position.
    Acknowledged {
        name: String,
        position: u64,
        at_ms: i64,
    },
    /// A subscriber never comes back.
    Unsubscribed { name: String },
    /// A log is complete.
    Closed(LogSpan),
}

impl ControlState {
    fn apply(&mut self, record: ControlRecord) {
        match record {
            ControlRecord::Snapshot(state) => *self = state,
            ControlRecord::Subscribed {
                name,
                acknowledged,
                at_ms,
            } => {
                let connected = self.subscribers.get(&name).and_then(|one| one.connected);
                let subscriber = SubscriberState {
                    acknowledged,
                    seen_ms: at_ms,
                    connected,
                };
                self.subscribers.insert(name, subscriber);
            }
            ControlRecord::Acknowledged {
                name,
                position,
                at_ms,
            } => {
                if let Some(subscriber) = self.subscribers.get_mut(&name) {
                    subscriber.acknowledged = subscriber.acknowledged.max(position);
                    subscriber.seen_ms = subscriber.seen_ms.max(at_ms);
                }
            }
            ControlRecord::Unsubscribed { name } => {
                self.subscribers.remove(&name);
            }
            ControlRecord::Closed(span) => {
                self.closed.retain(|known| known.first != span.first);
                self.closed.push(span);
                self.next = self.next.max(span.last + 1);
                self.takings = 0;
            }
        }
    }
}

#[derive(Debug)]
pub(in crate::bus) struct ControlLog {
    writing: Arc<tokio::sync::Mutex<ControlWriting>>,
    state: Arc<Mutex<ControlState>>,
}

#[derive(Debug)]
struct ControlWriting {
    store: Store,
    writer: Writer,
    number: u64,
    records: usize,
}

impl ControlLog {
    /// Opens the newest control log, or creates the first.
    ///
    /// # Errors
    /// Returns [`BusError::InUse`] when somebody has it.
    pub(super) fn open(store: &Store) -> Result<Self, BusError> {
        for _ in 0..TAKE_ATTEMPTS {
            let Some(number) = numbers(store)?.pop() else {
                match create(store, 1, &ControlState::default()) {
                    Err(Error::Exists { .. }) => continue,
                    created => return Ok(Self::new(store, created?, 1, ControlState::default())),
                }
            };
            let (writer, _) = match store.take(&name(number), LockWait::IfFree) {
                Err(Error::NotFound { .. }) => continue,
                taken => taken?,
            };
            // Its last holder may have replaced it before releasing it.
            if numbers(store)?.last() == Some(&number) {
                let state = read(store, number)?;
                return Ok(Self::new(store, writer, number, state));
            }
        }
        let name = name(numbers(store)?.pop().unwrap_or(1));
        Err(Error::HeldByUnknown { name }.into())
    }

    fn new(store: &Store, writer: Writer, number: u64, state: ControlState) -> Self {
        let writing = ControlWriting {
            store: store.clone(),
            writer,
            number,
            records: 0,
        };
        Self {
            writing: Arc::new(tokio::sync::Mutex::new(writing)),
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Returns the state, which may be ahead of the disk.
    pub(in crate::bus) fn state(&self) -> MutexGuard<'_, ControlState> {
        self.state.lock()
    }

    /// Puts a record on disk and applies it. Dropping the future may leave it applied but not on
    /// disk yet.
    pub(in crate::bus) async fn write(&self, record: ControlRecord) -> Result<(), BusError> {
        let mut writing = Arc::clone(&self.writing).lock_owned().await;
        if writing.records >= CONTROL_RECORDS || writing.writer.check().is_err() {
            let state = Arc::clone(&self.state);
            let replace = move || {
                writing.replace(&state)?;
                Ok::<OwnedMutexGuard<_>, BusError>(writing)
            };
            let replaced = tokio::task::spawn_blocking(replace).await;
            writing = replaced.map_err(|_| BusError::Cancelled)??;
        }
        let writer = writing.append(record, &self.state)?;
        drop(writing);
        writer.barrier().await?;
        Ok(())
    }

    /// Puts a record on disk and applies it, on a thread that may block.
    pub(super) fn write_blocking(&self, record: ControlRecord) -> Result<(), BusError> {
        let mut writing = self.writing.blocking_lock();
        if writing.writer.check().is_err() {
            writing.replace(&self.state)?;
        }
        let writer = writing.append(record, &self.state)?;
        drop(writing);
        writer.barrier_blocking()?;
        Ok(())
    }

    /// Replaces the log by one that begins with the present state, on a thread for blocking work.
    pub(super) fn replace(&mut self) -> Result<(), BusError> {
        let Some(writing) = Arc::get_mut(&mut self.writing) else {
            return Err(BusError::Cancelled);
        };
        writing.get_mut().replace(&self.state)
    }
}

impl ControlWriting {
    /// Appends a record and applies it, in the same order for all. Returns the writer to wait on.
    fn append(
        &mut self,
        record: ControlRecord,
        state: &Mutex<ControlState>,
    ) -> Result<Writer, BusError> {
        self.writer.append(&[entry(&record)])?;
        self.records += 1;
        state.lock().apply(record);
        Ok(self.writer.clone())
    }

    fn replace(&mut self, state: &Mutex<ControlState>) -> Result<(), BusError> {
        // Whoever waits for a record goes on, and releases the old log. If that failed, its records
        // are in the snapshot all the same.
        let _ = self.writer.barrier_blocking();
        let number = self.number + 1;
        let snapshot = state.lock().clone();
        self.writer = create(&self.store, number, &snapshot)?;
        (self.number, self.records) = (number, 1);
        for old in numbers(&self.store)? {
            if old < number {
                // One that somebody still waits on goes the next time.
                let _ = self.store.remove(&name(old));
            }
        }
        Ok(())
    }
}

fn entry(record: &ControlRecord) -> NewEntry<'static> {
    NewEntry {
        kind: "bus.control",
        version: 1,
        payload: to_raw_value(record).expect("records have string keys only"),
    }
}

fn create(store: &Store, number: u64, state: &ControlState) -> Result<Writer, Error> {
    let snapshot = entry(&ControlRecord::Snapshot(state.clone()));
    store.prepare(&name(number))?.publish(&[snapshot])
}

fn read(store: &Store, number: u64) -> Result<ControlState, BusError> {
    let name = name(number);
    let mut state = ControlState::default();
    for entry in store.reader(&name)?.entries(1)? {
        if let Some(record) = read_payload(&name, &entry?)? {
            state.apply(record);
        }
    }
    Ok(state)
}

fn name(number: u64) -> LogName {
    LogName::new(KIND, &format!("{PREFIX}{number:020}")).expect("letters, digits and a dash")
}

fn numbers(store: &Store) -> Result<Vec<u64>, BusError> {
    super::logs::numbers(store, PREFIX)
}
