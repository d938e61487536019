//! The local copy of a run's journal: made equal to what the shared log has.

use std::{sync::Arc, time::Duration};

use gyrus_contract::RunId;
use gyrus_journal::{Error as JournalError, LogName, Mirror, Store};
use gyrus_kernel::{Entry, log_name, parse};
use tokio::sync::watch;

use crate::{
    BlobError, EntryLines, LogSubject, Machine, MachineTime, ReadError, RunMessage, RunMessageKind,
    RunReading, SharedLog, fetch_blob, log::heard,
};

/// Time for one request.
const REQUEST: Duration = Duration::from_secs(5);

/// Time after which is looked for news that nobody told of.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Time for which more may come of a run that is over.
const STRAGGLERS: Duration = Duration::from_secs(5);

/// Returns the subject of a run's journal: those of a family stand together.
pub fn run_subject(root: RunId, run: RunId) -> LogSubject {
    LogSubject::new(&format!("runs.{root}.{run}")).expect("ids of runs are words")
}

/// The local copy cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The local disk does not do it.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A blob cannot be read.
    #[error(transparent)]
    Blob(#[from] BlobError),
}

/// Gathers the entries of messages; `blobs` are those that came before them, in messages of their own.
pub(crate) fn gather(
    message: &RunMessage,
    blobs: &mut Vec<Arc<[u8]>>,
    entries: &mut Vec<EntryLines>,
) {
    match &message.kind {
        RunMessageKind::Blobs(more) => blobs.extend(more.iter().cloned()),
        RunMessageKind::Entries(lines) => {
            let mut lines = lines.clone();
            lines.blobs.append(blobs);
            entries.push(lines);
        }
        // What came before another worker took the run belonged to entries that never came.
        RunMessageKind::Claimed(_) => blobs.clear(),
        RunMessageKind::Renewed | RunMessageKind::Released => {}
    }
}

/// Makes the local copy of a log equal to what the shared log has of it, which is all of `messages`.
pub(crate) async fn restore(
    store: &Store,
    name: &LogName,
    log: &Arc<dyn SharedLog>,
    messages: &[EntryLines],
    until: MachineTime,
) -> Result<(), CopyError> {
    if messages.is_empty() && !store.exists(name) {
        return Ok(());
    }
    let mirror = align(store.mirror(name)?, messages)?;
    fill(mirror, log, messages, until).await.map(drop)
}

/// Appends what the copy does not have yet.
async fn fill(
    mut mirror: Mirror,
    log: &Arc<dyn SharedLog>,
    messages: &[EntryLines],
    until: MachineTime,
) -> Result<Mirror, CopyError> {
    let have = mirror.end().0;
    for message in messages.iter().filter(|message| message.first > have) {
        for blob in &message.blobs {
            mirror.put_blob(blob)?;
        }
        for id in &message.large_blobs {
            if !mirror.has_blob(id) {
                mirror.put_blob(&fetch_blob(log, id, until).await?)?;
            }
        }
        match &message.lines_in {
            Some(id) => mirror.append(&fetch_blob(log, id, until).await?)?,
            None => mirror.append(&message.lines)?,
        };
    }
    mirror.sync()?;
    Ok(mirror)
}

/// Drops what the local copy has and the shared log has not: it never counted.
fn align(mut mirror: Mirror, messages: &[EntryLines]) -> Result<Mirror, JournalError> {
    let (end, head) = mirror.end();
    let common = messages.iter().rev().find(|message| message.last <= end);
    match common {
        _ if end == 0 => Ok(mirror),
        Some(common) if common.last == end && common.head == head => Ok(mirror),
        Some(common) if common.last < end => match mirror.cut(common.last, common.head) {
            Err(JournalError::OtherHistory { .. }) => mirror.reset(),
            cut => cut.map(|()| mirror),
        },
        Some(_) | None => mirror.reset(),
    }
}

