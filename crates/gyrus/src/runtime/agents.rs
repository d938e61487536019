//! Agents of an embedder: named, long-lived, fed by events; with a loop that thinks, or without.

use std::{any::Any, pin::Pin, sync::Arc};

use gyrus_contract::{Origin, RunId, Text};
use gyrus_journal::LockWait;
use gyrus_kernel::{Attachment, Ending, NewRun, ResumeChanges, log_name, summary};
use gyrus_loops::{CALLS, CallsConfig, CognitiveConfig};
use gyrus_runtime::{
    Event, EventBus, EventPosition, HistoryLimits,
    agents::{
        AgentAction, AgentBehavior, AgentConfig, AgentRun, AgentRunEnd, AgentRuns, AgentState,
        AgentWork, Agents, BehaviorError,
    },
    request::ContextText,
};
use gyrus_tools::ToolRegistry;

use super::{AgentLoop, AgentRuntime, LlmClient, NoModel, RuntimeError, SimpleCognitiveLoop};

/// An agent that thinks: each event becomes the goal of a run of its loop, which goes on from the
/// memory of the run before it.
pub struct CognitiveAgent<L> {
    cognitive_loop: Arc<L>,
    instructions: Option<String>,
}

impl<L: AgentLoop> CognitiveAgent<L> {
    /// Creates an agent with a loop. What a person says to it is its goal; other events are data,
    /// which it is told to handle.
    pub fn new(cognitive_loop: L) -> Self {
        Self {
            cognitive_loop: Arc::new(cognitive_loop),
            instructions: None,
        }
    }

    /// Sets the goal of every run; the event's payload is attached as data.
    #[must_use]
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }
}

impl<L: AgentLoop> AgentBehavior for CognitiveAgent<L> {
    async fn on_event(
        &mut self,
        event: Event,
        _: &mut AgentState,
    ) -> Result<Vec<AgentAction>, BehaviorError> {
        let data = ContextText {
            name: format!("event {}", event.topic),
            text: Text::new(event.payload.to_string(), event.origin.clone()),
        };
        let said = event.payload.as_str().filter(|_| event.origin.is_trusted());
        let (goal, context) = match (&self.instructions, said) {
            (Some(instructions), _) => (instructions.clone(), vec![data]),
            (None, Some(said)) => (said.to_owned(), Vec::new()),
            (None, None) => (format!("Handle the event `{}`.", event.topic), vec![data]),
        };
        let origin = if self.instructions.is_none() && said.is_some() {
            event.origin
        } else {
            Origin::Configuration
        };
        Ok(vec![AgentAction::Run {
            goal: Text::new(goal, origin),
            context,
        }])
    }

    fn runs_in(&self, host: &dyn Any) -> Option<Arc<dyn AgentRuns>> {
        let runtime = host.downcast_ref::<AgentRuntime>()?.clone();
        Some(Arc::new(RunsHere {
            runtime,
            cognitive_loop: Arc::clone(&self.cognitive_loop),
        }))
    }
}

struct RunsHere<L> {
    runtime: AgentRuntime,
    cognitive_loop: Arc<L>,
}

impl<L: AgentLoop> AgentRuns for RunsHere<L> {
    fn drive(&self, run: AgentRun) -> Pin<Box<dyn Future<Output = AgentRunEnd> + Send + '_>> {
        Box::pin(async move {
            let drive = self.runtime.drive_for_agent(&*self.cognitive_loop, run);
            match drive.await {
                Ok(end) => end,
                Err(error) => AgentRunEnd::new(error.to_string(), None),
            }
        })
    }
}

