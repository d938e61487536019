//! A run that this process drives for the fleet: its journal is taken from the shared log, and every
//! entry goes there before it counts.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt,
    sync::{Arc, Weak, mpsc::sync_channel},
    time::Duration,
};

use async_trait::async_trait;
use gyrus_contract::{BlobId, RunId};
use gyrus_journal::{
    Error as JournalError, LogName, Replica, ReplicaBatch, ReplicaDone, Replicas, Store,
};
use gyrus_kernel::{RUNS, log_name};
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot, watch},
    task::AbortHandle,
};

use crate::{
    BlobError, ClaimError, ClaimWords, Claimant, EntryLines, FleetMessage, Hold, HoldError,
    LeaseTimes, Machine, MachineTime, RunMessage, RunReading, SharedLog, Wait, WriterId, claim,
    copy::{CopyError, children, gather, restore, run_subject},
    inbox::{inbox_subject, read_messages, root_of},
    log::{REQUEST, heard},
    store_blob,
};

/// Largest blob that goes with a message, in bytes.
const SMALL_BLOB: usize = 64 << 10;

/// Largest size of the blobs of a message together, and of its lines.
const CARRIED: usize = 192 << 10;

/// Number of messages that wait for an inbox at which no more are read.
const KEPT: usize = 1_000;

/// Interval between checks for messages that no notice announced.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Length in milliseconds of the lease of a log that is written under the lease of another one:
/// longer than any run.
const NO_LEASE_MS: u64 = 100 * 365 * 24 * 60 * 60 * 1_000;

/// A run cannot be driven here.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The run's log cannot be claimed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error("the run's journal cannot be copied to this machine")]
    Copy(#[source] Box<CopyError>),
    /// The local journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl From<CopyError> for DriveError {
    fn from(error: CopyError) -> Self {
        Self::Copy(Box::new(error))
    }
}

/// The order to drive a run.
#[derive(Clone)]
pub struct DriveOrder {
    pub log: Arc<dyn SharedLog>,
    pub machine: Arc<dyn Machine>,
    /// The store of the local journals.
    pub store: Store,
    /// The run, which a person or program asked for.
    pub root: RunId,
    /// The words of the claim.
    pub claimed: ClaimWords,
    /// The way to proceed if another worker holds the run.
    pub wait: Wait,
}

/// A run that this process drives.
pub struct Driven {
    replicas: Arc<FleetReplicas>,
    lost: watch::Receiver<Option<HoldError>>,
    /// The task that passes messages on to the run.
    receiving: AbortHandle,
    /// Whether this machine had all entries of the run before.
    had_all: bool,
}

impl Driven {
    /// Claims a run, with those below it, and makes the local copies of their journals equal to the
    /// shared log.
    ///
    /// # Errors
    /// Another worker drives it, or its journal cannot be had.
    pub async fn take(driving: DriveOrder, until: MachineTime) -> Result<Self, DriveError> {
        let (lose, lost) = watch::channel(None);
        let replicas = Arc::new_cyclic(|itself| FleetReplicas {
            itself: itself.clone(),
            driving,
            keepers: Mutex::default(),
            stored: Mutex::default(),
            runtime: Handle::current(),
            lose,
        });
        let root = replicas.driving.root;
        let had_all = replicas.restore(root, until).await?;
        // What was said to the run until now is there when it goes on.
        let mut received = ReceivedMessages::default();
        replicas.receive(&mut received).await;
        let receiver = Arc::clone(&replicas);
        let receiving = tokio::spawn(async move { receiver.keep_receiving(received).await });
        Ok(Self {
            replicas,
            lost,
            receiving: receiving.abort_handle(),
            had_all,
        })
    }

    /// Whether this machine had all entries of the run before it was claimed, so that no other
    /// machine has written any since.
    pub fn had_all(&self) -> bool {
        self.had_all
    }

    /// Returns the replicas of the run's journals, for the store in which the run is driven.
    pub fn replicas(&self) -> Arc<dyn Replicas> {
        self.replicas.clone()
    }

    /// Returns once the run is lost to this process, which must then end. Never returns if the process
    /// lets it go before.
    pub fn lost(&self) -> impl Future<Output = HoldError> + Send + use<> {
        let mut lost = self.lost.clone();
        async move {
            let lost = lost.wait_for(Option::is_some).await;
            match lost.ok().and_then(|lost| lost.clone()) {
                Some(error) => error,
                None => std::future::pending().await,
            }
        }
    }

