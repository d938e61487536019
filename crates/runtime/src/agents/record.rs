//! An agent as the fold of its log: its settings, its mailbox, its state, and what it has begun.

use std::collections::VecDeque;

use gyrus_contract::{Principal, RunId};
use serde::{Deserialize, Serialize};

use super::behavior::{AgentAction, AgentState};
use crate::{Event, EventPosition, TopicPattern, ledger::Fold};

/// The fate of an event whose mailbox is full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailboxOverflow {
    /// The oldest event in the mailbox makes room.
    #[default]
    DropOldest,
    /// The new event is dropped.
    DropNewest,
}

/// The settings of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentConfig {
    /// The name: 1 to 40 characters of `a` to `z`, `0` to `9` and `-`, none of them doubled dashes.
    pub name: String,
    /// Events beside those to `agent.NAME.inbox` that it receives.
    #[serde(default)]
    pub subscriptions: Vec<TopicPattern>,
    /// Maximum number of events that wait.
    pub mailbox: usize,
    /// The fate of an event when so many wait.
    #[serde(default)]
    pub overflow: MailboxOverflow,
    /// Number of times that an event is tried again after its behaviour failed; after that the agent
    /// is quarantined.
    pub retries: u32,
}

impl AgentConfig {
    /// Returns settings with this name: 1,000 events wait, and an event is tried four times.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            subscriptions: Vec::new(),
            mailbox: 1_000,
            overflow: MailboxOverflow::default(),
            retries: 3,
        }
    }

    /// Receives events of these topics.
    #[must_use]
    pub fn with_subscription(mut self, pattern: TopicPattern) -> Self {
        self.subscriptions.push(pattern);
        self
    }
}

/// The stage of an agent's life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum AgentStage {
    /// It handles events as they come.
    Active,
    /// Events wait in its mailbox.
    Paused {
        /// The person who paused it.
        by: Principal,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// It failed too often; events wait until a person resumes it.
    Quarantined {
        /// The last failure.
        why: String,
    },
    /// It receives nothing any more.
    Retired {
        /// The person who retired it.
        by: Principal,
    },
}

/// A fact of an agent's log.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", content = "payload")]
pub enum AgentFact {
    /// It was created, or its settings were changed.
    #[serde(rename = "agent.configured")]
    Configured(AgentConfig),
    /// It reached a stage of its life.
    #[serde(rename = "agent.stage")]
    Stage(AgentStage),
    /// An event arrived.
    #[serde(rename = "agent.received")]
    Received {
        /// Its position on the bus.
        position: EventPosition,
        event: Box<Event>,
    },
    /// An event was dropped, because the mailbox was full.
    #[serde(rename = "agent.dropped")]
    Dropped {
        /// Its position on the bus.
        position: EventPosition,
    },
    /// The behaviour failed on the first event of the mailbox.
    #[serde(rename = "agent.failed")]
    Failed { why: String },
    /// The behaviour handled the first event of the mailbox.
    #[serde(rename = "agent.handled")]
    Handled {
        /// The state after it.
        state: AgentState,
        /// The actions that it asks for.
        actions: Vec<AgentAction>,
    },
    /// An action was begun that needs a run.
    #[serde(rename = "agent.began")]
    Began { run: RunId },
    /// The next action was carried out.
    #[serde(rename = "agent.performed")]
    Performed {
        /// The result, in one sentence.
        summary: String,
    },
    /// The first event of the mailbox was given up by a person.
    #[serde(rename = "agent.skipped")]
    Skipped { by: Principal },
    /// Figures of what was folded away.
    #[serde(rename = "agent.figures")]
    Figures(AgentFigures),
    /// The state, and how far the agent has come with the first event of its mailbox.
    #[serde(rename = "agent.position")]
    Position {
        state: AgentState,
        /// The position of the last event that it received.
        received: EventPosition,
        /// Failures on the first event.
        failures: u32,
        /// Actions for the first event.
        actions: Option<Vec<AgentAction>>,
        /// Number of actions that are done.
        done: usize,
        /// The run in progress.
        run: Option<RunId>,
        last_run: Option<RunId>,
    },
}

/// Figures of an agent's life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFigures {
    /// Events that were handled to the end.
    pub handled: u64,
    /// Failures of its behaviour.
    pub failures: u64,
    /// Events that were dropped or skipped.
    pub dropped: u64,
}

