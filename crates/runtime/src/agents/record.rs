//! An agent as the fold of its log: its settings, its mailbox, its state, and what it has begun.

use std::collections::VecDeque;

use gyrus_contract::{Principal, RunId};
use serde::{Deserialize, Serialize};

use super::behavior::{AgentAction, AgentState};
use crate::{Event, EventPosition, TopicPattern, ledger::Fold};

/// The treatment of an event whose mailbox is full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailboxOverflow {
    /// The oldest event in the mailbox is dropped.
    #[default]
    DropOldest,
    /// The new event is dropped.
    DropNewest,
}

/// The settings of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentConfig {
    /// The name of the agent: 1 to 40 characters of `a` to `z`, `0` to `9` and `-`, none of them
    /// doubled dashes.
    pub name: String,
    /// Events that the agent receives beside those to `agent.NAME.inbox`.
    #[serde(default)]
    pub subscriptions: Vec<TopicPattern>,
    /// Maximum number of events that wait.
    pub mailbox: usize,
    /// The treatment of an event for which the mailbox has no room.
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
    /// The agent handles events as they come.
    Active,
    /// The agent is paused; events wait in its mailbox.
    Paused {
        /// The person who paused the agent.
        by: Principal,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// The agent failed too often; events wait until a person resumes it.
    Quarantined {
        /// The last failure of the agent.
        why: String,
    },
    /// The agent receives no more events.
    Retired {
        /// The person who retired the agent.
        by: Principal,
    },
}

/// A fact of an agent's log.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", content = "payload")]
pub enum AgentFact {
    /// The agent was created, or its settings were changed.
    #[serde(rename = "agent.configured")]
    Configured(AgentConfig),
    /// The agent reached another stage of its life.
    #[serde(rename = "agent.stage")]
    Stage(AgentStage),
    /// An event arrived.
    #[serde(rename = "agent.received")]
    Received {
        /// The position of the event on the bus.
        position: EventPosition,
        event: Box<Event>,
    },
    /// An event was dropped, because the mailbox was full.
    #[serde(rename = "agent.dropped")]
    Dropped {
        /// The position of the event on the bus.
        position: EventPosition,
    },
    /// The behaviour failed on the first event of the mailbox.
    #[serde(rename = "agent.failed")]
    Failed { why: String },
    /// The behaviour handled the first event of the mailbox.
    #[serde(rename = "agent.handled")]
    Handled {
        /// The state after the event.
        state: AgentState,
        /// The actions that the behaviour requested.
        actions: Vec<AgentAction>,
    },
    /// A run was started for an action.
    #[serde(rename = "agent.began")]
    Began { run: RunId },
    /// The next action was carried out.
    #[serde(rename = "agent.performed")]
    Performed {
        /// The result as one sentence.
        summary: String,
    },
    /// A person dropped the first event of the mailbox.
    #[serde(rename = "agent.skipped")]
    Skipped { by: Principal },
    /// Counts from facts that were folded away.
    #[serde(rename = "agent.figures")]
    Figures(AgentFigures),
    /// The agent's state, and its progress with the first event of its mailbox.
    #[serde(rename = "agent.position")]
    Position {
        state: AgentState,
        /// The position of the last event that the agent received.
        received: EventPosition,
        /// Number of failures on the first event.
        failures: u32,
        /// The actions requested for the first event.
        actions: Option<Vec<AgentAction>>,
        /// Number of completed actions.
        done: usize,
        /// The run in progress.
        run: Option<RunId>,
        last_run: Option<RunId>,
    },
}

/// Figures of an agent's life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFigures {
    /// Number of completely handled events.
    pub handled: u64,
    /// Number of failures of the behaviour.
    pub failures: u64,
    /// Number of dropped or skipped events.
    pub dropped: u64,
}

/// The state of an agent, folded from its log.
#[derive(Debug, Clone, Default)]
pub struct AgentRecord {
    /// The settings; `None` before the agent was created.
    pub config: Option<AgentConfig>,
    /// The stage; `None` means active.
    pub stage: Option<AgentStage>,
    pub state: AgentState,
    /// Waiting events, the one in progress first.
    pub mailbox: VecDeque<(EventPosition, Event)>,
    /// The position of the last event that the agent received.
    pub received: u64,
    /// Number of failures on the first event.
    pub failures: u32,
    /// The actions requested for the first event, with the number of completed ones.
    pub actions: Option<(Vec<AgentAction>, usize)>,
    /// The run in progress.
    pub run: Option<RunId>,
    /// The last run of the agent.
    pub last_run: Option<RunId>,
    /// The result of the last action, in one sentence.
    pub last_summary: Option<String>,
    pub figures: AgentFigures,
}

impl AgentRecord {
    /// Whether the agent handles events as they come.
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
