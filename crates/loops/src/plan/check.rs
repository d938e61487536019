//! Checks that a plan can be carried out, and reports all mistakes at once.

use std::sync::Arc;

use gyrus_contract::{Decision, FINISH, PathArgument, Perception, ToolSpec, Touch, Verdict};
use gyrus_kernel::{EffectError, Foreseen, Run, Stop};

use serde_json::Value;

use super::{
    draft::{AgentPlan, AgentStep},
    order,
};
use crate::goal;

/// Number of letters above which a goal may be shortened at its end.
const LONG_GOAL: usize = 300;

/// Maximum number of servers' tools that a message names.
const SHOWN_SERVED: usize = 40;

/// Shell syntax that a path should not contain.
const COMMANDS_IN_PATHS: [&str; 7] = ["\n", "`", "$(", "&&", "||", "; ", " | "];

/// A plan that can be executed.
#[derive(Debug, Clone)]
pub(super) struct ValidPlan {
    pub(super) draft: AgentPlan,
    /// The gate's expected verdict on each step; `None` where it depends on the output of an
    /// earlier one.
    pub(super) verdicts: Vec<Option<Verdict>>,
}

/// The facts for checking a plan.
pub(super) struct Against<'a> {
    pub(super) perception: &'a Perception,
    pub(super) tools: &'a [Arc<ToolSpec>],
    /// The ids of steps that ran before, and whether they succeeded.
    pub(super) before: Vec<(&'a str, bool)>,
}

/// Checks a plan. The gate is only asked if there are no other mistakes.
pub(super) fn validate_plan(
    run: &mut Run,
    draft: AgentPlan,
    against: &Against<'_>,
) -> Result<ValidPlan, EffectError<Vec<String>>> {
    let mut wrong = Vec::new();
    if !is_the_goal(&draft.goal, &goal::first_goal(against.perception)) {
        wrong.push(
            "`goal` is not the person's goal: repeat that word for word; you cannot change it"
                .to_owned(),
        );
    }
    for (index, step) in draft.steps.iter().enumerate() {
        let earlier = &draft.steps[..index];
        let used = earlier.iter().any(|other| other.id == step.id)
            || against.before.iter().any(|(id, _)| *id == step.id);
        if used {
            wrong.push(format!("the id `{}` is used twice", step.id));
        }
        wrong.extend(of_step(step, &draft, against));
    }
    let waits = order::waits(&draft.steps, against.tools);
    if let Some(circle) = order::circle(&draft.steps, &waits) {
        let circle = circle.join(" → ");
        wrong.push(format!("steps wait for each other in a circle: {circle}"));
    }
    if !wrong.is_empty() {
        return Err(EffectError::Failed(wrong));
    }
    let verdicts = evaluate(run, &draft, &mut wrong)?;
    if wrong.is_empty() {
        Ok(ValidPlan { draft, verdicts })
    } else {
        Err(EffectError::Failed(wrong))
    }
}

/// Whether a plan's goal is the person's: the same words, or their beginning if there are many.
fn is_the_goal(plan: &str, person: &str) -> bool {
    let plain = |text: &str| {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let ends = |letter: char| "\"'“”‘’`.!".contains(letter);
        words.join(" ").trim_matches(ends).to_owned()
    };
    let (plan, person) = (plain(plan), plain(person));
    plan == person || (plan.chars().count() >= LONG_GOAL && person.starts_with(&plan))
}

/// Returns the mistakes in a step's tool and its arguments.
pub(super) fn of_tool<S: std::borrow::Borrow<ToolSpec>>(
    step: &AgentStep,
    tools: &[S],
) -> Vec<String> {
    let AgentStep { id, tool, .. } = step;
    let mut specs = tools.iter().map(S::borrow);
    let Some(spec) = specs.find(|spec| spec.name == *tool) else {
        // Servers may have hundreds.
        let (served, own): (Vec<&ToolSpec>, Vec<&ToolSpec>) = tools
            .iter()
            .map(S::borrow)
            .partition(|spec| spec.is_served());
        let shown = own.iter().chain(served.iter().take(SHOWN_SERVED));
        let mut known: Vec<_> = shown.map(|spec| spec.name.as_str()).collect();
        if served.len() > SHOWN_SERVED {
            known.push("and more of servers");
        }
        return vec![match tool.as_str() {
            FINISH => format!(
                "step {id}: `{FINISH}` is not a step; when all steps have worked, the work is over"
            ),
            _ => format!(
                "step {id}: there is no tool `{tool}`; there are {}",
                known.join(", ")
            ),
        }];
    };
    let misfits = spec.misfits(&step.input).into_iter();
    let misfits = misfits.map(|why| format!("step {id} (`{tool}`): {why}"));
    let trap = commands_in_paths(spec, &step.input);
    let trap = trap.map(|why| format!("step {id}: {why}"));
    misfits.chain(trap).collect()
}

