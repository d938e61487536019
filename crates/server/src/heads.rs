//! The position of each run: the number of its last entry and its state. Followers of the server are
//! told these positions, and fetch what they show; so a slow one costs one record a run.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gyrus_contract::RunId;
use gyrus_journal::{Reader, Store, os::watch};
use gyrus_kernel::{Entry, RUNS, RunState, approvals, log_name};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::{sync::watch as channel, task::AbortHandle};

/// Maximum number of runs that are followed at once: the newest that are not over.
const MAX_FOLLOWED: usize = 2_000;

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
pub struct Head {
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

/// The positions of all runs that are not over, and of those that ended while this server lived.
#[derive(Clone)]
pub struct Heads {
    shared: Arc<Shared>,
    _following: Arc<Abort>,
}

struct Abort(AbortHandle);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Shared {
    store: Store,
    /// With the version at which each changed last.
    heads: Mutex<BTreeMap<RunId, (u64, Head)>>,
    version: channel::Sender<u64>,
}

impl Heads {
    /// Begins to follow the runs of a store.
    pub(crate) fn follow(store: &Store) -> Self {
        let shared = Arc::new(Shared {
            store: store.clone(),
            heads: Mutex::default(),
            version: channel::Sender::new(0),
        });
        let following = tokio::spawn(follow_all(Arc::clone(&shared)));
        Self {
            shared,
            _following: Arc::new(Abort(following.abort_handle())),
        }
    }

    /// Returns a receiver of the version, which grows with every change.
    pub(crate) fn changes(&self) -> channel::Receiver<u64> {
        self.shared.version.subscribe()
    }

    /// Returns the positions that changed after a version.
    pub(crate) fn since(&self, version: u64) -> Vec<Head> {
        let heads = self.shared.heads();
        let changed = heads.values().filter(|(at, _)| *at > version);
        changed.map(|(_, head)| head.clone()).collect()
    }

    /// Returns the position of a run, if it is followed.
    pub(crate) fn of(&self, run: RunId) -> Option<Head> {
        self.shared.heads().get(&run).map(|(_, head)| head.clone())
    }

    /// Returns the runs that are not over.
    pub(crate) fn live(&self) -> Vec<RunId> {
        let heads = self.shared.heads();
        let live = heads
            .values()
            .filter(|(_, head)| head.state != RunWord::Over);
        live.map(|(_, head)| head.run).collect()
    }

    /// Returns the number of questions that wait for a person.
    pub(crate) fn questions(&self) -> usize {
        let heads = self.shared.heads();
        heads.values().map(|(_, head)| head.questions).sum()
    }
}

impl Shared {
    fn heads(&self) -> MutexGuard<'_, BTreeMap<RunId, (u64, Head)>> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, head: Head) {
        let mut heads = self.heads();
        if heads
            .get(&head.run)
            .is_some_and(|(_, known)| *known == head)
        {
            return;
        }
        self.version.send_modify(|version| {
            *version += 1;
            heads.insert(head.run, (*version, head));
        });
    }
}

/// Follows every run as it appears.
async fn follow_all(shared: Arc<Shared>) {
    let mut known: BTreeSet<RunId> = BTreeSet::new();
    let mut following = tokio::task::JoinSet::new();
    // The folder appears with the first run.
    let folder = shared.store.root().join(RUNS);
    loop {
        // Before the look, so that what comes after it is not missed.
        let watch = watch::watch(&folder).or_else(|_| watch::watch(shared.store.root()));
        let Ok(mut watch) = watch else { return };
        let listing = Arc::clone(&shared);
        let listed = tokio::task::spawn_blocking(move || gyrus_kernel::runs(&listing.store)).await;
        let runs = listed.ok().and_then(Result::ok).unwrap_or_default();
        let roots: BTreeSet<RunId> = runs.into_iter().filter(|run| run.is_root()).collect();
        {
            let mut heads = shared.heads();
            heads.retain(|run, _| roots.contains(run));
        }
        known.retain(|run| roots.contains(run));
        for run in roots.iter().rev().take(MAX_FOLLOWED) {
            if known.insert(*run) {
                following.spawn(follow_one(Arc::clone(&shared), *run));
            }
        }
        while following.try_join_next().is_some() {}
        watch.changed().await;
    }
}

/// Follows a run until it is over.
async fn follow_one(shared: Arc<Shared>, run: RunId) {
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
        let Ok(entry) = entry else { return };
        let known = shared.heads().get(&run).map(|(_, head)| head.clone());
        let at = |state, questions| Head {
            run,
            seq: entry.seq,
            state,
            questions,
        };
        match gyrus_kernel::parse(&entry) {
            Ok(Entry::RunEnded(_)) => return shared.set(at(RunWord::Over, 0)),
            Ok(
                Entry::RunParked(_)
                | Entry::RunResumed(_)
                | Entry::ApprovalAsked(_)
                | Entry::ApprovalAnswered(_)
                | Entry::ToolResulted(_)
                | Entry::ChildStarted(_)
                | Entry::ChildEnded(_),
            ) => {}
            _ => {
                if let Some(Head {
                    state, questions, ..
                }) = known
                {
                    shared.set(at(state, questions));
                    continue;
                }
            }
        }
        match look(&shared, run, &reader).await {
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return,
        }
    }
}

/// Waits until the process that drives a run has ended; for ever if there is none.
async fn process_ended(shared: &Shared, run: RunId) {
    match shared.store.holder(&log_name(run)) {
        Ok(Some(holder)) if holder.process.ended().await.is_ok() => {}
        _ => std::future::pending().await,
    }
}

/// Looks at a run as it is; returns the number of its last entry, or `None` if it is over.
async fn look(
    shared: &Arc<Shared>,
    run: RunId,
    reader: &Reader,
) -> Result<Option<u64>, gyrus_journal::Error> {
    let (looking, reader) = (Arc::clone(shared), reader.clone());
    let looked = tokio::task::spawn_blocking(move || {
        let state = RunState::of(&looking.store, run)?;
        let open = match state {
            RunState::Over(_) | RunState::NeverBegan => Vec::new(),
            _ => approvals::open(&looking.store, run).unwrap_or_default(),
        };
        let unanswered = open.iter().filter(|open| {
            let answer = approvals::waiting_answer(&looking.store, open);
            !open.is_over() && matches!(answer, Ok(None))
        });
        Ok(Head {
            run,
            seq: reader.end()?,
            questions: unanswered.count(),
            state: word(&state, open.len()),
        })
    });
    let head: Result<Head, gyrus_journal::Error> = match looked.await {
        Ok(head) => head,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    };
    let head = head?;
    let (seq, is_over) = (head.seq, head.state == RunWord::Over);
    shared.set(head);
    Ok((!is_over).then_some(seq))
}

/// Returns the state of a run in a word.
pub(crate) fn word(state: &RunState, questions: usize) -> RunWord {
    match state {
        RunState::Over(_) | RunState::NeverBegan => RunWord::Over,
        RunState::Running(_) | RunState::Parked(_) if questions > 0 => RunWord::Waiting,
        RunState::Running(_) => RunWord::Running,
        RunState::Parked(_) => RunWord::Parked,
        RunState::CutOff => RunWord::CutOff,
    }
}
