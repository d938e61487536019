//! The position of each run: the number of its last entry and its state. Followers of the server are
//! told these positions, and fetch what they show; so a slow one costs one record a run.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use gyrus_contract::RunId;
use gyrus_journal::{LogReader, Store, os::watch};
use gyrus_kernel::{RUNS, Register, RunState, StandingChange, approvals, log_name};
use gyrus_runtime::blocking;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::{
    sync::{Semaphore, watch as channel},
    task::AbortHandle,
};

/// Maximum number of runs that are followed at once: the newest of those that are not over.
const MAX_FOLLOWED: usize = 2_000;

/// Maximum number of runs that are read at once. Each takes a thread meanwhile.
const LOOKS_AT_ONCE: usize = 4;

/// Minimum time between two listings of all runs: many may begin in one moment.
const LIST_EVERY: Duration = Duration::from_millis(50);

/// The state of a run, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunWord {
    /// A process drives it.
    Running,
    /// It waits for a person.
    Waiting,
    /// It can be resumed.
    Parked,
    /// Its process died; it can be resumed.
    CutOff,
    /// It came to its end.
    Over,
}

/// The position of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunHead {
    /// The run.
    #[schemars(with = "String")]
    pub run: RunId,
    /// The number of its last entry on disk.
    pub seq: u64,
    /// Its state.
    pub state: RunWord,
    /// Number of questions that wait for an answer.
    pub questions: usize,
}

/// The positions of all unfinished runs, and of those that ended while this server lived.
#[derive(Clone)]
pub struct Heads {
    shared: Arc<HeadsInner>,
    _following: Arc<AbortTask>,
}

struct AbortTask(AbortHandle);

impl Drop for AbortTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The positions, each with the version of its last change.
#[derive(Default)]
struct HeadTable {
    by_run: BTreeMap<RunId, (u64, RunHead)>,
    by_version: BTreeMap<u64, RunId>,
}

impl HeadTable {
    fn set(&mut self, version: u64, head: RunHead) {
        let run = head.run;
        if let Some((before, _)) = self.by_run.insert(run, (version, head)) {
            self.by_version.remove(&before);
        }
        self.by_version.insert(version, run);
    }

    /// Removes runs that no longer exist.
    fn retain(&mut self, is_there: impl Fn(&RunId) -> bool) {
        self.by_run.retain(|run, _| is_there(run));
        self.by_version.retain(|_, run| is_there(run));
    }
}

struct HeadsInner {
    store: Store,
    heads: Mutex<HeadTable>,
    version: channel::Sender<u64>,
    looks: Semaphore,
}

impl Heads {
    /// Begins to follow the runs found in a store.
    pub fn follow(store: &Store, found: FoundRuns) -> Self {
        let shared = Arc::new(HeadsInner {
            store: store.clone(),
            heads: Mutex::default(),
            version: channel::Sender::new(0),
            looks: Semaphore::new(LOOKS_AT_ONCE),
        });
        let (mut known, mut waiting) = (found.roots, Vec::new());
        for (head, _) in found.unfinished {
            known.insert(head.run);
            waiting.push(head.run);
            shared.set(head);
        }
        let following = tokio::spawn(follow_all(Arc::clone(&shared), known, waiting));
        Self {
            shared,
            _following: Arc::new(AbortTask(following.abort_handle())),
        }
    }

    /// Returns a receiver of the version, which grows with every change.
    pub fn changes(&self) -> channel::Receiver<u64> {
        self.shared.version.subscribe()
    }

    pub(crate) fn since(&self, version: u64) -> Vec<RunHead> {
        let heads = self.shared.heads.lock();
        let changed = heads.by_version.range(version.saturating_add(1)..);
        let changed = changed.filter_map(|(_, run)| heads.by_run.get(run));
        changed.map(|(_, head)| head.clone()).collect()
    }

    /// Returns the position of a run, if it is followed.
    pub fn of(&self, run: RunId) -> Option<RunHead> {
        self.shared
            .heads
            .lock()
            .by_run
            .get(&run)
            .map(|(_, head)| head.clone())
    }

