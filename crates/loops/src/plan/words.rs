//! Descriptions of a plan: for the model, for the card that a person approves, and at the end.

use std::{fmt::Write as _, sync::Arc};

use gyrus_contract::{Decision, Mode, Origin, Risk, Text, ToolSpec, Touch, Verdict};
use gyrus_kernel::ApprovalCard;
use gyrus_text::{counted, head_and_tail};
use serde_json::Value;

use super::{
    PlanState,
    check::ValidPlan,
    draft::{AgentPlan, AgentStep},
};
use crate::review::not_taken;

/// Maximum number of lines of one argument on a card; a command line is shown whole.
const ARGUMENT_LINES: usize = 12;

/// Maximum number of mistakes in a plan that are returned at once.
const MOST_REASONS: usize = 30;

/// Maximum number of characters of a step's result in later prompts.
const OUTCOME: usize = 4_000;

/// Maximum number of letters of a failure in the run's last message.
const FAILURE: usize = 400;

/// Describes the planner's environment beside the goal: the approval mode and the tools.
pub(super) fn surroundings(mode: Mode, tools: &[Arc<ToolSpec>]) -> String {
    let means = match mode {
        Mode::ReadOnly => "only steps that change nothing are allowed",
        Mode::Ask | Mode::Edits => {
            "plain changes in the folder, and what runs confined, happen unasked; a person is \
             asked about everything else, step by step"
        }
        Mode::Auto => "a person is asked only about what is unsandboxed or critical",
        Mode::Never => "nobody is asked; a step that would have to ask fails",
    };
    let mut text = format!("Trust level: `{mode}`: {means}.\n\nThe tools:\n");
    for spec in tools {
        let _ = write!(
            text,
            "\n`{}`: {}\n{}\n",
            spec.name, spec.description, spec.parameters
        );
    }
    text
}

/// Returns the reasons why a plan cannot be carried out.
pub(super) fn refused(wrong: &[String]) -> String {
    let mut text =
        "The plan cannot be carried out, and nothing has happened. What is wrong:".to_owned();
    for reason in wrong.iter().take(MOST_REASONS) {
        text.push_str("\n- ");
        text.push_str(reason);
    }
    if wrong.len() > MOST_REASONS {
        let _ = write!(text, "\n- and {} more", wrong.len() - MOST_REASONS);
    }
    text.push_str("\nAnswer with the whole plan again, repaired, as one JSON object.");
    text
}

/// Lists a plan in a few lines.
pub(super) fn listed(draft: &AgentPlan) -> String {
    let count = draft.steps.len();
    let mut text = format!("a plan of {}", counted(count, "step"));
    for step in &draft.steps {
        let _ = write!(text, "\n{}. {}: {}", step.id, step.tool, step.reason);
    }
    text
}

/// Returns the card on which a person decides about a plan. `wrong` are the mistakes in their last
/// edit.
pub(super) fn card(checked: &ValidPlan, tools: &[Arc<ToolSpec>], wrong: &[String]) -> ApprovalCard {
    let ValidPlan { draft, verdicts } = checked;
    let asks = |verdict: &&Verdict| verdict.decision == Decision::Ask;
    let asking = verdicts.iter().flatten().filter(asks).count();
    let steps = counted(draft.steps.len(), "step");
    let again = match asking {
        0 => String::new(),
        1 => "; 1 of them asks again when it runs".to_owned(),
        _ => format!("; {asking} of them ask again when they run"),
    };
    let judged = draft.steps.iter().zip(verdicts).map(|(step, verdict)| {
        let marked = if step.requires_permission {
            ", marked as risky"
        } else {
            ""
        };
        format!(
            "step {} (`{}`{marked}): {}",
            step.id,
            step.tool,
            foreseen(verdict.as_ref())
        )
    });
    ApprovalCard {
        sentence: format!("The agent wants to carry out a plan of {steps}{again}"),
        reasons: not_taken(wrong).chain(judged).collect(),
        details: draft.steps.iter().map(|step| detail(step, tools)).collect(),
        edit: Some(draft.to_edit()),
        ..ApprovalCard::default()
    }
}

