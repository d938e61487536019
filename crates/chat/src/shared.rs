//! The parts of an account that everything else in it uses: its state, and the program around it.

use std::{
    collections::BTreeSet,
    io,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use gyrus_contract::{BoxedFuture, Principal, RunId};
use gyrus_kernel::latch::Latch;
use gyrus_runtime::{
    EventId,
    ledger::{Ledger, LedgerError, TRY_AGAIN, is_of_disk},
    queue::{Gateway, RunHost},
    request::RunOptions,
};
use parking_lot::Mutex;
use tokio::sync::{
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    watch,
};

use crate::{
    board::RunBoard,
    files::Spool,
    messenger::Messenger,
    pairing::CurrentPairing,
    record::{ChatChange, ChatFact, ChatRecord, Numbers},
    transcription::Transcription,
};

/// The program around a chat.
pub trait ChatHost: RunHost {
    /// Returns a picture of the page in a run's browser at this moment, as PNG.
    ///
    /// # Errors
    /// A message if there is no picture.
    fn picture(&self, run: RunId) -> BoxedFuture<'_, Result<Vec<u8>, String>>;

    /// Adds a person's words to the inbox of an agent, durably. Under an id that came before, they
    /// come once.
    ///
    /// # Errors
    /// A message: there is no such agent, or the words cannot be stored.
    fn tell_agent<'a>(
        &'a self,
        agent: &'a str,
        words: &'a str,
        id: EventId,
        by: &'a Principal,
    ) -> BoxedFuture<'a, Result<(), String>>;

    /// Shows a message to the person at the console.
    fn say(&self, text: &str);
}

pub struct ChatSettings {
    /// The folder in which the chat's runs work.
    pub workdir: PathBuf,
    /// Options of the chat's runs.
    pub options: RunOptions,
    /// The ids of the groups that may use the chat.
    pub groups: BTreeSet<String>,
    /// The emergency stop, shown when it keeps work from beginning.
    pub latch: Latch,
    /// The server that transcribes speech.
    pub transcription: Option<Transcription>,
    /// The folder for files to send and received files.
    pub folder: PathBuf,
}

pub(crate) struct AccountInner {
    pub(crate) messenger: Arc<dyn Messenger>,
    pub(crate) host: Arc<dyn ChatHost>,
    pub(crate) gateway: Gateway,
    pub(crate) settings: ChatSettings,
    pub(crate) spool: Spool,
    pub(crate) pairing: Mutex<CurrentPairing>,
    pub(crate) board: Mutex<RunBoard>,
    pub(crate) changes: watch::Sender<u64>,
    /// Whether the account is stopping, so that nothing more is sent.
    pub(crate) is_stopping: AtomicBool,
    begun: UnboundedSender<WorkProgress>,
    ledger: Mutex<Ledger<ChatRecord>>,
    /// Held by the task that decides and writes.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum WorkProgress {
    Task(RunId),
    Pending(u64),
}

impl AccountInner {
    /// Creates the account around an open ledger; also returns what says what is to be begun.
    pub(crate) fn new(
        messenger: Arc<dyn Messenger>,
        settings: ChatSettings,
        gateway: &Gateway,
        host: Arc<dyn ChatHost>,
        ledger: Ledger<ChatRecord>,
    ) -> io::Result<(Arc<Self>, UnboundedReceiver<WorkProgress>)> {
        let (begun, beginning) = unbounded_channel();
        let shared = Self {
            messenger,
            host,
            gateway: gateway.clone(),
            spool: Spool::new(settings.folder.clone())?,
            settings,
            pairing: Mutex::default(),
            board: Mutex::default(),
            changes: watch::Sender::new(0),
            is_stopping: AtomicBool::new(false),
            begun,
            ledger: Mutex::new(ledger),
            turn: tokio::sync::Mutex::default(),
        };
        Ok((Arc::new(shared), beginning))
    }

