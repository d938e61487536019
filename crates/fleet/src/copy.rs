//! The local copies of the journals of a run and those below it: made equal to what the shared log has.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use gyrus_contract::RunId;
use gyrus_journal::{Error as JournalError, LogName, Mirror, Store};
use gyrus_kernel::{Entry, log_name, parse};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::{
    BlobError, EntryLines, LogSubject, Machine, MachineTime, ReadError, RunMessage, RunMessageKind,
    RunReading, SharedLog, fetch_blob,
    log::{REQUEST, heard},
};

/// Interval between checks for news that no message announced.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Time for which further messages may follow after a run has ended.
const STRAGGLERS: Duration = Duration::from_secs(5);

/// Returns the subject of a run's journal: those of a family stand together.
pub fn run_subject(root: RunId, run: RunId) -> LogSubject {
    LogSubject::new(&format!("runs.{root}.{run}")).expect("ids of runs are words")
}

/// The local copy cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The local journal cannot be read or written.
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

/// Updates the local copy of a log to the shared log's state, given as all of `messages`. Returns
/// whether it had all of that before.
pub(crate) async fn restore(
    store: &Store,
    name: &LogName,
    log: &Arc<dyn SharedLog>,
    messages: &[EntryLines],
    until: MachineTime,
) -> Result<bool, CopyError> {
    if messages.is_empty() && !store.exists(name) {
        return Ok(true);
    }
    let mirror = align(store.mirror(name)?, messages)?;
    let had_all = mirror.end().0 == messages.last().map_or(0, |last| last.last);
    fill(mirror, log, messages, until).await?;
    Ok(had_all)
}

/// Appends the entries that the copy lacks.
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

/// Drops entries of the local copy that the shared log lacks, which never counted.
fn align(mut mirror: Mirror, messages: &[EntryLines]) -> Result<Mirror, JournalError> {
    mirror.mark_as_copy()?;
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

/// Copies of the journals of a run and its child runs, for watchers on this machine.
#[derive(Clone)]
pub struct FleetCopy {
    pub log: Arc<dyn SharedLog>,
    pub machine: Arc<dyn Machine>,
    /// The place of the copies.
    pub store: Store,
    /// The run, which a person or program asked for.
    pub root: RunId,
}

/// A copy cannot be kept up to date.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The local journal cannot be written, or a blob is missing.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<JournalError> for FollowError {
    fn from(error: JournalError) -> Self {
        CopyError::from(error).into()
    }
}

/// Returns whether no worker drives a run at present.
pub type IsOver = Arc<dyn Fn() -> bool + Send + Sync>;

impl FleetCopy {
    /// Updates the copies, unless the run is over and complete here, or another process updates
    /// them.
    ///
    /// # Errors
    /// The log cannot be read, or a copy not be written.
    pub async fn refresh(&self) -> Result<(), FollowError> {
        let mut known = BTreeSet::from([self.root]);
        let mut open = vec![self.root];
        while let Some(run) = open.pop() {
            self.refresh_one(run).await?;
            let children = children(&self.store, run, 1)?;
            open.extend(children.into_iter().filter(|child| known.insert(*child)));
        }
        Ok(())
    }

    async fn refresh_one(&self, run: RunId) -> Result<(), FollowError> {
        if matches!(self.last_entry(run), Some(Entry::RunEnded(_))) {
            return Ok(());
        }
        let mut reading = RunReading::new(run_subject(self.root, run));
        let (mut blobs, mut messages) = (Vec::new(), Vec::new());
        let mut sink = |message: &RunMessage| {
            gather(message, &mut blobs, &mut messages);
            Ok(())
        };
        let until = self.machine.now() + REQUEST;
        reading.catch_up(&*self.log, &mut sink, until).await?;
        let name = log_name(run);
        match restore(&self.store, &name, &self.log, &messages, until).await {
            Err(CopyError::Journal(JournalError::Held { .. })) => Ok(()),
            restored => Ok(restored.map(drop)?),
        }
    }

    fn last_entry(&self, run: RunId) -> Option<Entry> {
        let reader = self.store.reader(&log_name(run)).ok()?;
        parse(&reader.entries_back().ok()?.next()?.ok()?).ok()
    }

