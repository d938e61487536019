//! Following a run and the runs below it: the entries of several journals in one stream.

use std::collections::BTreeSet;

use gyrus_contract::RunId;
use gyrus_journal::{Error, LogEntry, LogReader, Store};
use gyrus_kernel::{StandingChange, log_name};
use tokio::{sync::mpsc, task::JoinSet};

/// Maximum number of entries in the queue; beyond it, reading waits.
const QUEUE: usize = 256;

/// An entry of a run that is followed.
#[derive(Debug)]
pub struct TreeEntry {
    pub run: RunId,
    pub entry: LogEntry,
    /// The reader of that run's journal.
    pub reader: LogReader,
    /// The change that it makes of the standing of that run.
    pub change: Option<StandingChange>,
}

/// A follower of runs. A run that one of them starts is followed from its beginning.
#[derive(Debug)]
pub struct TreeFollower {
    store: Store,
    followed: BTreeSet<RunId>,
    sender: mpsc::Sender<Result<TreeEntry, Error>>,
    entries: mpsc::Receiver<Result<TreeEntry, Error>>,
    followers: JoinSet<()>,
}

impl TreeFollower {
    /// Creates a follower of no run yet.
    pub fn new(store: &Store) -> Self {
        let (sender, entries) = mpsc::channel(QUEUE);
        Self {
            store: store.clone(),
            followed: BTreeSet::new(),
            sender,
            entries,
            followers: JoinSet::new(),
        }
    }

    /// Follows a run from an entry on, unless it is already followed. The run's journal may appear
    /// later.
    pub fn follow(&mut self, run: RunId, from: u64) {
        if self.followed.insert(run) {
            let (store, sender) = (self.store.clone(), self.sender.clone());
            self.followers.spawn(async move {
                if let Err(error) = send_entries(&store, run, from, &sender).await {
                    // If nobody follows any more, nobody misses the rest.
                    let _ = sender.send(Err(error)).await;
                }
            });
        }
    }

    /// Waits for the next entry of any of the runs; the entries of one run come in their order.
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// A journal cannot be read any further.
    pub async fn next(&mut self) -> Result<TreeEntry, Error> {
        let Some(next) = self.entries.recv().await else {
            // It holds a sender itself.
            return std::future::pending().await;
        };
        let next = next?;
        if let Some(StandingChange::ChildBegan(child)) = next.change {
            self.follow(child, 1);
        }
        Ok(next)
    }

    /// Whether all entries that were read have been taken.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

async fn send_entries(
    store: &Store,
    run: RunId,
    from: u64,
    sender: &mpsc::Sender<Result<TreeEntry, Error>>,
) -> Result<(), Error> {
    // A journal appears a moment after another one says that there will be one.
    store.created(&log_name(run)).await?;
    let reader = store.reader(&log_name(run))?;
    let mut follower = reader.follow(from)?;
    loop {
        let entry = follower.next().await?;
        let parsed = gyrus_kernel::parse(&entry).ok();
        let next = TreeEntry {
            run,
            change: parsed.and_then(|parsed| StandingChange::of(run, &parsed)),
            entry,
            reader: reader.clone(),
        };
        if sender.send(Ok(next)).await.is_err() {
            return Ok(());
        }
    }
}