    /// Releases the run, which must be parked or over, with none of its processes alive.
    ///
    /// # Errors
    /// The run was lost before.
    pub async fn end(self) -> Result<(), HoldError> {
        let root = self.replicas.driving.root;
        let keeper = self.replicas.keepers.lock().get(&root).cloned();
        let (answer, answered) = oneshot::channel();
        let sent = keeper.map(|keeper| keeper.send(Job::Release(answer)).is_ok());
        match (sent, answered.await) {
            (Some(true), Ok(released)) => released,
            _ => Err(HoldError::Lost),
        }
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.receiving.abort();
        // The keepers end once nobody has work for them.
        self.replicas.keepers.lock().clear();
    }
}

/// The replicas of the journals of a run and its child runs.
struct FleetReplicas {
    /// A reference for the tasks that keep the logs.
    itself: Weak<FleetReplicas>,
    driving: DriveOrder,
    keepers: Mutex<BTreeMap<RunId, mpsc::UnboundedSender<Job>>>,
    /// The blobs known to be in the shared log.
    stored: Mutex<HashSet<BlobId>>,
    runtime: Handle,
    lose: watch::Sender<Option<HoldError>>,
}

impl fmt::Debug for FleetReplicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FleetReplicas")
            .field(&self.driving.root)
            .finish()
    }
}

/// The messages to a run, as read from the shared log.
#[derive(Default)]
struct ReceivedMessages {
    /// The position of the last message.
    after: u64,
    /// Messages that no inbox has taken yet.
    kept: Vec<FleetMessage>,
}

enum Job {
    Store(ReplicaBatch, ReplicaDone),
    /// Tell the number of entries in the shared log.
    Has(std::sync::mpsc::SyncSender<Result<u64, String>>),
    /// Let the log go.
    Release(oneshot::Sender<Result<(), HoldError>>),
}

impl FleetReplicas {
    /// Restores the journals of a run and its child runs. Returns whether this machine had all of
    /// them.
    async fn restore(
        self: &Arc<Self>,
        root: RunId,
        until: MachineTime,
    ) -> Result<bool, DriveError> {
        let mut had_all = true;
        let mut known = BTreeSet::from([root]);
        let mut open = vec![root];
        while let Some(run) = open.pop() {
            let (hold, messages) = self.claim(run, until).await?;
            let entries = messages.last().map_or(0, |last| last.last);
            // It is kept alive from here on, however long the copying takes.
            self.keep(run, Some((hold, entries)));
            let DriveOrder { store, log, .. } = &self.driving;
            had_all &= restore(store, &log_name(run), log, &messages, until).await?;
            if entries == 0 {
                continue;
            }
            let children = children(store, run, 1)?;
            open.extend(children.into_iter().filter(|child| known.insert(*child)));
        }
        Ok(had_all)
    }

    /// Reads the new messages, and moves all possible ones into the local inboxes.
    async fn receive(&self, received: &mut ReceivedMessages) {
        let DriveOrder {
            log,
            machine,
            store,
            root,
            ..
        } = &self.driving;
        let mut messages = std::mem::take(&mut received.kept);
        if messages.len() < KEPT {
            let until = machine.now() + REQUEST;
            // What cannot be read now is read later.
            let read = read_messages(log, *root, received.after, until).await;
            for (position, message) in read.unwrap_or_default() {
                received.after = position;
                messages.push(message);
            }
        }
        for message in messages {
            let family = root_of(store, message.run);
            if family.is_root() && family != *root {
                // It is said to this run, so it is for no other one that this machine has.
                continue;
            }
            let inbox = store.inbox(&log_name(message.run));
            match inbox.and_then(|inbox| inbox.send(&message.id, &message.body)) {
                // No inbox takes such a message, now or later.
                Ok(()) | Err(JournalError::BadMessageId { .. } | JournalError::TooLarge { .. }) => {
                }
                // The run is not there yet, or has too many messages. Others need not wait for that.
                Err(_) => received.kept.push(message),
            }
        }
    }

