//! What a cognitive loop thinks in: perception, plan, observation, result.

use serde::{Deserialize, Serialize};

use crate::{ActionVerdict, Artifact, Claim, EffectId, Image, Part, Strength, Text, ToolCall};

/// What a loop knows at the start of a cycle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Perception {
    /// The goal with its amendments, oldest first.
    pub goal: Vec<Text>,
    /// What came with the goal: files, pictures, standard input.
    pub context: Vec<Part>,
    /// Names of the tools at hand.
    pub available_tools: Vec<String>,
}

/// What kind of step a [`ThoughtStep`] is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StepKind {
    /// Thinking only.
    Reasoning,
    /// A tool is to be called.
    Tool {
        /// Which, and with what.
        call: ToolCall,
    },
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThoughtStep {
    /// Counted from 1.
    pub number: u32,
    /// The thought behind it.
    pub thought: String,
    /// What kind of step.
    #[serde(flatten)]
    pub kind: StepKind,
}

impl ThoughtStep {
    /// A step that only thinks.
    pub fn reasoning(number: u32, thought: impl Into<String>) -> Self {
        Self {
            number,
            thought: thought.into(),
            kind: StepKind::Reasoning,
        }
    }

    /// A step that calls a tool.
    pub fn with_tool(number: u32, thought: impl Into<String>, call: ToolCall) -> Self {
        Self {
            number,
            thought: thought.into(),
            kind: StepKind::Tool { call },
        }
    }
}

/// What a loop means to do. A model makes it, or a person by hand:
///
/// ```
/// use gyrus_contract::{Plan, ThoughtStep, ToolCall};
///
/// let mut plan = Plan::with_goal("count the users");
/// plan.add_step(ThoughtStep::reasoning(1, "the table `users` holds one row a user"));
/// plan.add_step(ThoughtStep::with_tool(
///     2,
///     "ask the database",
///     ToolCall::new("sql_query", serde_json::json!({"query": "select count(*) from users"})),
/// ));
/// assert_eq!(plan.tool_calls().count(), 1);
/// plan.complete_with_answer("42 users");
/// assert!(plan.is_complete());
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// What it is for.
    pub goal: String,
    /// The steps, in order.
    pub steps: Vec<ThoughtStep>,
    /// The answer that makes further steps needless.
    pub claim: Option<Claim>,
}

impl Plan {
    /// An empty plan for `goal`.
    pub fn with_goal(goal: impl Into<String>) -> Self {
        Self {
            goal: goal.into(),
            steps: Vec::new(),
            claim: None,
        }
    }

    /// Appends a step.
    pub fn add_step(&mut self, step: ThoughtStep) {
        self.steps.push(step);
    }

    /// Completes the plan: the goal is claimed to be reached with this answer.
    pub fn complete_with_answer(&mut self, answer: impl Into<String>) {
        self.claim = Some(Claim {
            reached: true,
            answer: answer.into(),
            evidence: Vec::new(),
        });
    }

    /// Whether there is an answer.
    pub fn is_complete(&self) -> bool {
        self.claim.is_some()
    }

    /// The calls that the steps make, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.steps.iter().filter_map(|step| match &step.kind {
            StepKind::Tool { call } => Some(call),
            StepKind::Reasoning => None,
        })
    }
}

/// What came back from a call, as the loop sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// The effect that it is the outcome of.
    pub effect: EffectId,
    /// The call's own id, from the model.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// What it returned, bounded.
    pub text: Text,
    /// Pictures that it returned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// It failed, was denied or was interrupted.
    pub is_error: bool,
    /// Whether the world changed.
    pub verdict: ActionVerdict,
    /// Files that it left behind for a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// A claim that the goal is reached, if the tool was the one that makes claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
}

/// Something that a cycle did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// What was called.
    pub call: ToolCall,
    /// What came back.
    pub observation: Observation,
}

/// What a cycle came to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ExecutionResult {
    /// What was done, in order.
    pub actions: Vec<Action>,
    /// The claim that ends the run; `None` asks for another cycle.
    pub claim: Option<Claim>,
    /// How well the claim is supported.
    #[serde(default)]
    pub strength: Strength,
    /// Why the run cannot go on.
    pub error: Option<String>,
}
