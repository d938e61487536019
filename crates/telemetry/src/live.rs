//! Exports runs while this process drives them.
//!
//! The journal is the queue: an exporter follows it from the last entry that was delivered, holds
//! one batch in memory, and reads on when that is delivered. A collector that is slow, or away,
//! therefore costs a run nothing, and what it missed is sent when it is back, by this process or by
//! the next that drives the run.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::poll_fn,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use gyrus_contract::RunId;
use gyrus_journal::{LogReader, Store};
use gyrus_kernel::log_name;
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    TelemetrySettings,
    batch::{Backoff, TelemetryBatch},
    collector::{BatchRequests, Collector, CollectorError},
    cursor::{self, Cursor},
    lineage,
    metrics::Temporality,
    projection::TelemetryProjection,
};

/// Time after which an incomplete batch is sent.
const DELAY: Duration = Duration::from_secs(1);

/// Time limit at the end of a process for delivering the rest.
const FLUSH: Duration = Duration::from_secs(2);

/// Time limit of the last delivery if the collector failed or did not answer before.
const FLUSH_FAILING: Duration = Duration::from_millis(500);

/// Number of entries after which other tasks get a turn.
const TURN: u64 = 64;

/// The export of a run that this process drives, with its child runs.
pub struct LiveExport {
    shared: Arc<LiveInner>,
    finishing: watch::Sender<bool>,
}

struct LiveInner {
    store: Store,
    settings: TelemetrySettings,
    collector: Collector,
    cursors: PathBuf,
    /// The run at the top of the exported ones, and its topmost parent.
    run: RunId,
    trace: RunId,
    finishing: watch::Receiver<bool>,
    tasks: Mutex<JoinSet<()>>,
    told: Mutex<BTreeSet<String>>,
    /// Reason why the last request was not delivered, if it was not.
    failing: Mutex<Option<String>>,
    /// Time at which the request in progress was sent.
    sending: Mutex<Option<Instant>>,
    /// The last delivered entry of each run.
    delivered: Mutex<BTreeMap<RunId, u64>>,
}

impl LiveExport {
    /// Starts exporting `run` from where the previous process stopped. `cursors` is a folder of its
    /// own.
    ///
    /// # Errors
    /// No client can be made for the collector.
    pub fn start(
        store: Store,
        run: RunId,
        settings: TelemetrySettings,
        cursors: PathBuf,
    ) -> Result<Self, CollectorError> {
        let (finish, finishing) = watch::channel(false);
        cursor::sweep(&cursors, &store);
        let shared = Arc::new(LiveInner {
            collector: Collector::new(&settings)?,
            trace: lineage::topmost(&store, run),
            run,
            store,
            settings,
            cursors,
            finishing,
            tasks: Mutex::default(),
            told: Mutex::default(),
            failing: Mutex::default(),
            sending: Mutex::default(),
            delivered: Mutex::default(),
        });
        shared.follow(run);
        Ok(Self {
            shared,
            finishing: finish,
        })
    }

    /// Delivers everything on disk by now in a short time, and returns messages for the person.
    pub async fn finish(self) -> Vec<String> {
        let shared = &self.shared;
        let silent = shared
            .sending
            .lock()
            .is_some_and(|since| since.elapsed() > FLUSH_FAILING);
        let failing = silent || shared.failing.lock().is_some();
        let _ = self.finishing.send(true);
        let ended = poll_fn(|context| shared.tasks.lock().poll_join_next(context));
        let all_ended = async {
            let mut ended = ended;
            while (&mut ended).await.is_some() {}
        };
        let limit = if failing { FLUSH_FAILING } else { FLUSH };
        let in_time = timeout(limit, all_ended).await.is_ok();
        let mut told: Vec<String> = shared.told.lock().iter().cloned().collect();
        let end = shared.store.reader(&log_name(shared.run));
        let end = end.and_then(|reader| reader.end()).unwrap_or(0);
        let delivered = shared.delivered.lock().get(&shared.run).copied();
        let missing = end.saturating_sub(delivered.unwrap_or(0));
        if missing > 0 || !in_time {
            let why = shared.failing.lock().clone();
            let why = why.unwrap_or_else(|| "the collector did not answer in time".to_owned());
            let run = shared.run.short();
            told.push(format!(
                "{missing} of {end} entries were not delivered: {why}; to send them: gyrus telemetry {run}"
            ));
        }
        told
    }
}

impl Drop for LiveExport {
    fn drop(&mut self) {
        self.shared.tasks.lock().abort_all();
    }
}

impl LiveInner {
    fn follow(self: &Arc<Self>, run: RunId) {
        let shared = self.clone();
        self.tasks.lock().spawn(async move {
            if let Err(error) = shared.export(run).await {
                shared.tell(format!("run {} is not exported: {error}", run.short()));
            }
        });
    }

