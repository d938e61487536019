//! Agents that live: named, each with a log of its own, fed by the event bus.
//!
//! The one idea: an agent is the fold of its log. Events are put into its mailbox there, its
//! behaviour turns the first of them into a new state and a list of actions, which are recorded
//! together, and then the actions are carried out one by one. A process that ends at any moment is
//! followed by one that goes on with the same event and the same action.
//!
//! An agent that has nothing to do has no task and no timer.

mod agent;
mod behavior;
mod error;
mod record;
mod runs;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use futures_util::FutureExt as _;
use gyrus_contract::Principal;
use gyrus_journal::Store;
use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinSet};

use self::{agent::Agent, error::MAX_NAME};
pub use self::{
    behavior::{AgentAction, AgentBehavior, AgentState, BehaviorError, MAX_ACTIONS, MAX_STATE},
    error::{AgentError, MAX_AGENTS},
    record::{AgentConfig, AgentFact, AgentFigures, AgentRecord, AgentStage, MailboxOverflow},
    runs::{AgentRun, AgentRunEnd, AgentRuns, AgentWork, NOTHING_TO_DO},
};
use crate::{
    DurableItem, Event, EventBus, EventPosition, StartAt, Topic, TopicPattern, blocking,
    ledger::{Ledger, TRY_AGAIN, is_of_disk},
};

/// The name under which agents subscribe to the bus, all together.
const SUBSCRIBER: &str = "agents";

/// All agents of a store. Clones are the same agents; they live until the last one is dropped.
#[derive(Clone)]
pub struct Agents {
    shared: Arc<AgentsInner>,
}

struct AgentsInner {
    store: Store,
    bus: EventBus,
    agents: Mutex<BTreeMap<String, Arc<Agent>>>,
    working: Mutex<JoinSet<()>>,
    routing: Mutex<Option<AbortHandle>>,
}

impl Drop for AgentsInner {
    fn drop(&mut self) {
        let routing = self.routing.lock();
        if let Some(routing) = &*routing {
            routing.abort();
        }
    }
}

impl Agents {
    /// Opens the agents of a store, on the bus of the same store. None of them lives before it is
    /// created again with its behaviour, and nothing is delivered before [`Agents::begin`].
    pub fn open(store: &Store, bus: EventBus) -> Self {
        Self {
            shared: Arc::new(AgentsInner {
                store: store.clone(),
                bus,
                agents: Mutex::default(),
                working: Mutex::default(),
                routing: Mutex::default(),
            }),
        }
    }

    /// Creates an agent, or revives the one of this name with its state and its mailbox.
    ///
    /// # Errors
    /// The name is not usable or in use, the agent is retired, or its log cannot be used.
    pub async fn create_agent<B: AgentBehavior>(
        &self,
        config: AgentConfig,
        behavior: Box<B>,
        runs: Arc<dyn AgentRuns>,
    ) -> Result<(), AgentError> {
        let name = config.name.clone();
        check_name(&name)?;
        let count = self.shared.agents.lock().len();
        if self.shared.agents.lock().contains_key(&name) {
            return Err(AgentError::Exists { name });
        }
        if count >= MAX_AGENTS {
            return Err(AgentError::TooMany);
        }
        let (store, id) = (self.shared.store.clone(), name.clone());
        let ledger = blocking(move || Ledger::<AgentRecord>::open(&store, &id)).await?;
        if let Some(AgentStage::Retired { .. }) = ledger.state().stage {
            return Err(AgentError::Retired { name });
        }
        let is_new_config = ledger.state().config.as_ref() != Some(&config);
        let agent = Arc::new(Agent::new(name.clone(), ledger, behavior, runs));
        if is_new_config {
            agent.record(vec![AgentFact::Configured(config)]).await?;
        }
        self.shared.agents.lock().insert(name, Arc::clone(&agent));
        self.shared.wake(&agent);
        Ok(())
    }

    /// Reads the agent of this name from disk, even while another process has it; `None` if there
    /// was never one.
    pub fn read(store: &Store, name: &str) -> Result<Option<AgentRecord>, AgentError> {
        let record = Ledger::<AgentRecord>::read(store, name)?;
        Ok(record.config.is_some().then_some(record))
    }