    async fn keep_receiving(&self, mut received: ReceivedMessages) {
        let mut news = self.driving.log.news(&inbox_subject(self.driving.root));
        loop {
            tokio::select! {
                () = heard(&mut news) => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
            self.receive(&mut received).await;
        }
    }

    async fn claim(
        &self,
        run: RunId,
        until: MachineTime,
    ) -> Result<(Hold, Vec<EntryLines>), ClaimError> {
        let DriveOrder {
            log,
            machine,
            root,
            claimed,
            wait,
            ..
        } = &self.driving;
        let is_root = run == *root;
        // Who holds the root has proven that the worker before it is dead.
        let wait = if is_root { *wait } else { Wait::Dead };
        let unbound: Arc<dyn Machine> = Arc::new(Unbound(Arc::clone(machine)));
        let mut claimed = claimed.clone();
        if !is_root {
            // The root's lease is the lease of all: a child may be silent for as long as it likes.
            claimed.lease_ms = NO_LEASE_MS;
        }
        let claimant = Claimant {
            log,
            machine: if is_root { machine } else { &unbound },
            writer: WriterId(gyrus_contract::time_ordered_uuid().as_u128()),
            claimed,
        };
        let mut reading = RunReading::new(run_subject(*root, run));
        let mut messages = Vec::new();
        let mut blobs = Vec::new();
        let mut sink = |message: &RunMessage| {
            gather(message, &mut blobs, &mut messages);
            Ok(())
        };
        let hold = claim(claimant, &mut reading, &mut sink, wait, until).await?;
        Ok((hold, messages))
    }

    /// Starts the keeper of a run's log; one without a hold takes it first. Returns it.
    fn keep(self: &Arc<Self>, run: RunId, held: Option<(Hold, u64)>) -> mpsc::UnboundedSender<Job> {
        let (sender, jobs) = mpsc::unbounded_channel();
        self.keepers.lock().insert(run, sender.clone());
        let replicas = Arc::clone(self);
        self.runtime.spawn(async move {
            replicas.keeper(run, held, jobs).await;
        });
        sender
    }

    async fn keeper(
        &self,
        run: RunId,
        held: Option<(Hold, u64)>,
        mut jobs: mpsc::UnboundedReceiver<Job>,
    ) {
        let held = match held {
            Some(held) => Ok(held),
            None => {
                let lease = LeaseTimes::new(Duration::from_millis(self.driving.claimed.lease_ms));
                let until = self.driving.machine.now() + lease.lease();
                let claimed = self.claim(run, until).await;
                claimed.map(|(hold, messages)| (hold, messages.last().map_or(0, |last| last.last)))
            }
        };
        let lost = match held {
            Ok((hold, entries)) => self.work(run, hold, entries, &mut jobs).await,
            Err(error) => Some(HoldError::Impossible {
                why: error.to_string(),
            }),
        };
        let Some(error) = lost else {
            return;
        };
        self.lose.send_modify(|lost| {
            lost.get_or_insert(error.clone());
        });
        while let Some(job) = jobs.recv().await {
            match job {
                Job::Store(_, done) => done.failed(error.to_string()),
                Job::Has(answer) => drop(answer.send(Err(error.to_string()))),
                Job::Release(answer) => drop(answer.send(Err(error.clone()))),
            }
        }
    }

    /// Performs the jobs of a log, and shows that the worker lives. Returns why it is lost, if it
    /// is.
    async fn work(
        &self,
        run: RunId,
        mut hold: Hold,
        mut entries: u64,
        jobs: &mut mpsc::UnboundedReceiver<Job>,
    ) -> Option<HoldError> {
        // The root's lease is the lease of all.
        let renews = run == self.driving.root;
        loop {
            let job = tokio::select! {
                job = jobs.recv() => job?,
                () = self.driving.machine.sleep_until(hold.renewal_due()), if renews => {
                    if let Err(error) = hold.renew().await {
                        return Some(error);
                    }
                    continue;
                }
            };
            match job {
                Job::Has(answer) => drop(answer.send(Ok(entries))),
                Job::Release(answer) => {
                    drop(answer.send(hold.release().await.map(drop)));
                    return None;
                }
                Job::Store(batch, done) => match self.append(&mut hold, &batch, renews).await {
                    Ok(()) => {
                        entries = batch.last_seq;
                        done.stored();
                    }
                    Err(error) => {
                        done.failed(error.to_string());
                        return Some(error);
                    }
                },
            }
        }
    }

    async fn append(
        &self,
        hold: &mut Hold,
        batch: &ReplicaBatch,
        renews: bool,
    ) -> Result<(), HoldError> {
        let mut packed = EntryLines {
            first: batch.first_seq,
            last: batch.last_seq,
            previous: batch.previous,
            head: batch.head,
            lines: Arc::default(),
            blobs: Vec::new(),
            large_blobs: Vec::new(),
            lines_in: None,
        };
        let mut carried = 0;
        for id in &batch.blobs {
            let bytes = batch.blob(id).map_err(|error| HoldError::Impossible {
                why: error.to_string(),
            })?;
            if bytes.len() > SMALL_BLOB {
                self.store_beside(hold, &bytes, renews).await?;
                packed.large_blobs.push(*id);
                continue;
            }
            if carried + bytes.len() > CARRIED {
                hold.put_blobs(std::mem::take(&mut packed.blobs)).await?;
                carried = 0;
            }
            carried += bytes.len();
            packed.blobs.push(bytes.into());
        }
        if batch.lines.len() <= CARRIED {
            packed.lines = batch.lines.as_slice().into();
        } else {
            self.store_beside(hold, &batch.lines, renews).await?;
            packed.lines_in = Some(BlobId::of(&batch.lines));
        }
        hold.append(packed).await?;
        Ok(())
    }

    /// Stores a large blob, and shows meanwhile that this worker lives.
    async fn store_beside(
        &self,
        hold: &mut Hold,
        bytes: &[u8],
        renews: bool,
    ) -> Result<(), HoldError> {
        let storing = self.store_blob(bytes);
        tokio::pin!(storing);
        loop {
            tokio::select! {
                stored = &mut storing => return stored,
                () = self.driving.machine.sleep_until(hold.renewal_due()), if renews => {
                    hold.renew().await?;
                }
            }
        }
    }

    async fn store_blob(&self, bytes: &[u8]) -> Result<(), HoldError> {
        let id = BlobId::of(bytes);
        let is_known = |stored: &Mutex<HashSet<BlobId>>| {
            let stored = stored.lock();
            stored.contains(&id)
        };
        if is_known(&self.stored) {
            return Ok(());
        }
        let DriveOrder { log, machine, .. } = &self.driving;
        // The renewals decide how long the log may be silent; this only ends an attempt.
        let until = machine.now() + Duration::from_secs(60);
        let stored = store_blob(log, machine, bytes, until).await;
        stored.map_err(|error| match error {
            BlobError::Unreachable(unreachable) => HoldError::Late {
                why: unreachable.why,
            },
            error => HoldError::Impossible {
                why: error.to_string(),
            },
        })?;
        let mut stored = self.stored.lock();
        stored.insert(id);
        Ok(())
    }
}

impl Replicas for FleetReplicas {
    fn replica_of(&self, log: &LogName) -> Option<Arc<dyn Replica>> {
        if log.kind() != RUNS {
            return None;
        }
        let run = log.id().parse().ok()?;
        let known = self.keepers.lock().get(&run).cloned();
        let keeper = match known {
            Some(keeper) => keeper,
            None => {
                let itself = self.itself.upgrade();
                itself.expect("whoever calls this has it").keep(run, None)
            }
        };
        Some(Arc::new(LogReplica { keeper }))
    }
}

#[derive(Debug)]
struct LogReplica {
    keeper: mpsc::UnboundedSender<Job>,
}

impl Replica for LogReplica {
    fn store(&self, batch: ReplicaBatch, done: ReplicaDone) {
        // A keeper that is gone drops the answer, which is a failure.
        let _ = self.keeper.send(Job::Store(batch, done));
    }

    fn has(&self) -> Result<u64, String> {
        let (answer, answered) = sync_channel(1);
        let gone = |_| "the keeper of the log is gone".to_owned();
        self.keeper.send(Job::Has(answer)).map_err(|_| gone(()))?;
        answered.recv().map_err(|_| gone(()))?
    }
}

/// A machine whose process lives on regardless of this claim's lease.
struct Unbound(Arc<dyn Machine>);

#[async_trait]
impl Machine for Unbound {
    fn now(&self) -> MachineTime {
        self.0.now()
    }

    async fn sleep_until(&self, time: MachineTime) {
        self.0.sleep_until(time).await;
    }

    fn live_until(&self, _: MachineTime) -> Result<(), String> {
        Ok(())
    }
}
