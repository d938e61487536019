//! The data of a cognitive loop: perception, plan, observation, result.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ActionVerdict, Artifact, Claim, EffectId, Image, Origin, Part, Strength, Text, ToolCall,
};

/// The knowledge of a loop at the start of a cycle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Perception {
    /// The goal with its amendments, oldest first.
    pub goal: Vec<Text>,
    /// The material that came with the goal: files, pictures, standard input.
    pub context: Vec<Part>,
    /// Names of the available tools.
    pub available_tools: Vec<String>,
    /// The priority of the command that asked for the run, from -100 to 100; 0 where nothing said one.
    pub priority: i32,
}

impl Perception {
    /// Returns the event that the cycle answers: the goal, or its newest amendment.
    pub fn event(&self) -> Option<&Text> {
        self.goal.last()
    }
}

/// The kind of a [`ThoughtStep`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StepKind {
    /// Thinking only.
    Reasoning,
    Tool {
        call: ToolCall,
    },
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThoughtStep {
    /// The number, counted from 1.
    pub number: u32,
    /// The reason for the step.
    pub thought: String,
    #[serde(flatten)]
    pub kind: StepKind,
}

impl ThoughtStep {
    /// Creates a step that only thinks.
    pub fn reasoning(number: u32, thought: impl Into<String>) -> Self {
        Self {
            number,
            thought: thought.into(),
            kind: StepKind::Reasoning,
        }
    }

    /// Creates a step that calls a tool.
    pub fn with_tool(number: u32, thought: impl Into<String>, call: ToolCall) -> Self {
        Self {
            number,
            thought: thought.into(),
            kind: StepKind::Tool { call },
        }
    }
}

/// The steps that a loop intends to take, made by a model, or by a person by hand:
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
    pub goal: String,
    /// The steps, in order.
    pub steps: Vec<ThoughtStep>,
    /// The answer that makes further steps unnecessary.
    pub claim: Option<Claim>,
}

impl Plan {
    /// Creates an empty plan for `goal`.
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
            shortfalls: Vec::new(),
        });
    }

    /// Whether the plan ends with an answer.
    pub fn is_complete(&self) -> bool {
        self.claim.is_some()
    }

    /// Returns the calls of the steps, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.steps.iter().filter_map(|step| match &step.kind {
            StepKind::Tool { call } => Some(call),
            StepKind::Reasoning => None,
        })
    }
}

/// The result of a call, as the loop sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// The effect of the call.
    pub effect: EffectId,
    /// The call's own id, from the model.
    pub call_id: String,
    pub tool: String,
    /// The bounded text that the call returned.
    pub text: Text,
    /// The result as data, if the tool returned any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Pictures that the call returned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Whether the call failed, was denied or was interrupted.
    pub is_error: bool,
    /// Whether the world changed.
    pub verdict: ActionVerdict,
    /// Files that the call left for a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The claim that the goal is reached, if the tool makes claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
}

impl Observation {
    /// Creates the observation of a call that was not executed, for the reason in `words`.
    pub fn refused(effect: EffectId, call: &ToolCall, words: impl Into<String>) -> Self {
        Self {
            effect,
            call_id: call.id.clone(),
            tool: call.tool.clone(),
            text: Text::new(words, Origin::Kernel),
            value: None,
            images: Vec::new(),
            is_error: true,
            verdict: ActionVerdict::Refused,
            artifacts: Vec::new(),
            claim: None,
        }
    }

    /// Whether the call was interrupted, so that nobody knows whether it happened.
    pub fn was_interrupted(&self) -> bool {
        self.is_error
            && self.verdict == ActionVerdict::CannotTell
            && self.text.origin == Origin::Kernel
    }
}

/// An action executed in a cycle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    pub call: ToolCall,
    pub observation: Observation,
}

/// The result of a cycle.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ExecutionResult {
    /// The actions, in order.
    pub actions: Vec<Action>,
    /// The claim that ends the run; `None` asks for another cycle.
    pub claim: Option<Claim>,
    /// The strength of the claim's support.
    #[serde(default)]
    pub strength: Strength,
    /// Reason why the run cannot continue.
    pub error: Option<String>,
}

impl ExecutionResult {
    /// Returns the answer, if the cycle ended the run with one.
    pub fn response(&self) -> Option<&str> {
        self.claim.as_ref().map(|claim| claim.answer.as_str())
    }

    /// Whether the goal is claimed to be reached.
    pub fn goal_achieved(&self) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.reached)
    }

    pub fn into_actions(self) -> Vec<Action> {
        self.actions
    }
}
