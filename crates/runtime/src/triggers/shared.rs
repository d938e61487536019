//! The parts that everything about triggers shares.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Notify, Semaphore},
    task::AbortHandle,
};

use super::{
    clock::TriggerClock,
    config::{DayBudget, TriggerConfig, TriggerSource},
    error::TriggerError,
    rate::Rate,
    reader::ClipboardReader,
    record::{TriggerBook, TriggerFact, TriggerName, TriggerRecord},
};
use crate::{
    agents::Agents,
    ledger::Ledger,
    queue::{CommandStage, Gateway},
};

pub(super) struct TriggersInner {
    pub(super) agents: Agents,
    pub(super) gateway: Gateway,
    pub(super) clock: Arc<dyn TriggerClock>,
    pub(super) clipboard: Arc<dyn ClipboardReader>,
    pub(super) book: Mutex<Ledger<TriggerBook>>,
    pub(super) live: Mutex<BTreeMap<TriggerName, Arc<LiveTrigger>>>,
    /// Wakes the timer to check the schedules again.
    pub(super) rescheduled: Arc<Notify>,
    /// Notified when there may be triggers for the clipboard.
    pub(super) clipboard_wanted: Arc<Notify>,
    pub(super) looks: Semaphore,
    pub(super) tasks: Mutex<Vec<AbortHandle>>,
}

pub(super) struct LiveTrigger {
    pub(super) name: TriggerName,
    pub(super) config: TriggerConfig,
    pub(super) budget: DayBudget,
    /// Locked while the trigger fires, so that causes are handled one by one.
    pub(super) firing: tokio::sync::Mutex<Rate>,
    pub(super) next_ms: Mutex<Option<i64>>,
    pub(super) problem: Mutex<Option<String>>,
    pub(super) watching: Mutex<Option<AbortHandle>>,
}

impl Drop for LiveTrigger {
    fn drop(&mut self) {
        if let Some(watching) = &*self.watching.lock() {
            watching.abort();
        }
    }
}

impl Drop for TriggersInner {
    fn drop(&mut self) {
        for task in &*self.tasks.lock() {
            task.abort();
        }
    }
}

impl LiveTrigger {
    pub(super) fn new(name: TriggerName, config: TriggerConfig, budget: DayBudget) -> Self {
        let problem = match &config.source {
            TriggerSource::Webhook { secret: None } => Some(TriggerError::NoSecret.to_string()),
            TriggerSource::Files { .. } => Some("its files were not looked at yet".to_owned()),
            TriggerSource::Clipboard => Some("the clipboard was not looked at yet".to_owned()),
            TriggerSource::Webhook { .. } | TriggerSource::Cron { .. } => None,
        };
        Self {
            name,
            config,
            budget,
            firing: tokio::sync::Mutex::default(),
            next_ms: Mutex::default(),
            problem: Mutex::new(problem),
            watching: Mutex::default(),
        }
    }
}

impl TriggersInner {
    pub(super) fn book(&self) -> MutexGuard<'_, Ledger<TriggerBook>> {
        let mut book = self.book.lock();
        // A disk that still refuses says so to whoever writes.
        let _ = book.go_on();
        book
    }

    pub(super) fn trigger(
        &self,
        agent: &str,
        trigger: &str,
    ) -> Result<Arc<LiveTrigger>, TriggerError> {
        let name = TriggerName {
            agent: agent.to_owned(),
            trigger: trigger.to_owned(),
        };
        let missing = || TriggerError::NotFound {
            agent: agent.chars().take(80).collect(),
            trigger: trigger.chars().take(80).collect(),
        };
        self.live.lock().get(&name).cloned().ok_or_else(missing)
    }

    /// Appends facts, and waits until they are on disk.
    pub(super) async fn record(&self, facts: Vec<TriggerFact>) -> Result<(), TriggerError> {
        let writer = {
            let mut book = self.book();
            book.append(facts)?;
            book.writer()
        };
        writer.barrier().await?;
        Ok(())
    }

    /// Whether a run of an agent is working at this moment: not one that waits.
    pub(super) fn is_working(&self, agent: &str) -> bool {
        let run = self.agents.look(agent, |record| record.run);
        let Ok(Some(run)) = run else {
            return false;
        };
        self.gateway.with(|queue| {
            let command = queue.of_run(run);
            command.is_some_and(|command| matches!(command.stage, CommandStage::Running { .. }))
        })
    }

    pub(super) fn look<T>(&self, name: &TriggerName, look: impl FnOnce(&TriggerRecord) -> T) -> T {
        let (book, none) = (self.book(), TriggerRecord::default());
        look(book.state().get(name).unwrap_or(&none))
    }
}