    /// Returns the names of all agents that have a log, alive or not.
    pub fn known(store: &Store) -> Result<Vec<String>, AgentError> {
        Ok(Ledger::<AgentRecord>::ids(store)?)
    }

    /// Checks the name of an agent.
    ///
    /// # Errors
    /// The name is invalid.
    pub fn check_name(name: &str) -> Result<(), AgentError> {
        check_name(name)
    }

    /// Returns the bus on which the agents hear events.
    pub fn bus(&self) -> &EventBus {
        &self.shared.bus
    }

    /// Changes the settings of an agent, from the next event on.
    ///
    /// # Errors
    /// There is no such agent, or its log cannot be written.
    pub async fn configure(&self, config: AgentConfig) -> Result<(), AgentError> {
        let agent = self.agent(&config.name)?;
        agent.go_on()?;
        if agent.with(|record| record.config.as_ref() == Some(&config)) {
            return Ok(());
        }
        agent.record(vec![AgentFact::Configured(config)]).await
    }

    /// Begins to deliver events from the bus, from the position at which the last process ended.
    ///
    /// # Errors
    /// The bus cannot be read, or somebody delivers already.
    pub async fn begin(&self) -> Result<(), AgentError> {
        let all: TopicPattern = "**".parse().expect("it is a pattern");
        let bus = self.shared.bus.clone();
        let mut events = bus
            .subscribe_durable(SUBSCRIBER, &[all], StartAt::Acknowledged)
            .await?;
        let shared = Arc::downgrade(&self.shared);
        let routing = tokio::spawn(async move {
            while let Ok(item) = events.next().await {
                let mut batch = vec![item];
                // What is ready is acknowledged together.
                while let Some(Ok(item)) = events.next().now_or_never() {
                    batch.push(item);
                }
                let Some(shared) = Weak::upgrade(&shared) else {
                    return;
                };
                while let Err(error) = shared.deliver(&batch).await {
                    if !is_of_disk(&error) {
                        return;
                    }
                    tokio::time::sleep(TRY_AGAIN).await;
                }
            }
        });
        let handle = routing.abort_handle();
        *self.shared.routing.lock() = Some(handle);
        Ok(())
    }

    /// Returns the names of the live agents.
    pub fn names(&self) -> Vec<String> {
        self.shared.agents.lock().keys().cloned().collect()
    }

    /// Calls `look` on the record of an agent.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn look<T>(
        &self,
        name: &str,
        look: impl FnOnce(&AgentRecord) -> T,
    ) -> Result<T, AgentError> {
        Ok(self.agent(name)?.with(look))
    }

    /// Adds an event to the inbox of an agent, durably; `event` makes it for the inbox's topic.
    ///
    /// # Errors
    /// There is no such agent, or the event cannot be stored.
    pub async fn tell(
        &self,
        name: &str,
        event: impl FnOnce(Topic) -> Event,
    ) -> Result<EventPosition, AgentError> {
        // An event for an agent that nobody has would be lost.
        self.look(name, |_| ())?;
        let topic = format!("agent.{name}.inbox").parse();
        let topic = topic.expect("the name of an agent is a word of a topic");
        Ok(self.bus().publish_durable(event(topic)).await?)
    }

    /// Pauses an agent: events wait in its mailbox. The event in progress is finished.
    ///
    /// # Errors
    /// There is no such agent, or its log cannot be written.
    pub async fn pause(
        &self,
        name: &str,
        by: Principal,
        why: Option<String>,
    ) -> Result<(), AgentError> {
        self.stage(name, AgentStage::Paused { by, why }).await
    }

    /// Resumes an agent that was paused or quarantined.
    ///
    /// # Errors
    /// There is no such agent, it is retired, or its log cannot be written.
    pub async fn resume(&self, name: &str) -> Result<(), AgentError> {
        self.stage(name, AgentStage::Active).await?;
        let agent = self.agent(name)?;
        self.shared.wake(&agent);
        Ok(())
    }

    /// Drops the first event of an agent's mailbox.
    ///
    /// # Errors
    /// There is no such agent, or its log cannot be written.
    pub async fn skip(&self, name: &str, by: Principal) -> Result<(), AgentError> {
        let agent = self.agent(name)?;
        if agent.with(|record| record.mailbox.is_empty()) {
            return Ok(());
        }
        agent.record(vec![AgentFact::Skipped { by }]).await
    }

    /// Ends an agent for good. Its log stays.
    ///
    /// # Errors
    /// There is no such agent, or its log cannot be written.
    pub async fn retire(&self, name: &str, by: Principal) -> Result<(), AgentError> {
        self.stage(name, AgentStage::Retired { by }).await?;
        self.shared.agents.lock().remove(name);
        Ok(())
    }

    async fn stage(&self, name: &str, stage: AgentStage) -> Result<(), AgentError> {
        let agent = self.agent(name)?;
        agent.go_on()?;
        agent.record(vec![AgentFact::Stage(stage)]).await
    }

    fn agent(&self, name: &str) -> Result<Arc<Agent>, AgentError> {
        let missing = || AgentError::NotFound {
            name: name.to_owned(),
        };
        self.shared
            .agents
            .lock()
            .get(name)
            .cloned()
            .ok_or_else(missing)
    }
}

