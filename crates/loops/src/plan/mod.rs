//! The plan loop: a complete plan first, which a person may review and edit; then its steps, each
//! judged again when its turn comes; then a summary.
//!
//! One cycle plans (with repairs, and the person's decision), one runs all steps that can begin,
//! and the last summarises. Nothing is changed while planning. A step that fails stops the plan, or
//! leads to a new plan for the rest. The facts `task.request`, `task.plan`, `task.step` and, always
//! last and only once, `task.result` or `task.error` report the events; see `docs/plan.md`.

mod draft;
mod order;
mod check;
mod propose;
mod work;
mod words;

use std::{collections::BTreeMap, sync::Arc};

use gyrus_contract::{
    Claim, EffectId, ExecutionResult, FINISH, MemoryBuffer, Message, Origin, Part, Perception,
    Plan, Text, ThoughtStep, ToolCall, ToolSpec,
};
use gyrus_kernel::{CognitiveLoop, HandOverReport, MandateSubject, Run, Stop};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::{check::ValidPlan, draft::AgentStep};
use crate::{
    CognitiveConfig, LoopKind, browse,
    config::DEFAULT_OUTPUT_TOKENS,
    goal,
    kind::{MOST_STEPS, keeps},
    mandate,
};

const PROMPT: &str = include_str!("plan.md");
const SUMMARY_PROMPT: &str = include_str!("summary.md");

/// The description of the loop `plan`.
pub(crate) const KIND: LoopKind = LoopKind {
    name: "plan",
    prompts: &[PROMPT, SUMMARY_PROMPT],
    max_iterations: Some(MOST_STEPS),
    max_output_tokens: DEFAULT_OUTPUT_TOKENS,
    build: |config| Ok(Box::new(Planner::new(config))),
};

