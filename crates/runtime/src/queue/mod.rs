//! The queue of commands: whatever surface asks for a run, it is accepted here, once and durably.
//!
//! A command is on disk before it is acknowledged, and names the run that it starts: so a crash at
//! any moment neither loses a command nor starts it twice. The runs are driven by processes of
//! their own, which outlive this one; a queue that is opened again finds them at work, and goes on
//! with those that died.

mod announced;
mod command;
mod dispatch;
mod state;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use gyrus_contract::{Principal, RunId};
use gyrus_journal::Store;
use gyrus_kernel::now_ms;
use tokio::sync::watch;

pub use self::{
    command::{Command, ContextText, MAX_PRIORITY, OptionValue, RunRequest, Stage, Work},
    dispatch::{Dispatcher, Worker, WorkerEnd, Workers},
    state::{AtOnce, Queue, QueueFact, QueuedCommand},
};
use crate::{
    BusError, EventBus,
    ledger::{Ledger, LedgerError},
};

/// The ledger of the queue.
const ID: &str = "main";

/// Maximum number of commands that are not over.
pub const MAX_OPEN: usize = 100_000;

/// Maximum size of their texts together, in bytes.
pub const MAX_OPEN_BYTES: usize = 256 << 20;

/// Maximum size of a command as JSON, in bytes.
pub const MAX_COMMAND: usize = 1 << 20;

/// The error of a queue.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// It cannot be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The journal of a run cannot be read.
    #[error(transparent)]
    Journal(#[from] gyrus_journal::Error),
    /// The question of a run cannot be read.
    #[error(transparent)]
    Approval(#[from] gyrus_kernel::approvals::ApprovalError),
    /// The end of a command cannot be published.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// It is full.
    #[error("too many commands wait already; take some back, or wait until they are done")]
    Full,
    /// The command is too large.
    #[error("the command is {bytes} bytes long; at most {MAX_COMMAND} are accepted")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// There is no such command.
    #[error("there is no command `{id}`; is it long over?")]
    NotFound {
        /// The id that was given.
        id: String,
    },
    /// The command cannot be taken back any more.
    #[error("command {id} has begun: stop its run {} instead", run.short())]
    Begun {
        /// The command.
        id: String,
        /// Its run.
        run: RunId,
    },
}

/// A command as it is asked for.
#[derive(Debug, Clone)]
pub struct NewCommand {
    /// The work.
    pub work: Work,
    /// The run to go on with; `None` for a new one.
    pub run: Option<RunId>,
    /// The person or program who asks.
    pub from: Principal,
    /// The agent for which it works.
    pub agent: String,
    /// The priority, from -100 to 100.
    pub priority: i8,
    /// The earliest start, in UTC milliseconds.
    pub not_before_ms: Option<i64>,
    /// Commands with the same key are one command.
    pub key: Option<String>,
    /// Relates it to what caused it.
    pub correlation: Option<String>,
}

/// The resources that the runs of an agent used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AgentUse {
    /// Number of runs.
    pub runs: u64,
    /// Number of tokens.
    pub tokens: u64,
    /// Cost in millionths of a US dollar.
    pub cost_microdollars: u64,
}

impl AgentUse {
    /// Adds up what runs used.
    pub fn of(store: &Store, runs: &BTreeSet<RunId>) -> Self {
        let mut used = Self {
            runs: u64::try_from(runs.len()).unwrap_or(u64::MAX),
            ..Self::default()
        };
        for run in runs {
            // A run that did not begin has used nothing.
            if let Ok(spent) = gyrus_kernel::spent(store, *run) {
                used.tokens = used.tokens.saturating_add(spent.tokens);
                used.cost_microdollars = used.cost_microdollars.saturating_add(spent.cost.0);
            }
        }
        used
    }
}

/// The queue, as surfaces use it. Clones are the same queue.
#[derive(Debug, Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Store,
    ledger: Mutex<Ledger<Queue>>,
    changes: watch::Sender<u64>,
    /// The bus that hears of ends.
    bus: OnceLock<EventBus>,
}

impl Gateway {
    /// Opens the queue of a store; no other process may have it open.
    ///
    /// # Errors
    /// Another process has it, or it cannot be read.
    pub fn open(store: &Store) -> Result<Self, QueueError> {
        Ok(Self {
            shared: Arc::new(Shared {
                store: store.clone(),
                ledger: Mutex::new(Ledger::open(store, ID)?),
                changes: watch::Sender::new(0),
                bus: OnceLock::new(),
            }),
        })
    }

