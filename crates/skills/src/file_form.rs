//! A skill as a single file: `# SKILL: name`, and sections for description, triggers, steps,
//! permissions and the maximum number of steps.

use crate::skill::Draft;

pub(crate) fn is_one(text: &str) -> bool {
    title(
        text.trim_start_matches('\u{feff}')
            .trim_start()
            .lines()
            .next()
            .unwrap_or_default(),
    )
    .is_some()
}

pub(crate) fn declared_name(text: &str) -> Option<String> {
    let mut lines = text.trim_start_matches('\u{feff}').trim_start().lines();
    title(lines.next()?).map(str::to_owned)
}

fn title(line: &str) -> Option<&str> {
    line.strip_prefix("# SKILL:").map(str::trim)
}

/// Parses the file. Unknown sections are part of the instructions.
pub(crate) fn read(text: &str) -> Draft {
    let mut draft = Draft::default();
    let mut section = String::new();
    let mut steps = String::new();
    let mut description = (1, String::new());
    for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        if let (None, Some(name)) = (&draft.name, title(line)) {
            draft.name = Some((number, name.to_owned()));
            continue;
        }
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading.trim().to_lowercase();
            match section.as_str() {
                "description" => description.0 = number,
                "triggers" | "permissions" | "maxiterations" => {}
                "steps" => draft.instructions.0 = number,
                _ => steps.push_str(&format!("{line}\n")),
            }
            continue;
        }
        let item = line.trim().trim_start_matches(['-', '*']).trim();
        match section.as_str() {
            "description" => description.1.push_str(&format!("{line} ")),
            "triggers" if !item.is_empty() => {
                let trigger = item.trim_matches('`').to_owned();
                draft.triggers.push((number, trigger));
            }
            "permissions" if !item.is_empty() => {
                draft.permissions.push_str(&format!("{item}\n"));
            }
            "maxiterations" if !item.is_empty() => {
                draft.max_steps = Some((number, item.to_owned()))
            }
            "triggers" | "permissions" | "maxiterations" => {}
            _ => steps.push_str(&format!("{line}\n")),
        }
    }
    if !description.1.trim().is_empty() {
        draft.description = Some(description);
    }
    draft.instructions.1 = steps;
    draft
}