/// An agent as its log tells it.
#[derive(Debug, Clone, Default)]
pub struct AgentRecord {
    /// The settings; `None` before it was created.
    pub config: Option<AgentConfig>,
    /// The stage; active if nothing else is said.
    pub stage: Option<AgentStage>,
    pub state: AgentState,
    /// Events that wait, the one in progress first.
    pub mailbox: VecDeque<(EventPosition, Event)>,
    /// The position of the last event that it received.
    pub received: u64,
    /// Failures on the first event.
    pub failures: u32,
    /// Actions for the first event, and how many of them are done.
    pub actions: Option<(Vec<AgentAction>, usize)>,
    /// The run in progress.
    pub run: Option<RunId>,
    /// The last run that it began.
    pub last_run: Option<RunId>,
    /// The result of the last action, in one sentence.
    pub last_summary: Option<String>,
    pub figures: AgentFigures,
}

impl AgentRecord {
    /// Whether it handles events as they come.
    pub fn is_active(&self) -> bool {
        self.config.is_some() && matches!(self.stage, None | Some(AgentStage::Active))
    }

    fn next_event(&mut self) {
        self.mailbox.pop_front();
        self.failures = 0;
        self.actions = None;
        self.run = None;
    }

    fn finish_if_done(&mut self) {
        let done = self
            .actions
            .as_ref()
            .is_some_and(|(actions, done)| *done >= actions.len());
        if done {
            self.figures.handled += 1;
            self.next_event();
        }
    }
}

impl Fold for AgentRecord {
    const LOG_KIND: &'static str = "agents";
    type Fact = AgentFact;

    fn apply(&mut self, fact: AgentFact) {
        match fact {
            AgentFact::Configured(config) => self.config = Some(config),
            AgentFact::Stage(stage) => {
                // Whoever resumes it gives the event another chance.
                self.failures = 0;
                self.stage = Some(stage);
            }
            AgentFact::Received { position, event } => {
                self.received = self.received.max(position.0);
                self.mailbox.push_back((position, *event));
            }
            AgentFact::Dropped { position } => {
                self.figures.dropped += 1;
                self.received = self.received.max(position.0);
                // The event in progress is never the one that makes room.
                self.mailbox.retain(|(at, _)| *at != position);
            }
            AgentFact::Failed { .. } => {
                self.failures += 1;
                self.figures.failures += 1;
            }
            AgentFact::Handled { state, actions } => {
                self.state = state;
                self.actions = Some((actions, 0));
                self.finish_if_done();
            }
            AgentFact::Began { run } => {
                self.run = Some(run);
                self.last_run = Some(run);
            }
            AgentFact::Performed { summary } => {
                self.last_summary = Some(summary);
                self.run = None;
                if let Some((_, done)) = &mut self.actions {
                    *done += 1;
                }
                self.finish_if_done();
            }
            AgentFact::Skipped { .. } => {
                self.figures.dropped += 1;
                self.next_event();
            }
            AgentFact::Figures(figures) => self.figures = figures,
            AgentFact::Position {
                state,
                received,
                failures,
                actions,
                done,
                run,
                last_run,
            } => {
                self.state = state;
                self.received = received.0;
                self.failures = failures;
                self.actions = actions.map(|actions| (actions, done));
                self.run = run;
                self.last_run = last_run;
            }
        }
    }

    fn facts(&self) -> Vec<AgentFact> {
        let mut facts: Vec<AgentFact> = Vec::new();
        facts.extend(self.config.clone().map(AgentFact::Configured));
        facts.extend(self.stage.clone().map(AgentFact::Stage));
        let received = |(position, event): &(EventPosition, Event)| AgentFact::Received {
            position: *position,
            event: Box::new(event.clone()),
        };
        facts.extend(self.mailbox.iter().map(received));
        facts.push(AgentFact::Figures(self.figures));
        let (actions, done) = match &self.actions {
            Some((actions, done)) => (Some(actions.clone()), *done),
            None => (None, 0),
        };
        facts.push(AgentFact::Position {
            state: self.state.clone(),
            received: EventPosition(self.received),
            failures: self.failures,
            actions,
            done,
            run: self.run,
            last_run: self.last_run,
        });
        facts
    }
}