impl AgentsInner {
    /// Puts events into the mailboxes of their subscribers, and acknowledges them once they are on
    /// disk there.
    async fn deliver(self: &Arc<Self>, batch: &[DurableItem]) -> Result<(), AgentError> {
        let agents: Vec<Arc<Agent>> = self.agents.lock().values().cloned().collect();
        let mut last = EventPosition(0);
        let mut receivers: BTreeMap<String, Arc<Agent>> = BTreeMap::new();
        for item in batch {
            let (position, event) = match item {
                DurableItem::Event(position, event) => (*position, event),
                // Nobody was there for so long that the history went on without.
                DurableItem::Lost { to, .. } => {
                    last = *to;
                    continue;
                }
            };
            last = position;
            for agent in agents.iter().filter(|agent| is_for(agent, event)) {
                agent.receive(position, event)?;
                receivers.insert(agent.name.clone(), Arc::clone(agent));
            }
        }
        for agent in receivers.values() {
            agent.settle().await?;
        }
        self.bus.acknowledge(SUBSCRIBER, last).await?;
        for agent in receivers.values() {
            self.wake(agent);
        }
        Ok(())
    }

    /// Starts the agent's work, which lasts until its mailbox is empty.
    fn wake(self: &Arc<Self>, agent: &Arc<Agent>) {
        let (agent, bus) = (Arc::clone(agent), self.bus.clone());
        let mut working = self.working.lock();
        while working.try_join_next().is_some() {}
        working.spawn(async move {
            // A damaged log stops the agent; whoever looks at it sees that.
            while let Err(error) = agent.work(&bus).await
                && is_of_disk(&error)
            {
                tokio::time::sleep(TRY_AGAIN).await;
            }
        });
    }
}

/// Whether an event is for an agent: it is addressed to it, or the agent subscribed to it.
fn is_for(agent: &Agent, event: &Event) -> bool {
    let own = event.topic.as_str().strip_prefix("agent.");
    let own = own.and_then(|rest| rest.strip_suffix(".inbox"));
    own == Some(&agent.name)
        || agent.with(|record| {
            let config = record.config.iter();
            let mut patterns = config.flat_map(|config| &config.subscriptions);
            // An agent does not hear itself.
            event.from != agent.name && patterns.any(|pattern| pattern.matches(&event.topic))
        })
}

fn check_name(name: &str) -> Result<(), AgentError> {
    let is_name = (1..=MAX_NAME).contains(&name.len())
        && name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        && !name.contains("--")
        && !name.starts_with('-')
        && !name.ends_with('-');
    if is_name {
        Ok(())
    } else {
        Err(AgentError::BadName {
            name: name.chars().take(MAX_NAME).collect(),
        })
    }
}
