//! The durable events of a bus.
//!
//! The history is a row of logs, each named by the position of its first event. Events are appended
//! to the last one, in one order, and many share one sync of the disk. A full log is followed by a
//! new one; the oldest are removed when nobody needs them. The control log says who has
//! acknowledged what.

mod logs;
mod control;
mod retention;
mod recent;
mod tail;
mod open;

use std::{sync::Arc, time::Duration};

use gyrus_journal::{Error, LockWait, NewEntry, Store, Writer};
use gyrus_kernel::now_ms;
use parking_lot::RwLock;
use serde_json::value::to_raw_value;
use tokio::sync::{Mutex, watch};

use self::{
    control::ControlLog,
    logs::{LogSpan, log_name, read_payload},
    recent::RecentIds,
    tail::HistoryTail,
};
use crate::{
    bus::{error::BusError, position::EventPosition},
    event::Event,
};

pub(super) use control::{ControlRecord, ControlState, SubscriberProgress, SubscriberState};
pub use retention::HistoryLimits;
pub(super) use tail::Durable;

/// Maximum number of events read at once for a subscriber.
const READ_EVENTS: usize = 256;

/// Maximum size of the events read at once, in bytes of JSON, beside the last one.
const READ_BYTES: usize = 4 << 20;

/// Time to wait for the end of a process that has the history open.
const ENDING: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct EventHistory {
    store: Store,
    limits: HistoryLimits,
    writing: Arc<Mutex<LogWriting>>,
    /// The first positions of all logs, sorted.
    firsts: RwLock<Vec<u64>>,
    tail: HistoryTail,
    /// The control log, dropped last: its holder may open the history.
    pub(super) control: ControlLog,
}

#[derive(Debug)]
struct LogWriting {
    /// The writer; `None` after a failure, until the log is reopened.
    writer: Option<Writer>,
    span: LogSpan,
    recent: RecentIds,
}

impl LogWriting {
    fn sound(&self) -> Option<Writer> {
        let is_sound = |writer: &Writer| writer.check().is_ok();
        self.writer.clone().filter(is_sound)
    }
}

#[derive(Debug, Default)]
pub(super) struct EventBatch {
    /// The events with their positions.
    pub(super) events: Vec<(u64, Arc<Event>)>,
    /// The position up to which events were read.
    pub(super) last: u64,
    /// Positions before the events that are no longer stored.
    pub(super) lost: Option<(u64, u64)>,
}

impl EventHistory {
    /// Stores an event, and returns its position once it is on disk and whether it is new: an event
    /// with the id of one in the window for duplicates has the position of that one.
    pub(super) async fn append(
        self: &Arc<Self>,
        event: &Arc<Event>,
    ) -> Result<(EventPosition, bool), BusError> {
        let payload = to_raw_value(&**event).expect("events have string keys only");
        let bytes = payload.get().len();
        let mut writing = Arc::clone(&self.writing).lock_owned().await;
        if writing.sound().is_none() || self.limits.is_full(&writing.span) {
            let history = Arc::clone(self);
            let prepare = move || history.prepare(&mut writing).map(|()| writing);
            let prepared = tokio::task::spawn_blocking(prepare).await;
            writing = prepared.map_err(|_| BusError::Cancelled)??;
        }
        let writer = writing.sound().ok_or(BusError::Cancelled)?;
        let first = writing.span.first;
        if let Some(position) = writing.recent.get(&event.id) {
            drop(writing);
            self.wait_for_disk(writer, first).await?;
            return Ok((EventPosition(position), false));
        }
        writer.append(&[NewEntry {
            kind: "event",
            version: 1,
            payload,
        }])?;
        writing.span.add(bytes, now_ms());
        let position = writing.span.last;
        writing.recent.add(event.id, position);
        self.tail.push(event, bytes);
        drop(writing);
        self.wait_for_disk(writer, first).await?;
        Ok((EventPosition(position), true))
    }

    /// Waits until everything in the last log is on disk, and delivers it to subscribers. Dropping
    /// the future leaves this under way.
    async fn wait_for_disk(self: &Arc<Self>, writer: Writer, first: u64) -> Result<(), BusError> {
        let history = Arc::clone(self);
        let waiting = tokio::spawn(async move {
            let entries = writer.barrier().await?;
            history.tail.advance(first + entries - 1);
            Ok(())
        });
        waiting.await.map_err(|_| BusError::Cancelled)?
    }

    /// Ensures that the last log can take another event, on a thread that may block.
    fn prepare(&self, writing: &mut LogWriting) -> Result<(), BusError> {
        let writer = match writing.sound() {
            Some(writer) => writer,
            None => self.take_again(writing)?,
        };
        if self.limits.is_full(&writing.span) {
            self.begin_log(writing, writer)?;
        }
        Ok(())
    }

