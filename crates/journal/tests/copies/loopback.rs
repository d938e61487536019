//! A replica in memory, which answers as a test wants.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    thread,
};

use gyrus_contract::{BlobId, Digest};
use gyrus_journal::{LogName, Replica, ReplicaBatch, ReplicaDone, Replicas};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::world::ends;

/// The way in which a replica treats batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Stores them and says so before `store` returns.
    AtOnce,
    /// Stores them and says so later, from another thread.
    Later,
    /// Keeps them until the test releases them.
    Held,
    Refused,
    /// Drops the answer.
    Dropped,
    Panics,
    /// Stores them and reports a failure: the answer was lost.
    StoredButFailed,
}

#[derive(Debug)]
pub(crate) struct Loopback {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    answer: Answer,
    lines: Vec<u8>,
    seq: u64,
    head: Option<Digest>,
    /// The blobs that came with each batch.
    blobs: Vec<Vec<BlobId>>,
    contents: BTreeMap<BlobId, Vec<u8>>,
    held: VecDeque<(ReplicaBatch, ReplicaDone)>,
    /// Whether a batch is not answered.
    busy: bool,
}

impl Loopback {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                answer: Answer::AtOnce,
                lines: Vec::new(),
                seq: 0,
                head: None,
                blobs: Vec::new(),
                contents: BTreeMap::new(),
                held: VecDeque::new(),
                busy: false,
            }),
            changed: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn answer(&self, answer: Answer) {
        self.state().answer = answer;
    }

    pub(crate) fn seq(&self) -> u64 {
        self.state().seq
    }

    pub(crate) fn lines(&self) -> Vec<u8> {
        self.state().lines.clone()
    }

    pub(crate) fn blobs(&self) -> Vec<Vec<BlobId>> {
        self.state().blobs.clone()
    }

    pub(crate) fn content(&self, id: &BlobId) -> Vec<u8> {
        self.state().contents[id].clone()
    }

    /// Waits until a batch is held, and takes it.
    pub(crate) fn held(&self) -> (ReplicaBatch, ReplicaDone) {
        let mut state = self.state();
        let changed = &self.changed;
        changed.wait_while(&mut state, |state| state.held.is_empty());
        state.held.pop_front().unwrap()
    }

    /// Forgets a held batch, which the test refuses.
    pub(crate) fn forget(&self) {
        self.state().busy = false;
    }

    /// Stores a batch, and checks that it is the next one.
    pub(crate) fn keep(&self, batch: &ReplicaBatch) {
        let contents: Vec<_> = batch
            .blobs
            .iter()
            .map(|id| (*id, batch.blob(id).unwrap()))
            .collect();
        let mut state = self.state();
        assert_eq!(batch.first_seq, state.seq + 1);
        let zeros = "0".repeat(32).parse().unwrap();
        assert_eq!(batch.previous, state.head.unwrap_or(zeros));
        let count = ends(&batch.lines).len() as u64;
        assert_eq!(count, batch.last_seq - state.seq);
        assert!(batch.lines.ends_with(b"\n"));
        assert!(batch.blobs.is_sorted());
        state.lines.extend_from_slice(&batch.lines);
        state.seq = batch.last_seq;
        state.head = Some(batch.head);
        state.blobs.push(batch.blobs.clone());
        state.contents.extend(contents);
        state.busy = false;
    }
}

/// A handle through which a log uses a loopback.
#[derive(Debug)]
struct Handle(Arc<Loopback>);

impl Replica for Handle {
    fn store(&self, batch: ReplicaBatch, done: ReplicaDone) {
        let answer = {
            let mut state = self.0.state();
            assert!(!state.busy, "one batch at a time");
            state.busy = !matches!(state.answer, Answer::Refused | Answer::Dropped);
            state.answer
        };
        match answer {
            Answer::AtOnce => {
                self.0.keep(&batch);
                done.stored();
            }
            Answer::Later => {
                let loopback = Arc::clone(&self.0);
                thread::spawn(move || {
                    thread::yield_now();
                    loopback.keep(&batch);
                    thread::yield_now();
                    done.stored();
                });
            }
            Answer::Held => {
                self.0.state().held.push_back((batch, done));
                self.0.changed.notify_all();
            }
            Answer::Refused => done.failed("the lease is lost"),
            Answer::Dropped => drop(done),
            Answer::Panics => {
                self.0.state().busy = false;
                panic!("the replica panics on purpose");
            }
            Answer::StoredButFailed => {
                self.0.keep(&batch);
                done.failed("the connection broke");
            }
        }
    }

    fn has(&self) -> Result<u64, String> {
        Ok(self.0.seq())
    }
}

/// The loopbacks of logs, by name. Logs of the kind `plain` have none.
#[derive(Debug)]
pub(crate) struct Loopbacks(Mutex<BTreeMap<LogName, Arc<Loopback>>>);

impl Loopbacks {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::default()))
    }

    pub(crate) fn of(&self, log: &LogName) -> Arc<Loopback> {
        let mut loopbacks = self.0.lock();
        let loopback = loopbacks.entry(log.clone()).or_insert_with(Loopback::new);
        Arc::clone(loopback)
    }
}

impl Replicas for Loopbacks {
    fn replica_of(&self, log: &LogName) -> Option<Arc<dyn Replica>> {
        (log.kind() != "plain").then(|| Arc::new(Handle(self.of(log))) as Arc<dyn Replica>)
    }
}