impl AgentRuntime {
    /// Creates an agent, or revives the one of this name with its state and its mailbox, and begins
    /// to deliver events to it.
    ///
    /// # Errors
    /// Its name is not usable or in use, it is retired, or another process has these agents.
    pub async fn create_agent<B: AgentBehavior>(
        &self,
        config: AgentConfig,
        behavior: Box<B>,
    ) -> Result<(), RuntimeError> {
        let runs = behavior.runs_in(self).unwrap_or_else(|| {
            let config = CognitiveConfig::single_shot();
            let (llm, tools) = (LlmClient::own(Arc::new(NoModel)), ToolRegistry::builtin());
            let cognitive_loop = SimpleCognitiveLoop::new(config, Arc::new(llm), Arc::new(tools));
            Arc::new(RunsHere {
                runtime: self.clone(),
                cognitive_loop: Arc::new(cognitive_loop),
            })
        });
        let agents = self.agents().await?;
        Ok(agents.create_agent(config, behavior, runs).await?)
    }

    /// Returns the agents, which can be inspected, paused and resumed.
    ///
    /// # Errors
    /// Another process has them, or they cannot be read.
    pub async fn agents(&self) -> Result<&Agents, RuntimeError> {
        Ok(&self.living().await?.1)
    }

    /// Returns the bus on which agents hear each other.
    ///
    /// # Errors
    /// Another process has it, or it cannot be read.
    pub async fn bus(&self) -> Result<&EventBus, RuntimeError> {
        Ok(&self.living().await?.0)
    }

    /// Publishes an event; it is on disk when this returns.
    ///
    /// # Errors
    /// The event is too large, or cannot be written.
    pub async fn publish(&self, event: Event) -> Result<EventPosition, RuntimeError> {
        let bus = self.bus().await?;
        Ok(bus.publish_durable(event).await?)
    }

    async fn living(&self) -> Result<&(EventBus, Agents), RuntimeError> {
        let open = async {
            let bus = EventBus::open(self.store(), HistoryLimits::default())?;
            let agents = Agents::open(self.store(), bus.clone());
            agents.begin().await?;
            Ok((bus, agents))
        };
        self.living.get_or_try_init(|| open).await
    }

    async fn drive_for_agent(
        &self,
        cognitive_loop: &impl AgentLoop,
        agent_run: AgentRun,
    ) -> Result<AgentRunEnd, RuntimeError> {
        let run = agent_run.run;
        let kernel = self.kernel(cognitive_loop).await?;
        let ready = if self.store().exists(&log_name(run)) {
            kernel.take(run, LockWait::IfFree, ResumeChanges::default())?
        } else {
            let new = self.new_run(cognitive_loop, run, agent_run.work)?;
            Self::join(cognitive_loop, run)?;
            kernel.create(new)?
        };
        let finished = self.drive(ready).await?;
        let answer = match &finished.ending {
            Ending::Reached { claim, .. } => Some(claim.answer.clone()),
            _ => None,
        };
        Ok(AgentRunEnd::new(summary(&finished.ending), answer))
    }

    fn new_run(
        &self,
        cognitive_loop: &impl AgentLoop,
        run: RunId,
        work: AgentWork,
    ) -> Result<NewRun, RuntimeError> {
        Ok(match work {
            AgentWork::Goal {
                goal,
                context,
                continues,
            } => {
                let continues = continues.filter(|before| self.store().exists(&log_name(*before)));
                let mut new = self.run_of(cognitive_loop, goal, continues)?;
                let attached = context.into_iter().map(|ContextText { name, text }| {
                    let named = format!("{name}:\n{}", text.text);
                    Attachment::Text(Text::new(named, text.origin))
                });
                new.context.extend(attached);
                NewRun { id: run, ..new }
            }
            AgentWork::Calls(calls) => {
                let goal = Text::new("Call what the behaviour asks for.", Origin::Kernel);
                let config = serde_json::to_value(CallsConfig { calls });
                let config = config.expect("it is plain data");
                NewRun {
                    id: run,
                    mode: self.mode,
                    on_ask: self.on_ask,
                    ..NewRun::new(goal, CALLS, config, self.workspace.clone())
                }
            }
        })
    }
}