/// A copy of a run's journal, for whoever watches it on this machine.
pub struct FleetCopy {
    /// The shared log.
    pub log: Arc<dyn SharedLog>,
    /// This machine.
    pub machine: Arc<dyn Machine>,
    /// The place of the copy.
    pub store: Store,
    /// The run.
    pub root: RunId,
}

/// A copy cannot be kept up to date.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The local disk does not do it, or a blob is missing.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl FleetCopy {
    /// Brings the copy up to date, unless the run is over and complete here, or somebody watches it.
    ///
    /// # Errors
    /// The log cannot be read, or the copy not be written.
    pub async fn refresh(&self) -> Result<(), FollowError> {
        let name = log_name(self.root);
        if matches!(self.last_entry(), Some(Entry::RunEnded(_))) {
            return Ok(());
        }
        let mut reading = RunReading::new(run_subject(self.root, self.root));
        let (mut blobs, mut messages) = (Vec::new(), Vec::new());
        let mut sink = |message: &RunMessage| {
            gather(message, &mut blobs, &mut messages);
            Ok(())
        };
        let until = self.machine.now() + REQUEST;
        reading.catch_up(&*self.log, &mut sink, until).await?;
        match restore(&self.store, &name, &self.log, &messages, until).await {
            Err(CopyError::Journal(JournalError::Held { .. })) => Ok(()),
            restored => Ok(restored?),
        }
    }

    fn last_entry(&self) -> Option<Entry> {
        let reader = self.store.reader(&log_name(self.root)).ok()?;
        parse(&reader.entries_back().ok()?.next()?.ok()?).ok()
    }

    /// Whether the last entry of the copy says that the run is over or parked.
    fn says_its_end(&self) -> bool {
        let last = self.last_entry();
        matches!(last, Some(Entry::RunEnded(_) | Entry::RunParked(_)))
    }

    /// Keeps the copy up to date until nobody works on the run and `is_over`, which is asked again
    /// at every change of `changes`. Holds the copy until then: whoever looks at it here sees a run
    /// that is at work.
    ///
    /// # Errors
    /// The log contradicts itself, or the copy cannot be written.
    pub async fn follow(
        &self,
        is_over: impl Fn() -> bool + Send,
        mut changes: watch::Receiver<u64>,
    ) -> Result<(), FollowError> {
        let subject = run_subject(self.root, self.root);
        let mut news = self.log.news(&subject);
        let mut reading = RunReading::new(subject);
        let name = log_name(self.root);
        let mut mirror: Option<Mirror> = None;
        let mut over = None;
        let mut blobs = Vec::new();
        loop {
            // Asked before the log is read: what was written until then is read.
            let is_over = is_over();
            let mut messages = Vec::new();
            let mut sink = |message: &RunMessage| {
                gather(message, &mut blobs, &mut messages);
                Ok(())
            };
            let until = self.machine.now() + REQUEST;
            let read = reading.catch_up(&*self.log, &mut sink, until).await;
            if !messages.is_empty() {
                let copy = match mirror.take() {
                    Some(copy) => copy,
                    None => align(
                        self.store.mirror(&name).map_err(CopyError::from)?,
                        &messages,
                    )
                    .map_err(CopyError::from)?,
                };
                mirror = Some(fill(copy, &self.log, &messages, until).await?);
            }
            match read {
                Ok(_) | Err(ReadError::Unreachable(_)) => {}
                Err(error) => return Err(error.into()),
            }
            let is_let_go = reading.standing.holder.is_none() || self.says_its_end();
            let since = over.filter(|_| is_over).unwrap_or(self.machine.now());
            over = is_over.then_some(since);
            // A worker may die before it says anything, and a replica may lag.
            if is_over && (is_let_go || self.machine.now().since(since) > STRAGGLERS) {
                return Ok(());
            }
            tokio::select! {
                () = heard(&mut news) => {}
                () = heard(&mut changes) => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }
}
