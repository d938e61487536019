//! A procedure in words, for the person who promotes it.

use gyrus_procedures::{
    Expectation, LearnedPlace, Procedure, ProcedureStep, SlotTemplate, SlotValues,
};
use gyrus_text::{counted, one_line, shorten, visible};
use serde_json::{Value, json};

/// Maximum number of characters of a text that is quoted in a line.
const QUOTED: usize = 200;

/// Returns the command that a procedure answers to, with the names of its slots in capitals.
pub(crate) fn command(procedure: &Procedure) -> String {
    procedure.command.filled(&names(procedure))
}

/// Returns the names of the slots in capitals, as values. Two of one name are numbered.
pub(super) fn names(procedure: &Procedure) -> SlotValues {
    let mut names: Vec<String> = Vec::new();
    for slot in &procedure.slots {
        let plain = slot
            .name
            .trim()
            .to_uppercase()
            .replace(char::is_whitespace, "-");
        let mut name = plain.clone();
        let mut number = 1;
        while names.contains(&name) {
            number += 1;
            name = format!("{plain}-{number}");
        }
        names.push(name);
    }
    SlotValues(names)
}

/// Returns the description of a procedure, one thing a line: place, steps, conditions, checks.
pub(crate) fn lines(procedure: &Procedure) -> Vec<String> {
    let names = names(procedure);
    let mut lines = vec![format!("answers to: {}", command(procedure))];
    for (slot, name) in procedure.slots.iter().zip(&names.0) {
        let shape = format!("{:?}", slot.shape).to_lowercase();
        let learned = shorten(&slot.learned, QUOTED);
        lines.push(format!("  {name}: {shape}; it was “{learned}”"));
    }
    lines.push(match &procedure.place {
        LearnedPlace::Site { origin, start } => {
            format!("only on {origin}; without --url it begins at {start}")
        }
        LearnedPlace::Desktop { workspace } => {
            format!("only with --screen x11, in the folder {workspace}")
        }
        LearnedPlace::Folder { workspace } => format!("only in the folder {workspace}"),
    });
    let count = procedure.steps.len();
    for (number, step) in procedure.steps.iter().enumerate() {
        let binds = if step.commits {
            "  ← binds you: at most once, and never again if its outcome is unknown"
        } else {
            ""
        };
        lines.push(format!(
            "{:>width$}. {}{binds}",
            number + 1,
            described(step, &names),
            width = count.to_string().len()
        ));
    }
    if !procedure.steps.iter().any(|step| step.commits) {
        lines.push("no step sends, orders, pays or deletes anything".to_owned());
    }
    lines.push(format!(
        "looks at {} on the way and in the end, and stops where one does not hold",
        counted(conditions(procedure), "condition")
    ));
    for check in &procedure.checks {
        lines.push(format!("then checks {}", shorten(check, QUOTED)));
    }
    lines
}

/// Returns the steps as a numbered list in Markdown, for a skill.
pub(crate) fn numbered(procedure: &Procedure) -> String {
    let names = names(procedure);
    let steps = procedure.steps.iter().enumerate().map(|(number, step)| {
        let binds = if step.commits {
            " This binds somebody: read back what was filled in first, and do it once."
        } else {
            ""
        };
        let words = described(step, &names);
        format!("{}. {}.{binds}\n", number + 1, visible(&one_line(&words)))
    });
    steps.collect()
}

fn conditions(procedure: &Procedure) -> usize {
    let of_steps = procedure.steps.iter();
    let of_steps = of_steps.map(|step| step.before.len() + step.after.len());
    of_steps.sum::<usize>() + procedure.ends.len()
}

pub(super) fn described(step: &ProcedureStep, names: &SlotValues) -> String {
    let targets: Vec<String> = step
        .targets
        .iter()
        .map(|(_, anchor)| shorten(&anchor.in_words(names), QUOTED).into_owned())
        .collect();
    let arguments: Vec<String> = match written(step) {
        Value::Object(fields) if fields.len() == 1 => fields
            .values()
            .map(|value| argument(value, names))
            .collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{name} {}", argument(value, names)))
            .collect(),
        Value::Null => Vec::new(),
        other => vec![argument(&other, names)],
    };
    let tool = step.tool.replace('_', " ");
    let (targets, arguments) = (targets.join(" to "), arguments.join(", "));
    let done = match (targets.is_empty(), arguments.is_empty()) {
        (_, true) => format!("{tool} {targets}").trim_end().to_owned(),
        (true, false) => format!("{tool} {arguments}"),
        (false, false) => format!("{tool} {arguments} in {targets}"),
    };
    match window(step, names) {
        Some(title) => format!("{done}, in the window “{}”", shorten(&title, QUOTED)),
        None => done,
    }
}

/// Returns the title of the window that has the keyboard before a step on a desktop.
fn window(step: &ProcedureStep, names: &SlotValues) -> Option<String> {
    step.before.iter().find_map(|one| match one {
        Expectation::Windows { are } => {
            let active = are.iter().find(|window| window.is_active)?;
            Some(active.title.filled(names))
        }
        Expectation::Address { .. }
        | Expectation::NewAddress { .. }
        | Expectation::Shows { .. }
        | Expectation::ShowsAny { .. }
        | Expectation::Value { .. }
        | Expectation::Chosen { .. }
        | Expectation::Fields { .. }
        | Expectation::Amounts { .. }
        | Expectation::Asks { .. } => None,
    })
}

/// Returns the arguments of a step as JSON, with templates for those that contain slots.
pub(super) fn written(step: &ProcedureStep) -> Value {
    let mut arguments = step.arguments.clone();
    for (pointer, template) in &step.texts {
        if let Some(argument) = arguments.pointer_mut(pointer) {
            *argument = json!(template);
        }
    }
    arguments
}

fn argument(value: &Value, names: &SlotValues) -> String {
    let text = match value {
        Value::String(text) => format!("“{text}”"),
        other => match serde_json::from_value::<SlotTemplate>(other.clone()) {
            Ok(template) => format!("“{}”", template.filled(names)),
            Err(_) => other.to_string(),
        },
    };
    shorten(&text, QUOTED).into_owned()
}