    fn begin_log(&self, writing: &mut LogWriting, full: Writer) -> Result<(), BusError> {
        let entries = full.barrier_blocking()?;
        self.tail.advance(writing.span.first + entries - 1);
        self.control
            .write_blocking(ControlRecord::Closed(writing.span))?;
        let next = writing.span.last + 1;
        writing.writer = Some(create(&self.store, next)?);
        drop(full);
        writing.span = LogSpan::empty(next);
        self.firsts.write().push(next);
        self.remove_old();
        Ok(())
    }

    /// Removes the logs beyond the limits, oldest first.
    fn remove_old(&self) {
        let old: Vec<LogSpan> = {
            let state = self.control.state();
            let count = self.limits.removable(&state, now_ms());
            state.closed[..count].to_vec()
        };
        for log in old {
            // Before its files, so that a reader who misses them knows why.
            self.firsts.write().retain(|first| *first != log.first);
            if self.store.remove(&log_name(log.first)).is_err() {
                // Whoever still waits for it to be on disk has it. It goes the next time.
                self.firsts.write().insert(0, log.first);
                return;
            }
            let mut state = self.control.state();
            state.closed.retain(|closed| closed.first != log.first);
        }
    }

    pub(super) fn oldest(&self) -> u64 {
        let firsts = self.firsts.read();
        firsts.first().copied().unwrap_or(1)
    }

    /// Returns events of the positions `from` to `last`, which are on disk.
    pub(super) async fn read(
        self: &Arc<Self>,
        from: u64,
        last: u64,
    ) -> Result<EventBatch, BusError> {
        if let Some(events) = self.tail.get(from, last, READ_EVENTS)
            && let Some((last, _)) = events.last()
        {
            let (last, lost) = (*last, None);
            return Ok(EventBatch { events, last, lost });
        }
        let history = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || history.read_logs(from, last));
        read.await.map_err(|_| BusError::Cancelled)?
    }

    fn read_logs(&self, from: u64, last: u64) -> Result<EventBatch, BusError> {
        loop {
            let (log, next) = self.log_of(from);
            let Some(first) = log else {
                return Ok(lost(from, next.map_or(last, |next| next - 1)));
            };
            let read = self.read_log(first, from, last);
            // The log may have been removed meanwhile.
            if read.is_err() && self.log_of(from).0 != Some(first) {
                continue;
            }
            let batch = read?;
            // Positions that no log has.
            if batch.events.is_empty() && batch.last < from {
                return Ok(lost(from, next.map_or(last, |next| next - 1)));
            }
            return Ok(batch);
        }
    }

    /// Returns the first position of the log that a position belongs to, and of the log after it.
    fn log_of(&self, position: u64) -> (Option<u64>, Option<u64>) {
        let firsts = self.firsts.read();
        let behind = firsts.partition_point(|first| *first <= position);
        let log = behind.checked_sub(1).map(|index| firsts[index]);
        (log, firsts.get(behind).copied())
    }

    fn read_log(&self, first: u64, from: u64, last: u64) -> Result<EventBatch, BusError> {
        let name = log_name(first);
        let mut batch = EventBatch {
            last: from - 1,
            ..EventBatch::default()
        };
        let mut bytes = 0;
        for entry in self.store.reader(&name)?.entries(from - first + 1)? {
            let entry = entry?;
            let position = first + entry.seq - 1;
            if position > last {
                break;
            }
            if let gyrus_journal::Payload::Json(json) = &entry.payload {
                bytes += json.get().len();
            }
            if let Some(event) = read_payload::<Event>(&name, &entry)? {
                batch.events.push((position, Arc::new(event)));
            }
            batch.last = position;
            if batch.events.len() >= READ_EVENTS || bytes >= READ_BYTES {
                break;
            }
        }
        Ok(batch)
    }

    pub(super) fn durable(&self) -> watch::Receiver<Durable> {
        self.tail.durable()
    }

    pub(super) fn last(&self) -> u64 {
        self.tail.last()
    }

    /// Informs subscribers that the bus is closed.
    pub(super) fn close(&self) {
        self.tail.close();
    }
}

fn lost(from: u64, to: u64) -> EventBatch {
    EventBatch {
        events: Vec::new(),
        last: to,
        lost: Some((from, to)),
    }
}

/// Creates the log that begins with the event at this position.
fn create(store: &Store, first: u64) -> Result<Writer, Error> {
    let name = log_name(first);
    match store.create(&name) {
        // An earlier attempt failed after the log had its name.
        Err(Error::Exists { .. }) => take(store, first),
        created => created,
    }
}

/// Reopens the log whose first event has this position.
fn take(store: &Store, first: u64) -> Result<Writer, Error> {
    let name = log_name(first);
    match store.take(&name, LockWait::IfFree) {
        // The holder has released the control log, so it is ending. In this process, it is somebody
        // who waited for the disk in vain, and the next attempt succeeds.
        Err(Error::Held { holder, .. }) if holder.process.pid != std::process::id() => {
            let _ = holder.process.wait_gone(ENDING);
            store.take(&name, LockWait::IfFree).map(|taken| taken.0)
        }
        taken => taken.map(|taken| taken.0),
    }
}