    /// Sends the position of a run again, because something outside its journal changed.
    pub(crate) fn tell_again(&self, run: RunId) {
        let mut heads = self.shared.heads.lock();
        if let Some(head) = heads.by_run.get(&run).map(|(_, head)| head.clone()) {
            self.shared.version.send_modify(|version| {
                *version += 1;
                heads.set(*version, head);
            });
        }
    }

    /// Returns the unfinished runs.
    pub fn live(&self) -> Vec<RunId> {
        let heads = self.shared.heads.lock();
        let live = heads
            .by_run
            .values()
            .filter(|(_, head)| head.state != RunWord::Over);
        live.map(|(_, head)| head.run).collect()
    }

    pub(crate) fn questions(&self) -> usize {
        let heads = self.shared.heads.lock();
        heads.by_run.values().map(|(_, head)| head.questions).sum()
    }
}

impl HeadsInner {
    /// Whether a process drove a run at the last check.
    fn is_at_work(&self, run: RunId) -> bool {
        let heads = self.heads.lock();
        let known = heads.by_run.get(&run);
        known.is_some_and(|(_, head)| head.state == RunWord::Running)
    }

    fn set(&self, head: RunHead) {
        let mut heads = self.heads.lock();
        if heads
            .by_run
            .get(&head.run)
            .is_some_and(|(_, known)| *known == head)
        {
            return;
        }
        self.version.send_modify(|version| {
            *version += 1;
            heads.set(*version, head);
        });
    }
}

/// Follows the runs that wait for it, and every other one as it appears that is not known.
async fn follow_all(shared: Arc<HeadsInner>, mut known: BTreeSet<RunId>, mut waiting: Vec<RunId>) {
    let mut following = tokio::task::JoinSet::new();
    let folder = shared.store.root().join(RUNS);
    loop {
        // Before the look, so that what comes after it is not missed.
        let watch = watch::watch(&folder).or_else(|_| watch::watch(shared.store.root()));
        let Ok(mut watch) = watch else { return };
        let store = shared.store.clone();
        let new;
        (new, known) = blocking(move || (began_since(&store, &known), known)).await;
        known.extend(&new);
        waiting.extend(new);
        let is_there = |run: &RunId| shared.store.exists(&log_name(*run));
        shared.heads.lock().retain(is_there);
        while following.try_join_next().is_some() {}
        // One that finds no place now gets one as soon as something begins.
        while following.len() < MAX_FOLLOWED
            && let Some(run) = waiting.pop()
        {
            following.spawn(follow_one(Arc::clone(&shared), run));
        }
        let listed_at = tokio::time::Instant::now();
        watch.changed().await;
        tokio::time::sleep_until(listed_at + LIST_EVERY).await;
    }
}

fn began_since(store: &Store, known: &BTreeSet<RunId>) -> Vec<RunId> {
    // The folder appears with the first run.
    let register = Register::read(store).unwrap_or_default();
    let roots = register.newest_first().filter(|run| run.is_root());
    let mut new: Vec<RunId> = roots.take_while(|run| !known.contains(run)).collect();
    new.reverse();
    new
}

async fn follow_one(shared: Arc<HeadsInner>, run: RunId) {
    let Ok(reader) = shared.store.reader(&log_name(run)) else {
        return;
    };
    let Ok(end) = look(&shared, run, &reader).await else {
        return;
    };
    let Some(end) = end else { return };
    let Ok(mut follower) = reader.follow(end + 1) else {
        return;
    };
    loop {
        // What was appended in between comes from the follower.
        let entry = tokio::select! {
            entry = follower.next() => entry,
            () = process_ended(&shared, run) => match look(&shared, run, &reader).await {
                Ok(Some(_)) => continue,
                Ok(None) | Err(_) => return,
            },
        };
        let Ok(entry) = entry else {
            // What cannot be followed is told as it is now.
            let _ = look(&shared, run, &reader).await;
            return;
        };
        let known = shared
            .heads
            .lock()
            .by_run
            .get(&run)
            .map(|(_, head)| head.clone());
        let at = |state, questions| RunHead {
            run,
            seq: entry.seq,
            state,
            questions,
        };
        let parsed = gyrus_kernel::parse(&entry).ok();
        let change = parsed.and_then(|parsed| StandingChange::of(run, &parsed));
        match (change, known) {
            (Some(StandingChange::Ended(_)), _) => return shared.set(at(RunWord::Over, 0)),
            (None, Some(known)) => {
                shared.set(at(known.state, known.questions));
                continue;
            }
            (_, _) => {}
        }
        match look(&shared, run, &reader).await {
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return,
        }
    }
}

