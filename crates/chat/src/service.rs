//! A chat account at work.

use std::{
    io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use gyrus_journal::{Error as JournalError, Store};
use gyrus_runtime::{
    ledger::{Ledger, LedgerError},
    queue::Gateway,
};
use tokio::{sync::mpsc::UnboundedReceiver, task::JoinHandle};

use crate::{
    delivery,
    jobs::{self, JobAttempt},
    messenger::Messenger,
    receiving,
    record::{ChatChange, ChatRecord, PairedPerson},
    shared::{AccountInner, ChatHost, ChatSettings, WorkProgress},
    tasks,
};

/// Time limit for the message being sent when the server stops.
const SENT_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// The ledger of the chat cannot be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("the folder of the chat cannot be used")]
    Folder(#[from] io::Error),
}

/// An account of a messenger, at work while its tasks are.
#[derive(Clone)]
pub struct ChatAccount {
    shared: Arc<AccountInner>,
}

impl ChatAccount {
    /// Opens the account of a messenger, continues accepted work, and begins to receive and send.
    ///
    /// # Errors
    /// Another process has it, or its ledger cannot be used.
    pub async fn begin(
        messenger: Arc<dyn Messenger>,
        settings: ChatSettings,
        gateway: &Gateway,
        host: Arc<dyn ChatHost>,
    ) -> Result<(Self, ChatTasks), ChatError> {
        let ledger = Ledger::open(gateway.store(), messenger.surface())?;
        let (shared, beginning) = AccountInner::new(messenger, settings, gateway, host, ledger)?;
        delivery::take_up(&shared).await?;
        go_on(&shared);
        let tasks = ChatTasks {
            beginning: tokio::spawn(begin_new(Arc::clone(&shared), beginning)),
            receiving: tokio::spawn(receiving::receive(Arc::clone(&shared))),
            delivering: tokio::spawn(delivery::deliver(Arc::clone(&shared))),
            shared: Arc::clone(&shared),
        };
        Ok((Self { shared }, tasks))
    }

    /// Returns the name of the surface.
    pub fn surface(&self) -> &'static str {
        self.shared.messenger.surface()
    }

    /// Creates a code for pairing a person; it counts once, for ten minutes, and the one before it
    /// does not count any more.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn code(&self) -> Result<String, ChatError> {
        Ok(self.shared.pairing.lock().begin()?)
    }

    /// Withdraws a person's right to use the chat; returns whether they had it.
    pub async fn remove(&self, person: &str) -> Result<bool, ChatError> {
        let removed = self.shared.commit(|record, _| {
            let is_paired = record.is_paired(person);
            let person = person.to_owned();
            let change = is_paired.then_some(ChatChange::Removed { person });
            (Vec::from_iter(change), is_paired)
        });
        Ok(removed.await?)
    }

    /// Returns the people who may use the chat.
    pub fn people(&self) -> Vec<PairedPerson> {
        self.shared
            .with(|record| record.people().into_iter().cloned().collect())
    }
}

/// The running parts of an account.
pub struct ChatTasks {
    beginning: JoinHandle<()>,
    receiving: JoinHandle<()>,
    delivering: JoinHandle<()>,
    shared: Arc<AccountInner>,
}

impl ChatTasks {
    /// Stops to receive and to begin anything, and ends when the message being sent was sent, or
    /// after a while.
    pub async fn stop(self) {
        self.receiving.abort();
        self.beginning.abort();
        self.shared.is_stopping.store(true, Ordering::Relaxed);
        self.shared.changes.send_modify(|changes| *changes += 1);
        let _ = tokio::time::timeout(SENT_WITHIN, self.delivering).await;
    }
}

/// Continues tasks and jobs that an earlier process did not finish.
fn go_on(shared: &Arc<AccountInner>) {
    shared.with(|record| {
        let is_open = |run| record.tasks.get(&run).is_some_and(|task| !task.is_over());
        shared.spool.retain(&record.outgoing_files(), is_open);
        for task in record.open_tasks() {
            tokio::spawn(tasks::drive(Arc::clone(shared), task.run));
        }
        for number in record.pending.keys() {
            tokio::spawn(jobs::carry_out(
                Arc::clone(shared),
                *number,
                JobAttempt::Again,
            ));
        }
    });
}

/// Starts the work that changes of the state require.
async fn begin_new(shared: Arc<AccountInner>, mut beginning: UnboundedReceiver<WorkProgress>) {
    while let Some(begun) = beginning.recv().await {
        let shared = Arc::clone(&shared);
        match begun {
            WorkProgress::Task(run) => tokio::spawn(tasks::drive(shared, run)),
            WorkProgress::Pending(number) => {
                tokio::spawn(jobs::carry_out(shared, number, JobAttempt::First))
            }
        };
    }
}

/// Returns the chats as they are on disk, by their surfaces, even if another process has them open.
pub fn read_chats(store: &Store) -> Result<Vec<(String, ChatRecord)>, LedgerError> {
    let ids = match Ledger::<ChatRecord>::ids(store) {
        Err(LedgerError::Journal(JournalError::NotFound { .. })) => Vec::new(),
        ids => ids?,
    };
    let read = ids.into_iter().map(|id| {
        let record = Ledger::read(store, &id)?;
        Ok((id, record))
    });
    read.collect()
}
