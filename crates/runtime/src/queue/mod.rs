//! The queue of commands: whatever surface asks for a run, it is accepted here, once and durably.
//!
//! A command is on disk before it is acknowledged, and names the run that it starts: so a crash at
//! any moment neither loses a command nor starts it twice. The runs are driven by processes of
//! their own, which outlive this one; a queue that is opened again finds them at work, and goes on
//! with those that died.

mod announced;
mod command;
mod dispatch;
mod error;
mod facts;
mod host;
mod resting;
mod state;
mod stopping;
mod worker;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    ops::Range,
    sync::{Arc, OnceLock},
};

use gyrus_contract::{Principal, RunId};
use gyrus_journal::Store;
use gyrus_kernel::{check_not_record, is_record, now_ms};
use tokio::sync::watch;

use self::facts::QueueFacts;
pub use self::{
    command::{CommandStage, Deaths, MAX_COMMAND, MAX_PRIORITY, QueueCommand, QueueWork},
    dispatch::{Dispatcher, DrivingProcess, RUN_IS_ELSEWHERE, WorkerEnd, Workers},
    error::{QueueError, in_time},
    facts::{DecideFacts, SharedQueue},
    host::RunHost,
    state::{AtOnce, CommandQueue, QueueFact, QueuedCommand},
    worker::{HasLabel, QueueWorker, is_label, machine_label},
};
use crate::{
    EventBus,
    ledger::{Ledger, LedgerError, is_of_disk},
};

const ID: &str = "main";

/// Maximum number of commands that are not over.
pub const MAX_OPEN: usize = 100_000;

/// Maximum total size of the texts of open commands, in bytes.
pub const MAX_OPEN_BYTES: usize = 256 << 20;

/// Length of a day in milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Returns the times of the day (UTC) that a time is on, in UTC milliseconds.
pub fn day_of(at_ms: i64) -> Range<i64> {
    let from = at_ms.saturating_sub(at_ms.rem_euclid(DAY_MS));
    from..from.saturating_add(DAY_MS)
}

/// The resources used by the runs of an agent.
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
    /// Adds up the use of these runs.
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
    shared: Arc<QueueInner>,
}

#[derive(Debug)]
struct QueueInner {
    store: Store,
    facts: QueueFacts,
    worker: Option<QueueWorker>,
    bus: OnceLock<EventBus>,
}

impl Gateway {
    /// Opens the queue of a store; no other process may have it open.
    ///
    /// # Errors
    /// Another process has it, or it cannot be read.
    pub fn open(store: &Store) -> Result<Self, QueueError> {
        let facts = QueueFacts::own(Ledger::open(store, ID)?);
        Ok(Self::new(store, facts, None))
    }

    /// Joins a queue that many workers share. The journals are those of this worker.
    pub fn share(store: &Store, queue: Arc<dyn SharedQueue>, worker: QueueWorker) -> Self {
        Self::new(store, QueueFacts::Shared(queue), Some(worker))
    }

    fn new(store: &Store, facts: QueueFacts, worker: Option<QueueWorker>) -> Self {
        Self {
            shared: Arc::new(QueueInner {
                store: store.clone(),
                facts,
                worker,
                bus: OnceLock::new(),
            }),
        }
    }

    /// Returns the queue as it is on disk, even if another process has it open.
    pub fn read(store: &Store) -> Result<CommandQueue, QueueError> {
        Ok(Ledger::read(store, ID)?)
    }

    /// Accepts a command and returns once it is on disk. A command with the key of an earlier one
    /// is not accepted: the earlier one is returned.
    ///
    /// # Errors
    /// The command is too large or cannot be written, its run is a record, or the queue is full.
    pub async fn submit(&self, mut command: QueueCommand) -> Result<QueuedCommand, QueueError> {
        if is_record(self.store(), command.run) {
            check_not_record(self.store(), command.run)?;
        }
        command.priority = command.priority.clamp(-MAX_PRIORITY, MAX_PRIORITY);
        let bytes = serde_json::to_vec(&command)
            .map_err(LedgerError::Unwritable)?
            .len();
        if bytes > MAX_COMMAND {
            return Err(QueueError::TooLarge { bytes });
        }
        let command = Arc::new(command);
        // Also for the same key: its first acceptance may not be on disk yet.
        let facts = &self.shared.facts;
        facts
            .change(|queue| {
                let known = command.key.as_deref().and_then(|key| queue.with_key(key));
                match known {
                    Some(known) => Ok((Vec::new(), known.clone())),
                    None if is_full(queue) => Err(QueueError::Full),
                    None => {
                        let submitted = QueueFact::Submitted(Arc::clone(&command));
                        let standing = QueuedCommand::new(Arc::clone(&command), None);
                        Ok((vec![submitted], standing))
                    }
                }
            })
            .await
    }