    pub(crate) fn with<T>(&self, look: impl FnOnce(&ChatRecord) -> T) -> T {
        look(self.ledger.lock().state())
    }

    /// Decides on changes by the state, and applies them together. They are on disk when this
    /// returns, however long the disk refuses them, and what follows from them is begun.
    pub(crate) async fn commit<T>(
        &self,
        decide: impl FnOnce(&ChatRecord, &mut Numbers) -> (Vec<ChatChange>, T),
    ) -> Result<T, LedgerError> {
        // Nobody decides by a state of which it is open whether it is on disk.
        let _turn = self.turn.lock().await;
        let (changes, decided, begun) = {
            let mut ledger = self.ledger.lock();
            // A disk that still refuses says so below.
            let _ = ledger.go_on();
            let mut numbers = ledger.state().numbers();
            let (changes, decided) = decide(ledger.state(), &mut numbers);
            if changes.is_empty() {
                return Ok(decided);
            }
            let begun = begun(ledger.state(), &changes);
            (changes, decided, begun)
        };
        let mut is_told = false;
        while let Err(error) = self.write(changes.clone()).await {
            if !is_of_disk(&error) {
                return Err(error);
            }
            if !is_told {
                self.failed(&error);
                is_told = true;
            }
            tokio::time::sleep(TRY_AGAIN).await;
        }
        for one in begun {
            // Nobody takes it up once the server ends; the next one does.
            let _ = self.begun.send(one);
        }
        self.changes.send_modify(|changes| *changes += 1);
        Ok(decided)
    }

    /// Writes changes to disk. Twice is as good as once: everything in a change has a name.
    async fn write(&self, changes: Vec<ChatChange>) -> Result<(), LedgerError> {
        let writer = {
            let mut ledger = self.ledger.lock();
            ledger.go_on()?;
            ledger.append(vec![ChatFact::Changed(changes)])?;
            ledger.writer()
        };
        writer.barrier().await?;
        Ok(())
    }

    /// Reports to the person at the console that the ledger failed. Accepted work continues once
    /// the disk works, or at the next start.
    pub(crate) fn failed(&self, error: &LedgerError) {
        let surface = self.messenger.surface();
        let why = gyrus_net::causes(error);
        self.host.say(&format!(
            "chat {surface}: its ledger cannot be written: {why}\n"
        ));
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.settings.latch.check().is_err()
    }

    pub(crate) fn principal(&self, person: &str) -> Principal {
        Principal {
            surface: self.messenger.surface().to_owned(),
            id: person.to_owned(),
        }
    }

    /// Whether messages may be sent to a conversation: to a person who is paired, or in a group
    /// that is allowed.
    pub(crate) fn may_write_to(&self, record: &ChatRecord, chat: &str) -> bool {
        record.is_private(chat) || record.is_one_of(chat, &self.settings.groups)
    }
}

fn begun(before: &ChatRecord, changes: &[ChatChange]) -> Vec<WorkProgress> {
    let begun = changes.iter().filter_map(|change| match change {
        ChatChange::Task(task) => {
            let known = before.tasks.get(&task.run);
            let begins = known.is_none_or(|known| known.is_over()) && !task.is_over();
            begins.then_some(WorkProgress::Task(task.run))
        }
        ChatChange::Pending { number, .. } => Some(WorkProgress::Pending(*number)),
        ChatChange::Position { .. }
        | ChatChange::Seen { .. }
        | ChatChange::Done { .. }
        | ChatChange::Paired(_)
        | ChatChange::Removed { .. }
        | ChatChange::Moved { .. }
        | ChatChange::Held { .. }
        | ChatChange::Card(_)
        | ChatChange::Say(_)
        | ChatChange::Turned { .. }
        | ChatChange::Sent { .. }
        | ChatChange::Dropped { .. }
        | ChatChange::Numbered { .. } => None,
    });
    begun.collect()
}
