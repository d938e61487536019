//! Triggers wake agents: instants of a schedule, changed files, and signed requests from outside.
//!
//! The one idea: a firing is an event to `agent.NAME.inbox` whose id follows from what set the
//! trigger off (the instant, the files as they are, the delivery). It is published durably before
//! the log of triggers goes on, so whoever publishes it again after a crash publishes the same
//! event, which the bus stores once. Everything that costs nothing is checked before: conditions,
//! pauses and budgets; an agent that waits costs no task of its own and no wake-up, and one timer
//! serves all schedules.
//!
//! Events of other agents need no trigger: an agent subscribes to them.

mod cron;
mod when;
mod signature;
mod config;
mod record;
mod error;
mod rate;
mod shared;
mod clock;
mod reader;
mod missed;
mod files;
mod firing;
mod timer;
mod watching;
mod clipboard;
mod results;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

use gyrus_contract::Principal;
use gyrus_journal::Store;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use self::shared::{LiveTrigger, TriggersInner};
pub use self::{
    clock::{SystemClock, TriggerClock},
    config::{
        DayBudget, FileGlobs, MAX_GLOBS, MAX_TRIGGERS, MissedPolicy, PAUSE_AFTER, SETTLE,
        TriggerConfig, TriggerSource,
    },
    cron::{CronError, CronSchedule},
    error::TriggerError,
    files::{MAX_FILES, MAX_FOLDERS},
    firing::DeliveryFate,
    reader::ClipboardReader,
    record::{
        HeldBack, TriggerBook, TriggerFact, TriggerFiring, TriggerMark, TriggerName, TriggerRecord,
    },
    signature::{HookHead, HookRefusal, HookSecret, HookSecretError},
    when::{Comparison, Condition, ConditionError, MAX_CONDITIONS},
};
use crate::{agents::Agents, ledger::Ledger, queue::Gateway};

const ID: &str = "main";

/// Maximum number of file scans at once.
const LOOKS_AT_ONCE: usize = 2;

/// The triggers of all agents. Clones are the same triggers, which work until the last is dropped.
#[derive(Clone)]
pub struct Triggers {
    shared: Arc<TriggersInner>,
}

/// The present state of a trigger.
#[derive(Debug, Clone)]
pub struct TriggerStatus {
    pub name: String,
    /// The kind: `cron`, `files`, `clipboard` or `webhook`; `None` if no server has it.
    pub kind: Option<&'static str>,
    /// The next instant of the schedule, in UTC milliseconds.
    pub next_ms: Option<i64>,
    /// The reason why the trigger cannot fire.
    pub problem: Option<String>,
    /// Number of firings today (UTC).
    pub wakes_today: u64,
    pub record: TriggerRecord,
}

impl Triggers {
    /// Opens the triggers of these agents. Nothing sets them off before [`Triggers::begin`].
    ///
    /// # Errors
    /// Another process has them, or they cannot be read.
    pub fn open(
        agents: &Agents,
        gateway: &Gateway,
        clock: Arc<dyn TriggerClock>,
        clipboard: Arc<dyn ClipboardReader>,
    ) -> Result<Self, TriggerError> {
        let book = Ledger::open(gateway.store(), ID)?;
        Ok(Self {
            shared: Arc::new(TriggersInner {
                agents: agents.clone(),
                gateway: gateway.clone(),
                clock,
                clipboard,
                book: Mutex::new(book),
                live: Mutex::default(),
                rescheduled: Arc::default(),
                clipboard_wanted: Arc::default(),
                looks: Semaphore::new(LOOKS_AT_ONCE),
                tasks: Mutex::default(),
            }),
        })
    }

    /// Begins to follow the clock and the ends of the runs that triggers woke.
    ///
    /// # Errors
    /// The bus cannot be read, or somebody follows already.
    pub async fn begin(&self) -> Result<(), TriggerError> {
        let results = results::follow(&self.shared).await?;
        let timer = timer::follow(&self.shared);
        let clipboard = clipboard::follow(&self.shared);
        self.shared.tasks.lock().extend([results, timer, clipboard]);
        Ok(())
    }

    pub fn agents(&self) -> &Agents {
        &self.shared.agents
    }

