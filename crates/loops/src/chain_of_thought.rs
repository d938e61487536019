//! The chain-of-thought loop: reasons about the goal in steps before the first action, then works
//! as ReAct.

use gyrus_contract::{ExecutionResult, Perception, Plan, Purpose};
use gyrus_kernel::{CognitiveLoop, ModelQuestion, Run, Stop, ToolOffer};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    CognitiveConfig, LoopKind, React, ReactState, config::DEFAULT_OUTPUT_TOKENS,
    react::acts_by_react,
};

const PROMPT: &str = include_str!("prompts/chain_of_thought.md");

/// The description of the loop `chain-of-thought`.
pub(crate) const KIND: LoopKind = LoopKind {
    name: "chain-of-thought",
    prompts: &[PROMPT],
    max_iterations: None,
    max_output_tokens: DEFAULT_OUTPUT_TOKENS,
    build: |config| Ok(Box::new(ChainOfThought::new(config))),
};

/// The state between cycles.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChainState {
    /// Whether the goal was reasoned about; the steps are in memory.
    pub reasoned: bool,
    /// The state of the acting part.
    pub acting: ReactState,
}

/// A loop that reasons before it acts.
#[derive(Debug)]
pub struct ChainOfThought {
    acting: React,
    state: ChainState,
}

impl ChainOfThought {
    /// Creates a loop with this configuration.
    pub fn new(config: CognitiveConfig) -> Self {
        Self {
            acting: React::new(config),
            state: ChainState::default(),
        }
    }
}

impl CognitiveLoop for ChainOfThought {
    acts_by_react!(ChainState);

    async fn perceive(&mut self, run: &mut Run) -> Result<Perception, Stop> {
        self.acting.perceive(run).await
    }

    async fn think(&mut self, run: &mut Run, perception: &Perception) -> Result<Plan, Stop> {
        if !self.state.reasoned {
            let question = ModelQuestion {
                tools: ToolOffer::Withheld,
                ..self.acting.aside(run, perception, Purpose::Plan, PROMPT)
            };
            let steps = run.ask(question).await?.text();
            run.note("thought", 1, &json!({ "text": steps }))?;
            if !steps.trim().is_empty() {
                self.memory_buffer_mut().add_agent_response(steps);
                // A conversation that ends with the model's own words would be continued, not
                // answered; some providers refuse it.
                self.acting.tell("Now do it, one step after the other.");
            }
            self.state.reasoned = true;
        }
        self.acting.think(run, perception).await
    }

    async fn act(&mut self, run: &mut Run, plan: &Plan) -> Result<ExecutionResult, Stop> {
        let result = self.acting.act(run, plan).await;
        self.state.acting = self.acting.state().clone();
        result
    }
}