    /// Cancels a command that has not begun.
    ///
    /// # Errors
    /// There is no such command, or it has begun.
    pub async fn cancel(&self, id: &str, by: Principal) -> Result<(), QueueError> {
        let facts = &self.shared.facts;
        facts
            .change(|queue| {
                let standing = queue.get(id);
                let standing =
                    standing.ok_or_else(|| QueueError::NotFound { id: id.to_owned() })?;
                match &standing.stage {
                    CommandStage::Queued => {}
                    CommandStage::Cancelled { .. } => return Ok((Vec::new(), ())),
                    CommandStage::Running { .. }
                    | CommandStage::Parked { .. }
                    | CommandStage::Ended { .. } => {
                        return Err(QueueError::Begun {
                            id: id.to_owned(),
                            run: standing.command.run,
                        });
                    }
                }
                Ok((vec![state::cancelled(id, by.clone(), now_ms())], ()))
            })
            .await
    }

    pub fn with<T>(&self, look: impl FnOnce(&CommandQueue) -> T) -> T {
        self.shared.facts.with(look)
    }

    /// Returns what the runs of an agent used that were to start on the day (UTC) of a time, given in
    /// UTC milliseconds. May block for the disk.
    pub fn used_on_day_of(&self, agent: &str, at_ms: i64) -> AgentUse {
        let runs = self.with(|queue| queue.runs_within(agent, day_of(at_ms)));
        AgentUse::of(self.store(), &runs)
    }

    /// Returns the obstacle to accepted work, if there is one: the disk of the queue, or the reason
    /// why a command could not begin.
    pub fn want(&self) -> Option<String> {
        let disk = self.shared.facts.go_on().err();
        let disk = disk.map(|error| error.to_string());
        let disk = disk.or_else(|| facts::want_of_room(self.store()));
        disk.or_else(|| {
            self.with(|queue| {
                queue.all().into_iter().find_map(|one| match &one.stage {
                    CommandStage::Parked {
                        why,
                        deaths: Some(Deaths { entries: 0, .. }),
                        ..
                    } => Some(why.clone()),
                    _ => None,
                })
            })
        })
    }

    /// Returns how the command of a run ended, if it did.
    pub fn end_of(&self, run: RunId) -> Option<String> {
        self.with(|queue| match &queue.of_run(run)?.stage {
            CommandStage::Ended { summary, .. } => Some(summary.clone()),
            CommandStage::Cancelled { by, .. } => Some(format!("taken back by {by}")),
            CommandStage::Queued | CommandStage::Running { .. } | CommandStage::Parked { .. } => {
                None
            }
        })
    }

    /// Waits until the command of a run is over; returns its end, or `None` if there is no command.
    pub async fn ended(&self, run: RunId) -> Option<String> {
        let mut changes = self.changes();
        loop {
            changes.borrow_and_update();
            let end = self.end_of(run);
            if end.is_some() || self.with(|queue| queue.of_run(run).is_none()) {
                return end;
            }
            if changes.changed().await.is_err() {
                // The queue is closed with the server.
                return std::future::pending().await;
            }
        }
    }