    /// Returns the queue as it is on disk, while another process may have it open.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(store: &Store) -> Result<Queue, QueueError> {
        Ok(Ledger::read(store, ID)?)
    }

    /// Accepts a command; it is on disk when this returns. One that has the key of an earlier
    /// command is that command: it is returned, and nothing is accepted.
    ///
    /// # Errors
    /// It is too large, the queue is full, or it cannot be written.
    pub async fn submit(&self, new: NewCommand) -> Result<QueuedCommand, QueueError> {
        let command = Command {
            id: gyrus_contract::time_ordered_uuid().to_string(),
            run: new.run.unwrap_or_default(),
            work: new.work,
            from: new.from,
            agent: new.agent,
            priority: new.priority.clamp(-MAX_PRIORITY, MAX_PRIORITY),
            not_before_ms: new.not_before_ms,
            key: new.key,
            correlation: new.correlation,
            submitted_ms: now_ms(),
        };
        let bytes = serde_json::to_vec(&command)
            .map_err(LedgerError::Unwritable)?
            .len();
        if bytes > MAX_COMMAND {
            return Err(QueueError::TooLarge { bytes });
        }
        let (standing, writer) = {
            let mut ledger = self.ledger();
            let known = command
                .key
                .as_deref()
                .and_then(|key| ledger.state().with_key(key));
            let standing = match known {
                Some(known) => known.clone(),
                None if is_full(ledger.state()) => return Err(QueueError::Full),
                None => {
                    let command = Arc::new(command);
                    ledger.append(vec![QueueFact::Submitted(Arc::clone(&command))])?;
                    QueuedCommand {
                        command,
                        stage: Stage::Queued,
                    }
                }
            };
            (standing, ledger.writer())
        };
        // Also for the same key: its first acceptance may not be on disk yet.
        writer.barrier().await?;
        self.changed();
        Ok(standing)
    }

    /// Takes a command back that has not begun.
    ///
    /// # Errors
    /// There is no such command, or it has begun.
    pub async fn cancel(&self, id: &str, by: Principal) -> Result<(), QueueError> {
        let writer = {
            let mut ledger = self.ledger();
            let standing = ledger.state().get(id);
            let standing = standing.ok_or_else(|| QueueError::NotFound { id: id.to_owned() })?;
            match &standing.stage {
                Stage::Queued => {}
                Stage::Cancelled { .. } => return Ok(()),
                Stage::Running { .. } | Stage::Parked { .. } | Stage::Ended { .. } => {
                    return Err(QueueError::Begun {
                        id: id.to_owned(),
                        run: standing.command.run,
                    });
                }
            }
            ledger.append(vec![state::cancelled(id, by, now_ms())])?;
            ledger.writer()
        };
        writer.barrier().await?;
        self.changed();
        Ok(())
    }

    /// Looks at the queue.
    pub fn with<T>(&self, look: impl FnOnce(&Queue) -> T) -> T {
        look(self.ledger().state())
    }

    /// Returns what the runs of an agent used that were to start since a time, given in UTC
    /// milliseconds. May block for the disk.
    pub fn used_since(&self, agent: &str, since_ms: i64) -> AgentUse {
        let runs = self.with(|queue| queue.runs_since(agent, since_ms));
        AgentUse::of(self.store(), &runs)
    }

    /// Returns a receiver that is told of every change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// Returns the journals.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    async fn reach(&self, id: &str, stage: Stage) -> Result<(), QueueError> {
        let writer = {
            let mut ledger = self.ledger();
            ledger.append(vec![state::stage(id, stage)])?;
            ledger.writer()
        };
        writer.barrier().await?;
        self.changed();
        Ok(())
    }

    /// Publishes the end of each command from now on, as a durable event on `command.ended`.
    pub fn announce_on(&self, bus: EventBus) {
        let _ = self.shared.bus.set(bus);
    }

    async fn end(&self, id: &str, code: Option<i32>, summary: String) -> Result<(), QueueError> {
        let standing = self.with(|queue| queue.get(id).cloned());
        if let (Some(bus), Some(standing)) = (self.shared.bus.get(), standing) {
            // Before it counts as ended: a crash in between publishes it again, under one id.
            let ended = announced::ended(&standing.command, code, &summary);
            bus.publish_durable(ended).await?;
        }
        let ended = Stage::Ended {
            at_ms: now_ms(),
            code,
            summary,
        };
        self.reach(id, ended).await
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger<Queue>> {
        // A panic elsewhere leaves the ledger whole.
        let ledger = self.shared.ledger.lock();
        ledger.unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.shared.changes.send_modify(|changes| *changes += 1);
    }
}

fn is_full(queue: &Queue) -> bool {
    queue.open() >= MAX_OPEN || queue.bytes() >= MAX_OPEN_BYTES
}