/// The state between cycles.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanState {
    stage: PlanStage,
    /// Whether `task.request` was recorded.
    requested: bool,
    /// Number of plans so far.
    revision: u32,
    replans: u32,
    /// Number of parts of the goal that the plan covers: the goal itself and its amendments.
    heard: usize,
    /// Steps of the present plan that have not begun.
    steps: Vec<AgentStep>,
    /// Executed steps of all plans.
    past: Vec<PastStep>,
    /// Values that later steps refer to, by the step that returned them.
    outputs: BTreeMap<String, Value>,
    /// Files created by steps, each once.
    files: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PlanStage {
    #[default]
    Planning,
    Working,
    SummingUp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PastStep {
    id: String,
    tool: String,
    effect: EffectId,
    worked: bool,
}

/// The decision of a cycle about its actions.
#[derive(Debug, Default)]
enum CycleThought {
    #[default]
    Nothing,
    Proposed(ValidPlan),
    /// No plan is possible, for this reason.
    Hopeless(String),
    /// The remaining steps with these indices run now.
    Steps(Vec<usize>),
    Over(Claim),
}

/// Plans, and carries the plan out.
#[derive(Debug)]
pub struct Planner {
    config: CognitiveConfig,
    memory: MemoryBuffer,
    state: PlanState,
    turn: CycleThought,
}

impl Planner {
    /// Creates a loop with this configuration.
    pub fn new(config: CognitiveConfig) -> Self {
        let memory = MemoryBuffer::new(config.memory_window);
        Self {
            config,
            memory,
            state: PlanState::default(),
            turn: CycleThought::Nothing,
        }
    }

    fn tell(&mut self, words: impl Into<String>) {
        let text = Text::new(words, Origin::Kernel);
        self.memory.add(Message::user(text));
    }

    /// Returns to planning the rest of the work, for this reason.
    fn plan_anew(&mut self, why: &str) {
        self.state.stage = PlanStage::Planning;
        self.state.steps.clear();
        self.state.outputs.clear();
        self.tell(format!(
            "{why}\nPlan what is still to be done. Do not repeat steps that worked; new steps \
             have new ids."
        ));
    }

    /// Begins the task, whose id is the run's: reads the goal and its attachments.
    fn handle_task(&mut self, run: &mut Run, perception: &Perception) -> Result<(), Stop> {
        self.state.requested = true;
        let request = json!({
            "task": run.id(),
            "text": goal::first_goal(perception),
            "context": build_context(perception),
            "remembered": self.memory.next_number() - self.memory.first_number(),
            "trust": run.mode_at_start(),
        });
        run.note("task.request", 1, &request)
    }
}

/// Returns the attachments of the goal, by name.
fn build_context(perception: &Perception) -> Vec<String> {
    let given = perception.context.iter().map(|part| match part {
        Part::Text(text) => match &text.origin {
            Origin::File { path } | Origin::Guidelines { path, .. } => path.clone(),
            Origin::Tool { name } | Origin::Skill { name, .. } => name.clone(),
            Origin::Event { topic } => topic.clone(),
            Origin::Lessons { .. } => "lessons".to_owned(),
            Origin::Memory { .. } => "memory".to_owned(),
            _ => "standard input".to_owned(),
        },
        _ => "a picture".to_owned(),
    });
    given.collect()
}

/// Returns the tools that steps may call: those of the run, except tools that need to see the
/// screen or end other loops.
fn tools(run: &Run) -> Vec<Arc<ToolSpec>> {
    let mut specs = browse::specs(run);
    specs.retain(|spec| spec.name != FINISH);
    specs
}

/// Returns the tools for checking a plan: also those of servers that need not be found first,
/// because the model knows their names.
fn callable(run: &Run) -> Vec<Arc<ToolSpec>> {
    let mut specs = tools(run);
    let is_known = |spec: &&Arc<ToolSpec>| specs.iter().any(|known| known.name == spec.name);
    let served = run.tools().iter().filter(|spec| spec.is_served());
    let more: Vec<_> = served.filter(|spec| !is_known(spec)).cloned().collect();
    specs.extend(more);
    specs
}

/// Returns the calls of an edited plan whose arguments are known beforehand.
pub(crate) fn edited_calls(text: &str, tools: &[ToolSpec]) -> Result<Vec<ToolCall>, Vec<String>> {
    let of_tool = |step: &AgentStep| match step.tool.as_str() {
        browse::BROWSE => Vec::new(),
        _ => check::of_tool(step, tools),
    };
    let draft = draft::read(text, of_tool)?;
    let wrong: Vec<String> = draft.steps.iter().flat_map(of_tool).collect();
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let known = draft.steps.iter();
    let known = known.filter(|step| step.tool != browse::BROWSE && step.references().is_empty());
    let nothing = BTreeMap::new();
    Ok(known.map(|step| step.call(&nothing).0).collect())
}

fn kernel_says(words: &str) -> Message {
    Message::user(Text::new(words, Origin::Kernel))
}

impl CognitiveLoop for Planner {
    keeps!(KIND.name, state: PlanState);

    async fn perceive(&mut self, run: &mut Run) -> Result<Perception, Stop> {
        let perception = run.perception();
        if !self.state.requested {
            self.handle_task(run, &perception)?;
        }
        if self.state.stage != PlanStage::Planning && perception.goal.len() != self.state.heard {
            self.plan_anew("The person added to the goal.");
        }
        Ok(perception)
    }

    async fn think(&mut self, run: &mut Run, perception: &Perception) -> Result<Plan, Stop> {
        self.turn = match self.state.stage {
            PlanStage::Planning => {
                mandate::state(run, &self.config, MandateSubject::Tools).await?;
                self.plan_task(run).await?
            }
            PlanStage::Working => CycleThought::Steps(order::ready(&self.state.steps, run.tools())),
            PlanStage::SummingUp => self.summarize(run, perception).await?,
        };
        let mut plan = Plan::with_goal(goal::first_goal(perception));
        let steps: Vec<&AgentStep> = match &self.turn {
            CycleThought::Proposed(checked) => checked.draft.steps.iter().collect(),
            CycleThought::Steps(which) => which
                .iter()
                .map(|index| &self.state.steps[*index])
                .collect(),
            CycleThought::Nothing | CycleThought::Hopeless(_) | CycleThought::Over(_) => Vec::new(),
        };
        for (number, step) in (1..).zip(steps) {
            let (call, _) = step.call(&self.state.outputs);
            plan.add_step(ThoughtStep::with_tool(number, step.reason.clone(), call));
        }
        if let CycleThought::Over(claim) = &self.turn {
            plan.claim = Some(claim.clone());
        }
        Ok(plan)
    }

    async fn act(&mut self, run: &mut Run, _plan: &Plan) -> Result<ExecutionResult, Stop> {
        let mut result = ExecutionResult::default();
        match std::mem::take(&mut self.turn) {
            CycleThought::Nothing => {}
            CycleThought::Hopeless(why) => result.error = Some(why),
            CycleThought::Over(claim) => result.claim = Some(claim),
            CycleThought::Steps(which) => return self.execute_steps(run, &which).await,
            CycleThought::Proposed(checked) => result.error = self.decide(run, checked).await?,
        }
        Ok(result)
    }

    async fn conclude(&mut self, run: &mut Run, result: &ExecutionResult) -> Result<(), Stop> {
        let (kind, text) = match (&result.error, &result.claim) {
            (None, Some(claim)) if claim.reached => ("task.result", &claim.answer),
            (None, Some(claim)) => ("task.error", &claim.answer),
            (Some(why), _) => ("task.error", why),
            (None, None) => return Ok(()),
        };
        let steps = self.state.past.iter();
        let fact = json!({
            "task": run.id(),
            "text": text,
            "steps": steps.map(|step| json!({"step": step.id, "worked": step.worked})).collect::<Vec<_>>(),
            "artifacts": self.state.files,
        });
        run.note(kind, 1, &fact)
    }

    fn sent_back(&mut self, why: &str) {
        self.plan_anew(why);
    }

    fn take_over(&mut self, handed: &HandOverReport) {
        self.plan_anew(&handed.in_words());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the effects of an interrupted cycle are only known as observations: no step of
    /// the old plan may run as if they had not happened.
    #[test]
    fn a_fresh_cycle_plans_the_rest_anew() {
        let mut planner = Planner::new(CognitiveConfig::plan());
        planner.state.stage = PlanStage::Working;
        planner.state.steps = draft::read(
            r#"{"goal": "g", "steps": [{"id": "1", "tool": "write", "input": {}, "reason": "r",
            "requires_permission": false, "expected": "e", "depends_on": []}]}"#,
            |_| Vec::new(),
        )
        .unwrap()
        .steps;
        planner.take_over(&HandOverReport {
            reason: "the code is newer".to_owned(),
            done: Vec::new(),
            viewed: None,
        });
        assert_eq!(planner.state.stage, PlanStage::Planning);
        assert_eq!(planner.state.steps, []);
        let told = planner.memory.to_context_string();
        assert!(
            told.contains("the code is newer") && told.contains("still to be done"),
            "{told}"
        );
    }
}