/// Waits until the process that drives a run has ended; for ever if there is none, and none was
/// when the run was looked at last.
async fn process_ended(shared: &HeadsInner, run: RunId) {
    match shared.store.holder(&log_name(run)) {
        Ok(Some(holder)) if holder.process.ended().await.is_ok() => {}
        // It has let the run go since that look.
        Ok(None) if shared.is_at_work(run) => {}
        _ => std::future::pending().await,
    }
}

/// Reads the present state of a run; returns the number of its last entry, or `None` if it is over.
async fn look(
    shared: &Arc<HeadsInner>,
    run: RunId,
    reader: &LogReader,
) -> Result<Option<u64>, gyrus_journal::Error> {
    let _place = shared.looks.acquire().await;
    let (looking, reader) = (Arc::clone(shared), reader.clone());
    let (head, _) = blocking(move || head(&looking.store, run, &reader)).await?;
    let (seq, is_over) = (head.seq, head.state == RunWord::Over);
    shared.set(head);
    Ok((!is_over).then_some(seq))
}

fn head(
    store: &Store,
    run: RunId,
    reader: &LogReader,
) -> Result<(RunHead, RunState), gyrus_journal::Error> {
    let state = RunState::of(store, run)?;
    let open = match state {
        RunState::Over(_) | RunState::NeverBegan | RunState::Record(_) => Vec::new(),
        _ => approvals::open(store, run).unwrap_or_default(),
    };
    let unanswered = open
        .iter()
        .filter(|open| matches!(approvals::void(store, &open.card_id()), Ok(None)));
    let head = RunHead {
        run,
        seq: reader.end()?,
        questions: unanswered.count(),
        state: word(&state, open.len()),
    };
    Ok((head, state))
}

/// Number of the newest runs by which it is known what began behind them.
const KNOWN: usize = 10_000;

/// The runs of a store that people started, found when the server starts.
#[derive(Debug, Default)]
pub struct FoundRuns {
    /// The newest.
    roots: BTreeSet<RunId>,
    unfinished: Vec<(RunHead, RunState)>,
}

impl FoundRuns {
    /// Reads all runs of a store. One that cannot be read counts as over.
    ///
    /// # Errors
    /// The store cannot be listed.
    pub fn look(store: &Store) -> Result<Self, gyrus_journal::Error> {
        let mut found = Self::default();
        let register = Register::read(store)?;
        found.roots = register
            .newest_first()
            .filter(|run| run.is_root())
            .take(KNOWN)
            .collect();
        for run in register.unfinished(store) {
            if !run.is_root() {
                continue;
            }
            let head = store
                .reader(&log_name(run))
                .and_then(|reader| head(store, run, &reader));
            if let Ok((head, state)) = head
                && head.state != RunWord::Over
            {
                found.unfinished.push((head, state));
            }
        }
        Ok(found)
    }

    /// Returns the unfinished runs, each with its state.
    pub fn unfinished(&self) -> impl Iterator<Item = (RunId, &RunState)> {
        let unfinished = self.unfinished.iter();
        unfinished.map(|(head, state)| (head.run, state))
    }
}

pub(crate) fn word(state: &RunState, questions: usize) -> RunWord {
    match state {
        RunState::Over(_) | RunState::NeverBegan | RunState::Record(_) => RunWord::Over,
        RunState::Running(_) | RunState::Parked(_) if questions > 0 => RunWord::Waiting,
        RunState::Running(_) => RunWord::Running,
        RunState::Parked(_) => RunWord::Parked,
        RunState::CutOff => RunWord::CutOff,
    }
}
