//! Learning what a run did with other tools than those of a screen.

use serde_json::Value;

use gyrus_contract::ActionVerdict;

use crate::{
    NotLearned, ProcedureStep, RecordedRun, SlotShape, SlotTemplate, address,
    find_slots::{FoundSlots, UsedValue},
    recorded::UnnamedProcedure,
    shape,
    template::{one_spaced, places},
};

/// Maximum length in bytes of a text that a command with slots may write: a longer one was probably
/// written for its values.
const WRITTEN: usize = 80;

/// The tool whose argument is a command line.
const SHELL: &str = "shell";

/// Returns the procedure of a run in a folder, still without a name.
pub(crate) fn learn(run: &RecordedRun) -> Result<UnnamedProcedure, NotLearned> {
    let kept: Vec<_> = run
        .steps
        .iter()
        .filter(|step| {
            let seen = &step.observation;
            !seen.is_error && (seen.verdict == ActionVerdict::Changed || step.call.tool == SHELL)
        })
        .collect();
    let texts: Vec<_> = kept
        .iter()
        .flat_map(|step| strings(&step.call.arguments))
        .collect();
    let used = values_of(&run.command);
    let used = used
        .into_iter()
        .filter(|value| {
            texts
                .iter()
                .any(|(_, text)| !places(text, value).is_empty())
        })
        .map(|value| UsedValue {
            value,
            label: String::new(),
        });
    let used: Vec<_> = used.collect();
    let found = FoundSlots::of(&run.command, &used);
    let mut said = String::new();
    let mut steps = Vec::new();
    for step in &run.steps {
        if kept.iter().any(|kept| std::ptr::eq(*kept, step)) {
            steps.push(made(step, &found, &said)?);
        }
        said.push('\n');
        said.push_str(&step.observation.text.text);
    }
    Ok(UnnamedProcedure {
        command: found.command,
        slots: found.slots,
        steps,
    })
}

fn made(
    step: &crate::RecordedStep,
    found: &FoundSlots,
    said: &str,
) -> Result<ProcedureStep, NotLearned> {
    let mut texts = Vec::new();
    for (pointer, text) in strings(&step.call.arguments) {
        let form = SlotTemplate::of(&text, &found.slots, |_| true);
        let fixed = form.fixed_words();
        let tokens = fixed.split_whitespace().map(trimmed);
        let derived = tokens
            .filter(|token| is_value(token) && places(&one_spaced(&fixed), token).len() == 1)
            .find(|token| !places(said, token).is_empty() && found.slot_of(token).is_err());
        if let Some(token) = derived {
            return Err(NotLearned::derived(token));
        }
        if !found.slots.is_empty() && step.call.tool != SHELL && text.len() > WRITTEN {
            return Err(NotLearned::derived(&text));
        }
        let in_shell = step.call.tool == SHELL;
        let is_quoted = |slot: usize| found.slots[slot].shape == SlotShape::Quoted;
        if in_shell && form.slots().any(is_quoted) {
            return Err(NotLearned::because(
                "any text of the command would become a part of a command line",
            ));
        }
        if address::has_slot(&form) {
            texts.push((pointer, form));
        }
    }
    Ok(ProcedureStep {
        tool: step.call.tool.clone(),
        arguments: step.call.arguments.clone(),
        texts,
        commits: step.commits,
        waited_ms: step.waited_ms,
        ..ProcedureStep::default()
    })
}

fn strings(value: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect(value, String::new(), &mut found);
    found
}

fn collect(value: &Value, at: String, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) => found.push((at, text.clone())),
        Value::Array(list) => {
            for (index, one) in list.iter().enumerate() {
                collect(one, format!("{at}/{index}"), found);
            }
        }
        Value::Object(map) => {
            for (name, one) in map {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(one, format!("{at}/{name}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn trimmed(token: &str) -> &str {
    let is_mark = |c: char| !c.is_alphanumeric() && !['/', '-', '_', '%'].contains(&c);
    token.trim_matches(is_mark)
}

/// Whether a word looks like a value: a number, a file name, an address.
fn is_value(token: &str) -> bool {
    let has_mark = |c: char| c.is_numeric() || ['/', '.', '_', '@'].contains(&c);
    token.len() > 1 && token.chars().any(has_mark) || token.parse::<u64>().is_ok()
}

/// Returns the values in a command: what is quoted, and words that look like values.
fn values_of(command: &str) -> Vec<String> {
    let command = one_spaced(command);
    let quoted = command.split(shape::is_quotation).skip(1).step_by(2);
    let words = command
        .split(' ')
        .map(trimmed)
        .filter(|word| is_value(word));
    let all = quoted.chain(words).map(str::trim);
    let mut values: Vec<_> = all.filter(|it| !it.is_empty()).map(str::to_owned).collect();
    values.sort();
    values.dedup();
    values
}
