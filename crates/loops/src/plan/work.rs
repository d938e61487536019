//! Executing the steps of a plan in force, and their results.

use gyrus_contract::{
    Action, Arguments, Claim, EffectId, Evidence, ExecutionResult, FindToolsCall, Message,
    Observation, Part, Perception, Purpose, Text, ToolCall,
};
use gyrus_kernel::{Branch, ModelQuestion, Run, Stop};
use serde_json::{Value, json};

use super::{
    CycleThought, PastStep, PlanStage, Planner, check, draft::AgentStep, kernel_says, words,
};
use crate::{browse, json::the_object};

/// Maximum number of new plans because a step failed.
const MAX_REPLANS: u32 = 3;

/// Maximum number of searches for tools after which the rest is planned anew.
const MAX_SEARCHES: usize = 8;

impl Planner {
    /// Runs steps that are independent of each other, and processes their results.
    pub(super) async fn execute_steps(
        &mut self,
        run: &mut Run,
        which: &[usize],
    ) -> Result<ExecutionResult, Stop> {
        let calls: Vec<_> = which
            .iter()
            .map(|index| self.state.steps[*index].call(&self.state.outputs))
            .collect();
        let seen = match &calls[..] {
            [(one, wrong)] => vec![execute_step(run, one, wrong.as_deref()).await?],
            _ => {
                let branches = calls.iter().cloned();
                let branches = branches.map(|(one, wrong)| -> Branch<'static, Observation> {
                    Box::new(move |run| {
                        Box::pin(async move { execute_step(run, &one, wrong.as_deref()).await })
                    })
                });
                let branches = branches.collect();
                run.branches(branches).await?
            }
        };
        let ran: Vec<AgentStep> = which
            .iter()
            .map(|index| self.state.steps[*index].clone())
            .collect();
        let began = |step: &AgentStep| ran.iter().any(|other| other.id == step.id);
        self.state.steps.retain(|step| !began(step));
        let mut failures = Vec::new();
        for (step, seen) in ran.iter().zip(&seen) {
            self.observe(run, step, seen)?;
            if seen.is_error {
                failures.push((step, words::failure(step, &seen.text.text)));
            }
        }
        let referred: Vec<_> = self
            .state
            .steps
            .iter()
            .flat_map(AgentStep::references)
            .collect();
        self.state.outputs.retain(|id, _| referred.contains(id));
        let interrupted = seen.iter().any(Observation::was_interrupted);
        let actions = calls.into_iter().zip(seen);
        let error = self.goes_on(&failures, interrupted);
        let searched = |step: &AgentStep| step.tool == FindToolsCall::TOOL;
        if self.state.stage == PlanStage::SummingUp && ran.iter().any(searched) {
            self.plan_with_found_tools();
        }
        Ok(ExecutionResult {
            actions: actions
                .map(|((call, _), observation)| Action { call, observation })
                .collect(),
            error,
            ..ExecutionResult::default()
        })
    }

    /// Remembers the result of a step, and records it as a fact.
    fn observe(&mut self, run: &mut Run, step: &AgentStep, seen: &Observation) -> Result<(), Stop> {
        let files: Vec<_> = seen
            .artifacts
            .iter()
            .map(|file| file.path.clone())
            .collect();
        let worked = !seen.is_error;
        let text = if worked {
            format!("step {} (`{}`) worked", step.id, step.tool)
        } else {
            words::failure(step, &seen.text.text)
        };
        let fact = json!({
            "task": run.id(),
            "step": step.id,
            "tool": step.tool,
            "effect": seen.effect,
            "worked": worked,
            "artifacts": seen.artifacts,
            "text": text,
        });
        run.note("task.step", 1, &fact)?;
        let words = words::outcome(step, &seen.text.text, seen.is_error);
        let mut message = Message::user(Text::new(words, seen.text.origin.clone()));
        message
            .parts
            .extend(seen.images.iter().cloned().map(Part::Image));
        self.memory.add(message);
        if worked {
            // Old journals have only the text.
            let text = || Value::String(seen.text.text.clone());
            let output = seen.value.clone().unwrap_or_else(text);
            self.state.outputs.insert(step.id.clone(), output);
        }
        for file in files {
            if !self.state.files.contains(&file) {
                self.state.files.push(file);
            }
        }
        self.state.past.push(PastStep {
            id: step.id.clone(),
            tool: step.tool.clone(),
            effect: seen.effect.clone(),
            worked,
        });
        Ok(())
    }

    /// Decides how to continue after some steps; returns the reason if the run ends. Where a step
    /// was `interrupted`, the rest is planned anew in any case: a crash says nothing about the plan.
    fn goes_on(&mut self, failures: &[(&AgentStep, String)], interrupted: bool) -> Option<String> {
        if failures.is_empty() {
            if self.state.steps.is_empty() {
                self.state.stage = PlanStage::SummingUp;
            }
            return None;
        }
        if (self.config.replanning || interrupted) && self.state.replans < MAX_REPLANS {
            self.state.replans += 1;
            let ids: Vec<_> = failures.iter().map(|(step, _)| step.id.as_str()).collect();
            // The outputs of the steps are in memory already, as data.
            self.plan_anew(&format!(
                "The plan stopped: step {} failed.",
                ids.join(", ")
            ));
            return None;
        }
        let tried = if self.config.replanning {
            format!(" (the rest was planned anew {MAX_REPLANS} times)")
        } else {
            String::new()
        };
        let what: Vec<_> = failures.iter().map(|(_, why)| why.as_str()).collect();
        let what = what.join("; ");
        Some(format!("{what}{tried}; {}", words::so_far(&self.state)))
    }

    /// Plans the rest after a plan that ended with a search for tools, whose steps could not call
    /// tools that were not found yet.
    fn plan_with_found_tools(&mut self) {
        let past = self.state.past.iter();
        let searches = past.filter(|step| step.tool == FindToolsCall::TOOL);
        if searches.count() <= MAX_SEARCHES {
            self.plan_anew("The tools that were found can be called now.");
        }
    }

    /// Requests a summary of the results; a second time, if the first answer cannot be used.
    pub(super) async fn summarize(
        &mut self,
        run: &mut Run,
        perception: &Perception,
    ) -> Result<CycleThought, Stop> {
        let mut said = String::new();
        let mut came = None;
        for now in [
            "Every step of the plan in force worked. Sum up now.",
            "Sum up now, as one JSON object with `reached` (true or false) and `summary`.",
        ] {
            let question = ModelQuestion {
                tail: vec![kernel_says(&format!("{}\n{now}", super::SUMMARY_PROMPT))],
                output_schema: Some(summary_schema()),
                ..self.question(run, Purpose::Summarise, perception)
            };
            said = run.ask(question).await?.text();
            if run.goal().len() != self.state.heard {
                self.plan_anew("The person added to the goal.");
                return Ok(CycleThought::Nothing);
            }
            came = summary(&said);
            if came.is_some() {
                break;
            }
        }
        // Without a usable answer the goal does not count as reached.
        let (reached, mut answer) = came.unwrap_or_else(|| {
            let said = said.trim();
            let words = "every step of the plan worked, but the model did not say whether the goal \
                         is reached";
            (false, format!("{words}; it said: {said}"))
        });
        self.memory.add_observation("plan", &answer);
        if !self.state.files.is_empty() {
            answer.push_str(&format!("\n\nFiles: {}", self.state.files.join(", ")));
        }
        let worked = self.state.past.iter().filter(|step| step.worked);
        let evidence = worked.map(|step| Evidence {
            what: format!("step {} (`{}`) worked", step.id, step.tool),
            at: step.effect.to_string(),
        });
        Ok(CycleThought::Over(Claim {
            reached,
            answer,
            evidence: evidence.collect(),
            shortfalls: Vec::new(),
        }))
    }
}

fn summary_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"reached": {"type": "boolean"}, "summary": {"type": "string"}},
        "required": ["reached", "summary"],
        "additionalProperties": false,
    })
}

/// Returns whether the goal is reached, and the text for the person.
fn summary(said: &str) -> Option<(bool, String)> {
    let object = the_object(said, "summary").ok()?;
    let summary = object["summary"].as_str()?.trim();
    let reached = object.get("reached")?.as_bool()?;
    (!summary.is_empty()).then(|| (reached, summary.to_owned()))
}

/// Executes a call with replaced references, unless they could not be replaced, for the reason in
/// `wrong`, or made one of its paths invalid.
async fn execute_step(
    run: &mut Run,
    call: &ToolCall,
    wrong: Option<&str>,
) -> Result<Observation, Stop> {
    let spec = run.tools().iter().find(|spec| spec.name == call.tool);
    let trap = spec.and_then(|spec| check::commands_in_paths(spec, &call.arguments));
    let Some(why) = wrong.map(str::to_owned).or(trap) else {
        return browse::call(run, call, None).await;
    };
    Ok(Observation::refused(
        EffectId::cycle(run.cycle()),
        call,
        why,
    ))
}
