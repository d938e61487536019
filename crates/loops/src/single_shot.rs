//! The single-shot loop: one question, one answer, no tools.

use gyrus_contract::{
    Claim, ExecutionResult, MemoryBuffer, Perception, Plan, Purpose, StopReason, Strength,
};
use gyrus_kernel::{CognitiveLoop, Run, Stop};
use serde_json::json;

use crate::{CognitiveConfig, LoopKind, config::DEFAULT_OUTPUT_TOKENS, goal, prompt};

const PROMPT: &str = include_str!("prompts/single_shot.md");

/// The description of the loop `single-shot`.
pub(crate) const KIND: LoopKind = LoopKind {
    name: "single-shot",
    prompts: &[PROMPT],
    max_iterations: None,
    max_output_tokens: DEFAULT_OUTPUT_TOKENS,
    build: |config| Ok(Box::new(SingleShot::new(config))),
};

/// A loop that answers one question and ends.
#[derive(Debug)]
pub struct SingleShot {
    config: CognitiveConfig,
    memory: MemoryBuffer,
}

impl SingleShot {
    /// Creates a loop with this configuration.
    pub fn new(config: CognitiveConfig) -> Self {
        let memory = MemoryBuffer::new(config.memory_window);
        Self { config, memory }
    }
}

impl CognitiveLoop for SingleShot {
    type State = ();

    fn name(&self) -> &'static str {
        KIND.name
    }

    fn state(&self) -> &() {
        &()
    }

    fn restore(&mut self, (): ()) {}

    fn memory_buffer(&self) -> &MemoryBuffer {
        &self.memory
    }

    fn memory_buffer_mut(&mut self) -> &mut MemoryBuffer {
        &mut self.memory
    }

    async fn perceive(&mut self, run: &mut Run) -> Result<Perception, Stop> {
        Ok(Perception {
            available_tools: Vec::new(),
            ..run.perception()
        })
    }

    async fn think(&mut self, run: &mut Run, perception: &Perception) -> Result<Plan, Stop> {
        let question = prompt::question(
            run,
            &self.config,
            PROMPT,
            Purpose::Agent,
            perception,
            &self.memory,
        );
        let reply = run.ask(question).await?;
        let mut plan = Plan::with_goal(goal::first_goal(perception));
        let answer = reply.text();
        if !answer.trim().is_empty() {
            run.note("thought", 1, &json!({ "text": answer }))?;
            self.memory.add_reply(&reply);
            plan.complete_with_answer(answer);
            if reply.stop == StopReason::MaxTokens {
                plan.claim = plan.claim.map(|claim| Claim {
                    reached: false,
                    answer: format!(
                        "the answer was cut off at its length limit: {}",
                        claim.answer
                    ),
                    ..claim
                });
            }
        }
        Ok(plan)
    }

    async fn act(&mut self, _run: &mut Run, plan: &Plan) -> Result<ExecutionResult, Stop> {
        let claim = plan.claim.clone().unwrap_or_else(|| Claim {
            reached: false,
            answer: "the model gave no answer".to_owned(),
            evidence: Vec::new(),
            shortfalls: Vec::new(),
        });
        Ok(ExecutionResult {
            claim: Some(claim),
            strength: Strength::Answered,
            ..ExecutionResult::default()
        })
    }
}
