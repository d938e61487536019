//! Opening a history, in whatever state the process before left it.

use std::sync::Arc;

use gyrus_journal::{LogEntry, Store, Writer};
use parking_lot::RwLock;
use serde::Deserialize;
use tokio::sync::Mutex;

use super::{
    EventHistory, HistoryLimits, LogWriting,
    control::ControlLog,
    create,
    logs::{LogSpan, firsts, log_name, measure, read_payload},
    recent::RecentIds,
    tail::HistoryTail,
    take,
};
use crate::{bus::error::BusError, event::EventId};

/// Maximum number of times that a log is reopened before a new one is begun. Each leaves a file.
const LOG_TAKINGS: u32 = 100;

/// The part of a stored event that identifies duplicates.
#[derive(Deserialize)]
struct StoredId {
    id: EventId,
}

impl EventHistory {
    /// Opens the history in a store, creating it if there is none. May block for the disk.
    ///
    /// # Errors
    /// Returns [`BusError::InUse`] when somebody has it.
    pub(in crate::bus) fn open(store: &Store, limits: HistoryLimits) -> Result<Self, BusError> {
        limits.check()?;
        let mut control = ControlLog::open(store)?;
        let mut firsts = firsts(store)?;
        let (mut closed, current) = match firsts.split_last() {
            Some((last, earlier)) => {
                let known = control.state().closed.clone();
                (
                    measure_closed(store, earlier, &known)?,
                    Some((take(store, *last)?, measure(store, *last)?)),
                )
            }
            None => (Vec::new(), None),
        };
        let last = current.as_ref().map_or(0, |(_, span)| span.last);
        let next = control.state().next.max(last + 1);
        let takings = control.state().takings + 1;
        let goes_on = |span: &LogSpan| {
            !limits.is_full(span) && takings <= LOG_TAKINGS && span.last + 1 == next
        };
        let mut emptied = None;
        let kept = match current {
            Some((_, span)) if goes_on(&span) => current,
            Some((writer, span)) => {
                // A log can be removed once nobody has it.
                drop(writer);
                if span.is_empty() {
                    emptied = Some(span.first);
                } else {
                    closed.push(span);
                }
                None
            }
            None => None,
        };
        {
            let mut state = control.state();
            state.next = next;
            state.takings = kept.as_ref().map_or(0, |_| takings);
            state.closed.clone_from(&closed);
        }
        // On disk before a log is removed whose name alone may say which position is next.
        control.replace()?;
        if let Some(first) = emptied {
            store.remove(&log_name(first))?;
            firsts.pop();
        }
        let (writer, span) = match kept {
            Some(kept) => kept,
            None => {
                firsts.push(next);
                (create(store, next)?, LogSpan::empty(next))
            }
        };
        let recent = recent_ids(store, limits.duplicate_window, &closed, span)?;
        Ok(Self {
            store: store.clone(),
            limits,
            writing: Arc::new(Mutex::new(LogWriting {
                writer: Some(writer),
                span,
                recent,
            })),
            firsts: RwLock::new(firsts),
            tail: HistoryTail::new(next - 1),
            control,
        })
    }

    /// Opens the last log again after a failed write: it may hold events whose publishers were told
    /// of the failure.
    pub(super) fn take_again(&self, writing: &mut LogWriting) -> Result<Writer, BusError> {
        writing.writer = None;
        let first = writing.span.first;
        let writer = take(&self.store, first)?;
        let span = measure(&self.store, first)?;
        let closed = self.control.state().closed.clone();
        let window = self.limits.duplicate_window;
        writing.recent = recent_ids(&self.store, window, &closed, span)?;
        writing.span = span;
        self.tail.restart(span.last);
        writing.writer = Some(writer.clone());
        Ok(writer)
    }
}

/// Returns the spans of complete logs. One that the control log does not know is read.
fn measure_closed(
    store: &Store,
    firsts: &[u64],
    known: &[LogSpan],
) -> Result<Vec<LogSpan>, BusError> {
    let span = |first: &u64| match known.iter().find(|span| span.first == *first) {
        Some(span) => Ok(*span),
        None => measure(store, *first),
    };
    firsts.iter().map(span).collect()
}

/// Reads the ids of the newest events.
fn recent_ids(
    store: &Store,
    window: u64,
    closed: &[LogSpan],
    open: LogSpan,
) -> Result<RecentIds, BusError> {
    let mut missing = window;
    let mut starts = Vec::new();
    for span in [open].iter().chain(closed.iter().rev()) {
        let count = (span.last + 1 - span.first).min(missing);
        missing -= count;
        starts.push((span.first, span.last + 1 - count));
        if missing == 0 {
            break;
        }
    }
    let mut recent = RecentIds::new(window);
    for (first, from) in starts.into_iter().rev() {
        let name = log_name(first);
        for entry in store.reader(&name)?.entries(from - first + 1)? {
            let entry: LogEntry = entry?;
            if let Some(StoredId { id }) = read_payload(&name, &entry)? {
                recent.add(id, first + entry.seq - 1);
            }
        }
    }
    Ok(recent)
}