    /// Updates the copies until no worker drives the run and `is_over`, which is checked again at
    /// every change of `changes`. Holds them until then: whoever looks at one here sees a run that
    /// is at work.
    ///
    /// # Errors
    /// A log contradicts itself, or a copy cannot be written.
    pub async fn follow(
        &self,
        is_over: IsOver,
        changes: watch::Receiver<u64>,
    ) -> Result<(), FollowError> {
        let (found, mut children) = mpsc::unbounded_channel();
        let mut known = BTreeSet::from([self.root]);
        let mut following = JoinSet::new();
        let follow = |run| {
            let (copy, is_over) = (self.clone(), Arc::clone(&is_over));
            let (changes, found) = (changes.clone(), found.clone());
            async move { copy.follow_one(run, &is_over, changes, &found).await }
        };
        following.spawn(follow(self.root));
        loop {
            tokio::select! {
                Some(child) = children.recv() => {
                    if known.insert(child) {
                        following.spawn(follow(child));
                    }
                }
                ended = following.join_next() => match ended {
                    Some(Ok(ended)) => ended?,
                    Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
                    None => return Ok(()),
                },
            }
        }
    }

    async fn follow_one(
        &self,
        run: RunId,
        is_over: &IsOver,
        mut changes: watch::Receiver<u64>,
        found: &mpsc::UnboundedSender<RunId>,
    ) -> Result<(), FollowError> {
        let subject = run_subject(self.root, run);
        let mut news = self.log.news(&subject);
        let mut reading = RunReading::new(subject);
        let mut mirror: Option<Mirror> = None;
        let (mut messages, mut blobs) = (Vec::new(), Vec::new());
        let mut told = 0;
        let mut over = None;
        loop {
            // Asked before the log is read: what was written until then is read.
            let is_over = is_over();
            let mut sink = |message: &RunMessage| {
                gather(message, &mut blobs, &mut messages);
                Ok(())
            };
            let until = self.machine.now() + REQUEST;
            let read = reading.catch_up(&*self.log, &mut sink, until).await;
            if mirror.is_none() && !messages.is_empty() {
                mirror = self.take(run, &messages)?;
            }
            if let Some(copy) = mirror.take() {
                let copy = fill(copy, &self.log, &std::mem::take(&mut messages), until).await?;
                let end = copy.end().0;
                for child in children(&self.store, run, told + 1)? {
                    // Nobody hears it any more if the whole is over.
                    let _ = found.send(child);
                }
                told = end;
                mirror = Some(copy);
            }
            match read {
                Ok(_) | Err(ReadError::Unreachable(_)) => {}
                Err(error) => return Err(error.into()),
            }
            let last = self.last_entry(run);
            let says_its_end = matches!(last, Some(Entry::RunEnded(_) | Entry::RunParked(_)));
            let is_let_go = reading.standing.holder.is_none() || says_its_end;
            let since = over.filter(|_| is_over).unwrap_or(self.machine.now());
            over = is_over.then_some(since);
            let is_late = self.machine.now().since(since) > STRAGGLERS;
            // A worker may die before it says anything, and a replica may lag.
            if is_over && (is_let_go && messages.is_empty() || is_late) {
                return Ok(());
            }
            tokio::select! {
                () = heard(&mut news) => {}
                () = heard(&mut changes) => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    /// Opens a copy for writing; `None` if another process has it at this moment.
    fn take(&self, run: RunId, messages: &[EntryLines]) -> Result<Option<Mirror>, CopyError> {
        match self.store.mirror(&log_name(run)) {
            Err(JournalError::Held { .. }) => Ok(None),
            mirror => Ok(Some(align(mirror?, messages)?)),
        }
    }
}

/// Returns the child runs that a run has started since the entry `from`.
pub(crate) fn children(store: &Store, run: RunId, from: u64) -> Result<Vec<RunId>, JournalError> {
    let name = log_name(run);
    if !store.exists(&name) {
        return Ok(Vec::new());
    }
    let mut children = Vec::new();
    for entry in store.reader(&name)?.entries(from)? {
        if let Ok(Entry::ChildStarted(child)) = parse(&entry?) {
            children.push(child.child);
        }
    }
    Ok(children)
}