    fn cursor(&self, run: RunId) -> Cursor {
        Cursor::new(&self.cursors, run, &self.settings.destination())
    }

    fn tell(&self, what: String) {
        self.told.lock().insert(what);
    }

    /// Follows a run and delivers the telemetry of its entries, until the export is to finish.
    async fn export(self: &Arc<Self>, run: RunId) -> Result<(), gyrus_journal::Error> {
        let (mut finishing, name) = (self.finishing.clone(), log_name(run));
        tokio::select! {
            created = self.store.created(&name) => created?,
            // The parent was stopped before it could start the child.
            () = finished(&mut finishing), if !self.store.exists(&name) => return Ok(()),
        }
        let reader = self.store.reader(&name)?;
        let mut follower = reader.follow(1)?;
        let mut export = RunExport::new(self.clone(), run);
        // The number of the entry after which this is done.
        let mut until = None;
        loop {
            let is_done = export.is_over || until.is_some_and(|until| export.last >= until);
            if is_done || export.batch.is_full() {
                let delivered = export.flush().await;
                if is_done || !delivered {
                    return Ok(());
                }
            }
            tokio::select! {
                biased;
                () = finished(&mut finishing), if until.is_none() => until = Some(reader.end()?),
                () = sleep_until(export.due), if !export.batch.is_empty() => {
                    if !export.flush().await {
                        return Ok(());
                    }
                }
                entry = follower.next() => export.take(&entry?, &reader),
            }
            if export.last.is_multiple_of(TURN) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Delivers requests, retrying until each is accepted or rejected. Once the export is to
    /// finish, each is tried once. Returns whether none is left.
    async fn deliver(&self, mut requests: BatchRequests) -> bool {
        let mut finishing = self.finishing.clone();
        let mut backoff = Backoff::default();
        loop {
            let is_last = *finishing.borrow();
            *self.sending.lock() = Some(Instant::now());
            let sent = self.collector.send(&mut requests).await;
            *self.sending.lock() = None;
            for told in sent.told {
                self.tell(told);
            }
            *self.failing.lock() = sent.again;
            if requests.is_empty() {
                return true;
            }
            if is_last {
                return false;
            }
            tokio::select! {
                () = sleep(backoff.wait(sent.after)) => {}
                _ = finished(&mut finishing) => {}
            }
        }
    }
}

struct RunExport {
    shared: Arc<LiveInner>,
    run: RunId,
    cursor: Cursor,
    projection: TelemetryProjection,
    batch: TelemetryBatch,
    /// The time at which the batch is sent although it is not full.
    due: Instant,
    /// The entry until which an earlier process delivered.
    from: u64,
    /// The number of the last entry that was read.
    last: u64,
    /// Whether the last entry is also the last of the run.
    is_over: bool,
}

impl RunExport {
    fn new(shared: Arc<LiveInner>, run: RunId) -> Self {
        let cursor = shared.cursor(run);
        let from = cursor.read();
        shared.delivered.lock().insert(run, from);
        Self {
            run,
            cursor,
            projection: TelemetryProjection::new(run, shared.trace, shared.settings.options),
            batch: TelemetryBatch::default(),
            due: Instant::now(),
            from,
            last: 0,
            is_over: false,
            shared,
        }
    }

    fn take(&mut self, entry: &gyrus_journal::LogEntry, reader: &LogReader) {
        self.last = entry.seq;
        let derived = self.projection.take(entry, reader);
        self.is_over = derived.is_last;
        if let Some(child) = derived.child {
            self.shared.follow(child);
        }
        if self.last > self.from {
            if self.batch.is_empty() {
                self.due = Instant::now() + DELAY;
            }
            self.batch.add(derived);
        } else if self.last == self.from && self.shared.settings.temporality == Temporality::Delta {
            // They were delivered.
            self.projection.metrics(Temporality::Delta);
        }
    }

    /// Delivers the batch, and records the position on success. Returns whether it was delivered.
    async fn flush(&mut self) -> bool {
        let shared = &self.shared;
        if self.batch.is_empty() {
            return true;
        }
        let temporality = shared.settings.temporality;
        let projection = &mut self.projection;
        let (requests, _) =
            self.batch
                .requests(self.run, &shared.collector, projection, temporality);
        if !shared.deliver(requests).await {
            return false;
        }
        shared.delivered.lock().insert(self.run, self.last);
        if self.is_over && self.run == shared.run {
            // Nobody goes on from here, nor from where its children are.
            for run in shared.delivered.lock().keys() {
                shared.cursor(*run).remove();
            }
        } else if let Err(error) = self.cursor.write(self.last) {
            shared.tell(format!(
                "the position of the export cannot be stored: {error}"
            ));
        }
        true
    }
}

async fn finished(finishing: &mut watch::Receiver<bool>) {
    // A sender that is gone finishes it too.
    let _ = finishing.wait_for(|finish| *finish).await;
}