/// Returns the mistakes in a single step.
fn of_step(step: &AgentStep, draft: &AgentPlan, against: &Against<'_>) -> Vec<String> {
    let AgentStep { id, tool, .. } = step;
    let mut wrong = of_tool(step, against.tools);
    let spec = against.tools.iter().find(|spec| spec.name == *tool);
    let of_plan = |other: &String| draft.steps.iter().any(|step| step.id == *other);
    for other in step.depends_on.iter().filter(|other| !of_plan(other)) {
        if !against.before.contains(&(other.as_str(), true)) {
            wrong.push(format!(
                "step {id} depends on `{other}`, which is not a step"
            ));
        }
    }
    for other in step.references().iter().filter(|other| !of_plan(other)) {
        wrong.push(format!(
            "step {id} uses the output of `{other}`, which is not a step of this plan"
        ));
    }
    let touches = spec.map_or(&[][..], |spec| &spec.touches);
    for argument in touches.iter().filter_map(Touch::command_line) {
        if has_reference(step, argument) {
            wrong.push(format!(
                "step {id}: no output may stand in `{argument}`, where it would be run; let an \
                 earlier step write it to a file, and the command read that"
            ));
        }
    }
    wrong
}

/// Returns the reason why a path of a call is invalid: it contains text that is meant for a shell.
pub(super) fn commands_in_paths(spec: &ToolSpec, arguments: &Value) -> Option<String> {
    let paths = spec.touches.iter().filter_map(Touch::paths);
    let mut single = paths.filter(|paths| !paths.is_list);
    single.find_map(|PathArgument { name: argument, .. }| {
        let path = arguments[argument].as_str()?;
        let sign = COMMANDS_IN_PATHS
            .iter()
            .find(|sign| path.contains(**sign))?;
        Some(format!(
            "`{argument}` looks like a command line, not like a path: it has {sign:?} in it; \
             commands are steps of their own"
        ))
    })
}

fn has_reference(step: &AgentStep, argument: &str) -> bool {
    let alone = AgentStep {
        input: step.input[argument].clone(),
        ..step.clone()
    };
    !alone.references().is_empty()
}

/// Returns the gate's expected verdicts. A step that it would deny in any case is a mistake.
fn evaluate(
    run: &mut Run,
    draft: &AgentPlan,
    wrong: &mut Vec<String>,
) -> Result<Vec<Option<Verdict>>, Stop> {
    let own = |step: &AgentStep| run.tools().iter().any(|spec| spec.name == step.tool);
    // Values that an earlier step fills in are not known, and steps that the loop performs itself
    // are judged inside.
    let known: Vec<bool> = draft
        .steps
        .iter()
        .map(|step| step.references().is_empty() && own(step))
        .collect();
    let asked = draft.steps.iter().zip(&known).filter(|(_, known)| **known);
    let nothing = std::collections::BTreeMap::new();
    let calls: Vec<_> = asked.map(|(step, _)| step.call(&nothing).0).collect();
    let mut answers = if calls.is_empty() {
        Vec::new()
    } else {
        run.foresee(&calls)?
    }
    .into_iter();
    let mut verdicts = Vec::with_capacity(draft.steps.len());
    for (step, known) in draft.steps.iter().zip(known) {
        let AgentStep { id, tool, .. } = step;
        let answer = if known { answers.next() } else { None };
        verdicts.push(match answer {
            Some(Foreseen::Judged(verdict)) => {
                if verdict.decision == Decision::Deny {
                    let why = verdict.reasons.join("; ");
                    wrong.push(format!("step {id} (`{tool}`) is not allowed: {why}"));
                }
                Some(verdict)
            }
            Some(Foreseen::Unresolvable(why)) => {
                wrong.push(format!("step {id} (`{tool}`): {why}"));
                None
            }
            None => None,
        });
    }
    Ok(verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_may_be_quoted_and_a_long_one_cut() {
        let goal = "Sort the files in ./inbox by year.";
        for same in [
            goal,
            "\"sort the files  in ./inbox by year\"",
            " Sort the files in ./INBOX by year!",
        ] {
            assert!(is_the_goal(same, goal), "{same}");
        }
        for other in [
            "",
            "Sort the files",
            "Sort the files in ./inbox by year, then delete them",
        ] {
            assert!(!is_the_goal(other, goal), "{other}");
        }
        let long = "a word and ".repeat(100);
        assert!(is_the_goal(&long[..400], &long));
        assert!(!is_the_goal(&long[..100], &long));
        assert!(!is_the_goal(&format!("{} delete all", &long[..400]), &long));
    }
}
