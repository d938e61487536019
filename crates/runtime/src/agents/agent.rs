//! One agent at work: it takes the first event of its mailbox, lets its behaviour decide, and
//! carries the actions out, each once. Everything that it does is in its log before it counts, so
//! whoever opens the log again goes on where this process ended.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use gyrus_contract::{Origin, RunId};
use parking_lot::Mutex;
use serde_json::json;

use super::{
    behavior::{AgentAction, BehaviorError, ErasedBehavior, MAX_ACTIONS, MAX_STATE},
    error::AgentError,
    record::{AgentFact, AgentRecord, AgentStage},
    runs::{AgentRun, AgentRunEnd, AgentRuns, AgentWork},
};
use crate::{
    Event, EventBus, EventId, EventPosition, Topic,
    ledger::{Ledger, LedgerError},
};

/// The first pause after a failure; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Maximum number of characters of a summary and of a reason.
const WORDS: usize = 500;

pub(super) struct Agent {
    pub(super) name: String,
    ledger: Mutex<Ledger<AgentRecord>>,
    behavior: tokio::sync::Mutex<Box<dyn ErasedBehavior>>,
    runs: Arc<dyn AgentRuns>,
}

impl Agent {
    pub(super) fn new(
        name: String,
        ledger: Ledger<AgentRecord>,
        behavior: Box<dyn ErasedBehavior>,
        runs: Arc<dyn AgentRuns>,
    ) -> Self {
        Self {
            name,
            ledger: Mutex::new(ledger),
            behavior: tokio::sync::Mutex::new(behavior),
            runs,
        }
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&AgentRecord) -> T) -> T {
        look(self.ledger.lock().state())
    }

    /// Opens the log again if the disk refused a write.
    pub(super) fn go_on(&self) -> Result<(), AgentError> {
        Ok(self.ledger.lock().go_on()?)
    }

    /// Appends facts, and waits until they are on disk.
    pub(super) async fn record(&self, facts: Vec<AgentFact>) -> Result<(), AgentError> {
        let writer = {
            let mut ledger = self.ledger.lock();
            ledger.append(facts)?;
            ledger.writer()
        };
        writer.barrier().await.map_err(LedgerError::from)?;
        Ok(())
    }

    /// Adds an event to the mailbox, unless it is already there. It is on disk with the next
    /// [`Agent::record`], or after [`Agent::settle`].
    pub(super) fn receive(&self, position: EventPosition, event: &Event) -> Result<(), AgentError> {
        let mut ledger = self.ledger.lock();
        // What is not on disk was not received.
        ledger.go_on()?;
        let record = ledger.state();
        if record.received >= position.0 {
            return Ok(());
        }
        let Some(config) = &record.config else {
            return Ok(());
        };
        let mut facts = vec![AgentFact::Received {
            position,
            event: Box::new(event.clone()),
        }];
        if record.mailbox.len() >= config.mailbox.max(1) {
            let dropped = match config.overflow {
                super::record::MailboxOverflow::DropNewest => {
                    facts.clear();
                    position
                }
                // The first may be in progress.
                super::record::MailboxOverflow::DropOldest => {
                    record.mailbox.get(1).map_or(position, |(at, _)| *at)
                }
            };
            facts.push(AgentFact::Dropped { position: dropped });
        }
        ledger.append(facts)?;
        Ok(())
    }

    /// Waits until everything that was received is on disk.
    pub(super) async fn settle(&self) -> Result<(), AgentError> {
        let writer = self.ledger.lock().writer();
        writer.barrier().await.map_err(LedgerError::from)?;
        Ok(())
    }

    /// Handles events until the mailbox is empty or the agent is no longer active.
    pub(super) async fn work(&self, bus: &EventBus) -> Result<(), AgentError> {
        // Only one at a time works for an agent.
        let mut behavior = self.behavior.lock().await;
        self.go_on()?;
        loop {
            let next = self.with(|record| {
                let (position, event) = record.mailbox.front()?;
                let actions = record.actions.clone();
                record
                    .is_active()
                    .then(|| (*position, event.clone(), actions, record.run))
            });
            let Some((position, event, actions, run)) = next else {
                return Ok(());
            };
            match actions {
                None => self.decide(&mut **behavior, event).await?,
                Some((actions, done)) => {
                    // The record ends an event whose actions are all done.
                    let Some(action) = actions.get(done) else {
                        return Ok(());
                    };
                    let step = ActionInProgress {
                        event: &event,
                        id: (position, done),
                        run,
                    };
                    let summary = self.perform(bus, action, step).await?;
                    self.record(vec![AgentFact::Performed { summary }]).await?;
                }
            }
        }
    }

    /// Runs the behaviour on an event and returns its decision.
    async fn decide(
        &self,
        behavior: &mut dyn ErasedBehavior,
        event: Event,
    ) -> Result<(), AgentError> {
        let mut state = self.with(|record| record.state.clone());
        let deciding = AssertUnwindSafe(behavior.on_event(event, &mut state)).catch_unwind();
        let decided = match deciding.await {
            Ok(Ok(actions)) if actions.len() > MAX_ACTIONS => Err(BehaviorError(format!(
                "{} actions for one event; at most {MAX_ACTIONS} are carried out",
                actions.len()
            ))),
            Ok(decided) => decided,
            Err(panic) => Err(BehaviorError(format!("it panicked: {}", words_of(&*panic)))),
        };
        let size = serde_json::to_vec(&state).map_or(usize::MAX, |bytes| bytes.len());
        match decided {
            Ok(actions) if size <= MAX_STATE => {
                self.record(vec![AgentFact::Handled { state, actions }])
                    .await
            }
            Ok(_) => {
                self.failed(format!("its state is larger than {MAX_STATE} bytes"))
                    .await
            }
            Err(error) => self.failed(error.0).await,
        }
    }

    /// Records a failure, and waits before the event is tried again, or quarantines the agent.
    async fn failed(&self, why: String) -> Result<(), AgentError> {
        let why: String = why.chars().take(WORDS).collect();
        let (failures, retries) = self.with(|record| {
            let retries = record.config.as_ref().map_or(0, |config| config.retries);
            (record.failures, retries)
        });
        let mut facts = vec![AgentFact::Failed { why: why.clone() }];
        if failures >= retries {
            facts.push(AgentFact::Stage(AgentStage::Quarantined { why }));
            return self.record(facts).await;
        }
        self.record(facts).await?;
        tokio::time::sleep(FIRST_PAUSE.saturating_mul(1 << failures.min(10))).await;
        Ok(())
    }

    /// Carries out an action, and returns its result in one sentence.
    async fn perform(
        &self,
        bus: &EventBus,
        action: &AgentAction,
        step: ActionInProgress<'_>,
    ) -> Result<String, AgentError> {
        match action {
            AgentAction::Publish { topic, payload } => {
                let mut event = self.event(topic.clone(), payload.clone(), &step, 0);
                event.reply_to = None;
                // An event that cannot be published is a mistake of the behaviour's, not a fault.
                match bus.publish_durable(event).await {
                    Ok(_) => Ok(format!("published `{topic}`")),
                    Err(crate::BusError::Event(error)) => Ok(format!("not published: {error}")),
                    Err(error) => Err(error.into()),
                }
            }
            AgentAction::Reply { payload } => {
                let origin = self.origin(&step);
                self.reply(bus, payload.clone(), origin, &step).await
            }
            AgentAction::Call { calls } => {
                let work = AgentWork::Calls(calls.clone());
                let end = self.drive(work, &step).await?;
                self.tell(bus, "called", &end, &step).await?;
                Ok(end.summary)
            }
            AgentAction::Run { goal, context } => {
                let work = AgentWork::Goal {
                    goal: goal.clone(),
                    context: context.clone(),
                    continues: self.with(|record| record.last_run),
                };
                let end = self.drive(work, &step).await?;
                let word = if end.reached { "reached" } else { "failed" };
                self.tell(bus, word, &end, &step).await?;
                Ok(end.summary)
            }
        }
    }

    /// Drives the run of an action. It has begun in the log before it begins.
    async fn drive(
        &self,
        work: AgentWork,
        step: &ActionInProgress<'_>,
    ) -> Result<AgentRunEnd, AgentError> {
        let mut agent_run = AgentRun {
            agent: self.name.clone(),
            run: step.run.unwrap_or_default(),
            work,
            correlation: step.event.correlation.clone(),
        };
        if step.run.is_none() {
            let run = self.runs.place(&agent_run, step.event.id).await;
            self.record(vec![AgentFact::Began { run }]).await?;
            agent_run.run = run;
        }
        let mut end = self.runs.drive(agent_run).await;
        end.summary = end.summary.chars().take(WORDS).collect();
        Ok(end)
    }

    /// Informs subscribers, and publishers that wait for a reply, of the end of a run.
    async fn tell(
        &self,
        bus: &EventBus,
        word: &str,
        end: &AgentRunEnd,
        step: &ActionInProgress<'_>,
    ) -> Result<(), AgentError> {
        let mut payload = json!({
            "reached": end.reached,
            "summary": end.summary,
            "answer": end.answer,
        });
        if end.nothing_to_do {
            payload["nothing_to_do"] = json!(true);
        }
        let topic: Topic = format!("agent.{}.{word}", self.name)
            .parse()
            .expect("names of agents are words of a topic");
        let mut event = self.event(topic.clone(), payload.clone(), step, 1);
        event.reply_to = None;
        // An answer may hold what a page or a file said.
        let origin = Origin::Event {
            topic: topic.to_string(),
        };
        event.origin = origin.clone();
        bus.publish_durable(event).await?;
        self.reply(bus, payload, origin, step).await?;
        Ok(())
    }

    async fn reply(
        &self,
        bus: &EventBus,
        payload: serde_json::Value,
        origin: Origin,
        step: &ActionInProgress<'_>,
    ) -> Result<String, AgentError> {
        let Some(reply) = step.event.reply(&self.name, origin, payload) else {
            return Ok("nobody waits for a reply".to_owned());
        };
        // A topic of a conversation that is over has no subscriber any more.
        let heard = bus.publish(reply).await?;
        Ok(match heard {
            0 => "nobody waits for the reply any more".to_owned(),
            _ => "replied".to_owned(),
        })
    }

    /// Creates an event of this agent for a step. Its id is the same whenever the step is repeated.
    fn event(
        &self,
        topic: Topic,
        payload: serde_json::Value,
        step: &ActionInProgress<'_>,
        part: u8,
    ) -> Event {
        let mut event = Event::new(topic, &*self.name, self.origin(step), payload);
        let (position, number) = step.id;
        let name = format!("{}/{position}/{number}/{part}", self.name);
        event.id = EventId::derived(&name);
        event.correlation.clone_from(&step.event.correlation);
        event
    }

    /// Returns the origin of an agent's words: they are as far to be trusted as those that it was
    /// told, no more.
    fn origin(&self, step: &ActionInProgress<'_>) -> Origin {
        if step.event.origin.is_trusted() {
            Origin::Kernel
        } else {
            Origin::Event {
                topic: step.event.topic.to_string(),
            }
        }
    }
}

struct ActionInProgress<'e> {
    event: &'e Event,
    /// The event's position and the action's number.
    id: (EventPosition, usize),
    run: Option<RunId>,
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without words".to_owned())
}