    /// Returns a receiver that is notified of every change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.facts.changes()
    }

    /// Whether several processes share the queue.
    pub fn is_shared(&self) -> bool {
        self.shared.worker.is_some()
    }

    /// Returns the store of the runs' journals.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Marks the next command as running, if one may start, and returns it.
    async fn begin_next(&self, at_once: AtOnce) -> Result<Option<Arc<QueueCommand>>, QueueError> {
        let worker = self.shared.worker.as_ref();
        let facts = &self.shared.facts;
        // Mostly there is none, and nothing to be agreed on.
        if facts.with(|queue| queue.next(now_ms(), at_once, worker).is_none()) {
            return Ok(None);
        }
        facts
            .change(|queue| {
                let now = now_ms();
                let next = queue.next(now, at_once, worker).cloned();
                let running = CommandStage::Running {
                    since_ms: now,
                    worker: worker.map(|worker| worker.name.clone()),
                    machine: worker.map(|worker| worker.machine.clone()),
                    build: worker.map(|worker| worker.build.clone()),
                };
                let begun = next
                    .iter()
                    .map(|next| state::stage(&next.id, running.clone()));
                Ok((begun.collect(), next))
            })
            .await
    }

    /// Records a stage of a command that is parked or that this worker holds, and nothing for one
    /// that another worker took over because this one seemed dead.
    async fn reach(&self, id: &str, stage: CommandStage) -> Result<(), QueueError> {
        let facts = &self.shared.facts;
        facts
            .change_at_last(|queue| {
                let may = has(queue, id, self.name()) || is_parked(queue, id);
                let reached = may.then(|| state::stage(id, stage.clone()));
                Ok((reached.into_iter().collect(), ()))
            })
            .await
    }

    /// Returns this worker's name, if several share the queue.
    fn name(&self) -> Option<&str> {
        Some(&self.shared.worker.as_ref()?.name)
    }

    /// Whether this worker holds a command.
    fn has(&self, id: &str) -> bool {
        self.with(|queue| has(queue, id, self.name()))
    }

    /// Returns a command to the queue from a worker that is dead, or from this one when it ends.
    /// Returns whether that worker had it.
    pub async fn give_back(&self, id: &str, of: &str) -> Result<bool, QueueError> {
        let facts = &self.shared.facts;
        facts
            .change(|queue| {
                let has = has(queue, id, Some(of));
                let back = has.then(|| state::stage(id, CommandStage::Queued));
                Ok((back.into_iter().collect(), has))
            })
            .await
    }

    /// Returns the commands that workers have at work, with the names of these, if several share
    /// the queue.
    pub fn at_work(&self) -> Vec<(Arc<QueueCommand>, String)> {
        self.with(|queue| {
            let all = queue.all().into_iter();
            let at_work = all.filter_map(|one| match &one.stage {
                CommandStage::Running { worker, .. } => {
                    Some((Arc::clone(&one.command), worker.clone()?))
                }
                _ => None,
            });
            at_work.collect()
        })
    }

    /// Returns the commands whose runs are parked, and whether they are to go on by themselves now.
    pub fn parked(&self) -> Vec<(Arc<QueueCommand>, bool)> {
        let now = now_ms();
        self.with(|queue| {
            let all = queue.all().into_iter();
            let parked = all.filter(|one| matches!(one.stage, CommandStage::Parked { .. }));
            parked
                .map(|one| (Arc::clone(&one.command), one.stage.is_waited_out(now)))
                .collect()
        })
    }

    /// Returns a command with a parked run to the queue.
    pub async fn wake(&self, id: &str) -> Result<(), QueueError> {
        self.leave_parked(id, CommandStage::Queued).await
    }

    /// Ends a command with a parked run at a person's request.
    pub async fn stop_parked(&self, id: &str, by: Principal) -> Result<(), QueueError> {
        let ending = gyrus_kernel::Ending::Stopped { by, reason: None };
        let ended = CommandStage::Ended {
            at_ms: now_ms(),
            code: None,
            summary: gyrus_kernel::summary(&ending),
        };
        self.leave_parked(id, ended).await
    }

    async fn leave_parked(&self, id: &str, stage: CommandStage) -> Result<(), QueueError> {
        let facts = &self.shared.facts;
        facts
            .change(|queue| {
                let reached = is_parked(queue, id).then(|| state::stage(id, stage.clone()));
                Ok((reached.into_iter().collect(), ()))
            })
            .await
    }

    /// Publishes the end of each command from now on, as a durable event on `command.ended`.
    pub fn announce_on(&self, bus: EventBus) {
        let _ = self.shared.bus.set(bus);
    }

    /// Publishes an end before it is recorded: a crash in between tells of it again, under one id.
    async fn announce_end(
        &self,
        id: &str,
        code: Option<i32>,
        summary: &str,
    ) -> Result<(), QueueError> {
        let standing = self.with(|queue| queue.get(id).cloned());
        if let (Some(bus), Some(standing)) = (self.shared.bus.get(), standing) {
            let ended = announced::ended(&standing.command, code, summary);
            bus.publish_durable(ended).await?;
        }
        Ok(())
    }

    /// Publishes the end of a command that another worker ended. Publishing it twice is harmless.
    pub async fn announce_over(&self, id: &str) -> Result<(), QueueError> {
        let stage = self.with(|queue| queue.get(id).map(|standing| standing.stage.clone()));
        match stage {
            Some(CommandStage::Ended { code, summary, .. }) => {
                self.announce_end(id, code, &summary).await
            }
            _ => Ok(()),
        }
    }

    async fn end(&self, id: &str, code: Option<i32>, summary: String) -> Result<(), QueueError> {
        while let Err(error) = self.announce_end(id, code, &summary).await {
            if !is_of_disk(&error) {
                return Err(error);
            }
            tokio::time::sleep(crate::ledger::TRY_AGAIN).await;
        }
        let ended = CommandStage::Ended {
            at_ms: now_ms(),
            code,
            summary,
        };
        self.reach(id, ended).await
    }
}

fn has(queue: &CommandQueue, id: &str, worker: Option<&str>) -> bool {
    queue.get(id).is_some_and(|standing| {
        matches!(&standing.stage, CommandStage::Running { worker: has, .. } if has.as_deref() == worker)
    })
}

fn is_parked(queue: &CommandQueue, id: &str) -> bool {
    let stage = queue.get(id).map(|standing| &standing.stage);
    matches!(stage, Some(CommandStage::Parked { .. }))
}

fn is_full(queue: &CommandQueue) -> bool {
    queue.open() >= MAX_OPEN || queue.bytes() >= MAX_OPEN_BYTES
}
