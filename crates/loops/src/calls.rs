//! The loop of calls: it calls the tools that its configuration names, in order, and asks no model.
//! For agents whose behaviour is a program: what they do passes the gate like anything else.

use gyrus_contract::{
    Action, Claim, ExecutionResult, MemoryBuffer, Perception, Plan, ThoughtStep, ToolCall,
};
use gyrus_kernel::{CognitiveLoop, Run, Stop};
use gyrus_text::first_chars;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{goal, kind::keeps};

/// The name of the loop. It is not a strategy of thinking, so nobody chooses it by `--loop`.
pub const CALLS: &str = "calls";

/// Maximum number of stored characters of a result.
const RESULT: usize = 4_000;

/// The configuration of the loop.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CallsConfig {
    /// The calls, in order. None is made after one that failed.
    pub calls: Vec<ToolCall>,
}

/// A call after its execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallDone {
    pub tool: String,
    /// Whether the call failed, was denied or was interrupted.
    pub failed: bool,
    /// The result of the call, cut.
    pub text: String,
}

/// Calls tools, one in a cycle.
#[derive(Debug)]
pub(crate) struct CallSequence {
    config: CallsConfig,
    done: Vec<CallDone>,
    memory: MemoryBuffer,
}

impl CallSequence {
    pub(crate) fn new(config: CallsConfig) -> Self {
        Self {
            config,
            done: Vec::new(),
            memory: MemoryBuffer::new(1),
        }
    }
}

impl CognitiveLoop for CallSequence {
    keeps!(CALLS, done: Vec<CallDone>);

    async fn perceive(&mut self, run: &mut Run) -> Result<Perception, Stop> {
        Ok(run.perception())
    }

    async fn think(&mut self, _: &mut Run, perception: &Perception) -> Result<Plan, Stop> {
        let mut plan = Plan::with_goal(goal::first_goal(perception));
        if let Some(call) = self.config.calls.get(self.done.len()) {
            let mut call = call.clone();
            let number = u32::try_from(self.done.len()).unwrap_or(u32::MAX) + 1;
            call.id = format!("call-{number}");
            plan.add_step(ThoughtStep::with_tool(number, "as it was told", call));
        }
        Ok(plan)
    }

    async fn act(&mut self, run: &mut Run, plan: &Plan) -> Result<ExecutionResult, Stop> {
        let mut result = ExecutionResult::default();
        let mut failed = false;
        for call in plan.tool_calls() {
            let observation = run.call(call).await?;
            failed = observation.is_error;
            self.done.push(CallDone {
                tool: call.tool.clone(),
                failed,
                text: first_chars(&observation.text.text, RESULT).to_owned(),
            });
            result.actions.push(Action {
                call: call.clone(),
                observation,
            });
        }
        if failed || self.done.len() >= self.config.calls.len() {
            result.claim = Some(Claim {
                reached: !failed,
                answer: json!(self.done).to_string(),
                evidence: Vec::new(),
                shortfalls: Vec::new(),
            });
        }
        Ok(result)
    }
}