fn foreseen(verdict: Option<&Verdict>) -> String {
    let Some(verdict) = verdict else {
        return "judged when its turn comes".to_owned();
    };
    let risk = match verdict.risk {
        Risk::Safe => "changes nothing",
        Risk::Moderate => "a plain change",
        Risk::High => "high risk",
        Risk::Critical => "critical",
    };
    match verdict.decision {
        Decision::Allow => format!("{risk}, runs unasked"),
        Decision::Ask | Decision::Deny => {
            format!("{risk}, asks again: {}", verdict.reasons.join("; "))
        }
    }
}

fn detail(step: &AgentStep, tools: &[Arc<ToolSpec>]) -> Text {
    let spec = tools.iter().find(|spec| spec.name == step.tool);
    let runs = |name: &str| {
        let is_line = |touch: &Touch| touch.command_line() == Some(name);
        spec.is_some_and(|spec| spec.touches(is_line))
    };
    let after = if step.depends_on.is_empty() {
        String::new()
    } else {
        format!(" (after {})", step.depends_on.join(", "))
    };
    let mut text = format!("{}. {}{after}: {}", step.id, step.tool, step.reason);
    for (name, value) in step.input.as_object().into_iter().flatten() {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let lines: Vec<&str> = value.lines().collect();
        let shown = if runs(name) {
            lines.len()
        } else {
            ARGUMENT_LINES
        };
        let _ = write!(text, "\n   {name}: ");
        for (number, line) in lines.iter().take(shown).enumerate() {
            let indent = if number == 0 { "" } else { "\n      " };
            let _ = write!(text, "{indent}{line}");
        }
        if lines.len() > shown {
            let _ = write!(
                text,
                "\n      … {}",
                counted(lines.len() - shown, "more line")
            );
        }
    }
    let _ = write!(text, "\n   expected: {}", step.expected);
    Text::new(text, Origin::Model)
}

/// Describes the result of a step for the model.
pub(super) fn outcome(step: &AgentStep, said: &str, failed: bool) -> String {
    let word = if failed { "failed" } else { "worked" };
    format!(
        "Step {} (`{}`) {word}:\n{}",
        step.id,
        step.tool,
        shortened(said, OUTCOME)
    )
}

/// Returns the reason why the plan stops at `step`.
pub(super) fn failure(step: &AgentStep, said: &str) -> String {
    let said: Vec<&str> = said.split_whitespace().collect();
    let said = shortened(&said.join(" "), FAILURE);
    format!("step {} (`{}`) failed: {said}", step.id, step.tool)
}

/// Describes the work of the run before it stopped.
pub(super) fn so_far(state: &PlanState) -> String {
    let named = |worked: bool| {
        let steps = state.past.iter().filter(|step| step.worked == worked);
        let names: Vec<_> = steps
            .map(|step| format!("{} (`{}`)", step.id, step.tool))
            .collect();
        names.join(", ")
    };
    let mut parts = Vec::new();
    match named(true) {
        worked if worked.is_empty() => parts.push("no step had worked".to_owned()),
        worked => parts.push(format!("done: {worked}")),
    }
    if !state.steps.is_empty() {
        let open: Vec<_> = state.steps.iter().map(|step| step.id.as_str()).collect();
        parts.push(format!("not begun: {}", open.join(", ")));
    }
    if !state.files.is_empty() {
        parts.push(format!("files: {}", state.files.join(", ")));
    }
    parts.join("; ")
}

/// Returns the beginning and the end of a text that is too long.
fn shortened(text: &str, most: usize) -> String {
    let text = text.trim_end();
    match head_and_tail(text, most / 2, most / 2) {
        None => text.to_owned(),
        Some((head, omitted, tail)) => {
            let omitted = counted(omitted, "byte");
            format!("{head}\n[… {omitted} left out …]\n{tail}")
        }
    }
}

/// Returns the fact `task.plan`: the plan, and the gate's expected verdicts.
pub(super) fn fact(checked: &ValidPlan) -> Value {
    let steps = checked.draft.steps.iter().zip(&checked.verdicts);
    let steps = steps.map(|(step, verdict)| {
        let mut fact = serde_json::json!(step);
        if let Some(verdict) = verdict {
            fact["risk"] = serde_json::json!(verdict.risk);
            fact["decision"] = serde_json::json!(verdict.decision);
        }
        fact
    });
    steps.collect()
}