    /// Sets the triggers of an agent. Those that are as before go on; what is remembered of others
    /// is forgotten.
    pub async fn set(
        &self,
        agent: &str,
        budget: DayBudget,
        triggers: &[TriggerConfig],
    ) -> Result<(), TriggerError> {
        let names: BTreeSet<&str> = triggers.iter().map(|one| &*one.name).collect();
        self.keep(agent, |live| {
            live.budget == budget && triggers.contains(&live.config)
        });
        let known = self
            .shared
            .book()
            .state()
            .of_agent(agent)
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>();
        let removed = known
            .into_iter()
            .filter(|name| !names.contains(&*name.trigger));
        let removed: Vec<_> = removed.map(|name| TriggerFact::Removed { name }).collect();
        if !removed.is_empty() {
            self.shared.record(removed).await?;
        }
        for config in triggers {
            let name = TriggerName {
                agent: agent.to_owned(),
                trigger: config.name.clone(),
            };
            if self.shared.live.lock().contains_key(&name) {
                continue;
            }
            let live = Arc::new(LiveTrigger::new(name.clone(), config.clone(), budget));
            self.shared.live.lock().insert(name, Arc::clone(&live));
            watching::begin(&self.shared, &live);
        }
        self.shared.rescheduled.notify_one();
        self.shared.clipboard_wanted.notify_one();
        Ok(())
    }

    /// Sets no trigger of an agent off any more. What is remembered of them stays.
    pub fn silence(&self, agent: &str) {
        self.keep(agent, |_| false);
        self.shared.rescheduled.notify_one();
    }

    fn keep(&self, agent: &str, keeps: impl Fn(&LiveTrigger) -> bool) {
        self.shared
            .live
            .lock()
            .retain(|name, live| name.agent != agent || keeps(live));
    }

    /// Resumes all paused triggers of an agent.
    pub async fn resume(&self, agent: &str) -> Result<(), TriggerError> {
        let facts: Vec<TriggerFact> = {
            let book = self.shared.book();
            let own = book.state().of_agent(agent);
            let paused = own.filter(|(_, record)| record.paused.is_some());
            paused
                .map(|(name, _)| TriggerFact::Resumed { name: name.clone() })
                .collect()
        };
        if facts.is_empty() {
            return Ok(());
        }
        self.shared.record(facts).await
    }

    /// Fires a trigger manually, whatever its conditions, pauses and budgets say.
    ///
    /// # Errors
    /// There is no such trigger, or the event cannot be published.
    pub async fn fire(
        &self,
        agent: &str,
        trigger: &str,
        by: &Principal,
    ) -> Result<(), TriggerError> {
        let live = self.shared.trigger(agent, trigger)?;
        self.shared.fire_by_hand(&live, by).await
    }

    /// Accepts a delivery to a webhook. It is on disk when this returns.
    ///
    /// # Errors
    /// There is no such webhook, the delivery is refused, or the event cannot be published.
    pub async fn deliver(
        &self,
        agent: &str,
        trigger: &str,
        head: HookHead<'_>,
        body: &[u8],
    ) -> Result<DeliveryFate, TriggerError> {
        let live = self.shared.trigger(agent, trigger)?;
        self.shared.deliver(&live, head, body).await
    }

    /// Returns the present state of an agent's triggers.
    pub fn of_agent(&self, agent: &str) -> Vec<TriggerStatus> {
        let now = self.shared.clock.now_ms();
        let live = self.shared.live.lock();
        let own = live.values().filter(|live| live.name.agent == agent);
        let own: Vec<_> = own.cloned().collect();
        drop(live);
        let book = self.shared.book();
        own.iter()
            .map(|live| {
                let record = book.state().get(&live.name).cloned().unwrap_or_default();
                TriggerStatus {
                    name: live.name.trigger.clone(),
                    kind: Some(live.config.source.kind()),
                    next_ms: *live.next_ms.lock(),
                    problem: live.problem.lock().clone(),
                    wakes_today: record.wakes_today(now),
                    record,
                }
            })
            .collect()
    }

    /// Reads the triggers of an agent from disk, while no server runs them.
    pub fn read(store: &Store, agent: &str) -> Result<Vec<TriggerStatus>, TriggerError> {
        let book: TriggerBook = Ledger::read(store, ID)?;
        let now = gyrus_kernel::now_ms();
        let own = book.of_agent(agent);
        Ok(own
            .map(|(name, record)| TriggerStatus {
                name: name.trigger.clone(),
                kind: None,
                next_ms: None,
                problem: None,
                wakes_today: record.wakes_today(now),
                record: record.clone(),
            })
            .collect())
    }
}
