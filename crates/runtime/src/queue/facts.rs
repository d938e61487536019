//! The place of a queue's facts: a ledger that this process alone writes, or one that many workers
//! agree on.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use gyrus_journal::Store;
use parking_lot::Mutex;
use rustix::fs::statvfs;
use tokio::{sync::watch, time::sleep};

use super::{
    error::QueueError,
    state::{CommandQueue, QueueFact},
};
use crate::ledger::{Ledger, LedgerError, TRY_AGAIN, is_of_disk};

/// Free bytes on the journals' disk below which no run is begun.
const ROOM: u64 = 256 << 10;

/// Describes the lack of disk space that keeps runs from beginning; `None` if there is enough.
pub(super) fn want_of_room(store: &Store) -> Option<String> {
    let disk = statvfs(store.root()).ok()?;
    let has_files = disk.f_files == 0 || disk.f_favail > 0;
    let has_room = disk.f_bavail.saturating_mul(disk.f_frsize) >= ROOM && has_files;
    (!has_room).then(|| {
        let root = store.root().display();
        format!("the disk of {root} is full; make room on it")
    })
}

/// Returns the facts that follow from a state, if any.
pub type DecideFacts<'a> = dyn FnMut(&CommandQueue) -> Vec<QueueFact> + Send + 'a;

/// A queue that many workers share.
pub trait SharedQueue: Send + Sync + fmt::Debug {
    /// Appends the facts that `decide` returns for the present queue, deciding again if another
    /// worker was quicker.
    fn change<'a>(
        &'a self,
        decide: &'a mut DecideFacts<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<(), LedgerError>> + Send + 'a>>;

    /// Calls `look` on the queue in the state known to this worker.
    fn look(&self, look: &mut dyn FnMut(&CommandQueue));

    /// Returns a receiver that is notified of every change, by any worker.
    fn changes(&self) -> watch::Receiver<u64>;
}

#[derive(Debug)]
pub(super) enum QueueFacts {
    Own {
        ledger: Box<Mutex<Ledger<CommandQueue>>>,
        changes: watch::Sender<u64>,
    },
    Shared(Arc<dyn SharedQueue>),
}

impl QueueFacts {
    pub(super) fn own(ledger: Ledger<CommandQueue>) -> Self {
        Self::Own {
            ledger: Box::new(Mutex::new(ledger)),
            changes: watch::Sender::new(0),
        }
    }

    /// Appends the facts that `decide` returns, with a result. All are on disk, and those before
    /// them, when this returns.
    pub(super) async fn change<T: Send>(
        &self,
        mut decide: impl FnMut(&CommandQueue) -> Result<(Vec<QueueFact>, T), QueueError> + Send,
    ) -> Result<T, QueueError> {
        match self {
            Self::Own { ledger, changes } => {
                let (result, writer) = {
                    // A panic elsewhere leaves the ledger whole.
                    let mut ledger = ledger.lock();
                    ledger.go_on()?;
                    let (facts, result) = decide(ledger.state())?;
                    if !facts.is_empty() {
                        ledger.append(facts)?;
                    }
                    (result, ledger.writer())
                };
                writer.barrier().await.map_err(LedgerError::from)?;
                changes.send_modify(|changes| *changes += 1);
                Ok(result)
            }
            Self::Shared(shared) => {
                let mut decided = None;
                let mut decide = |queue: &CommandQueue| match decide(queue) {
                    Ok((facts, result)) => {
                        decided = Some(Ok(result));
                        facts
                    }
                    Err(error) => {
                        decided = Some(Err(error));
                        Vec::new()
                    }
                };
                shared.change(&mut decide).await?;
                decided.expect("nothing is changed without having been decided")
            }
        }
    }

    /// Appends like [`QueueFacts::change`], and waits as long as this process's own disk refuses. For what
    /// became of a command, which nobody else would write.
    pub(super) async fn change_at_last<T: Send>(
        &self,
        mut decide: impl FnMut(&CommandQueue) -> Result<(Vec<QueueFact>, T), QueueError> + Send,
    ) -> Result<T, QueueError> {
        loop {
            match self.change(&mut decide).await {
                Err(QueueError::Ledger(error)) if is_of_disk(&error) => sleep(TRY_AGAIN).await,
                changed => return changed,
            }
        }
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&CommandQueue) -> T) -> T {
        match self {
            Self::Own { ledger, .. } => look(ledger.lock().state()),
            Self::Shared(shared) => {
                let (mut look, mut seen) = (Some(look), None);
                shared.look(&mut |queue| seen = look.take().map(|look| look(queue)));
                seen.expect("whoever shares a queue lets it be looked at once")
            }
        }
    }

    /// Reopens a queue that belongs to this process alone, if its disk refused an operation.
    pub(super) fn go_on(&self) -> Result<(), LedgerError> {
        match self {
            Self::Own { ledger, .. } => {
                let mut ledger = ledger.lock();
                ledger.go_on()
            }
            Self::Shared(_) => Ok(()),
        }
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        match self {
            Self::Own { changes, .. } => changes.subscribe(),
            Self::Shared(shared) => shared.changes(),
        }
    }
}
