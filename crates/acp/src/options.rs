//! Settings of a session as the protocol has them: approval modes as its modes, and modes, loops and
//! models as its configuration options.

use serde_json::{Value, json};

use crate::host::{SessionSettings, SettingChoice, SettingChoices};

pub(crate) const APPROVE: &str = "approve";
pub(crate) const LOOP: &str = "loop";
pub(crate) const MODEL: &str = "model";

/// The value of the option `model` for the configured one, since values may not be empty.
const CONFIGURED: &str = "configured";

pub(crate) fn modes(choices: &SettingChoices, settings: &SessionSettings) -> Value {
    let modes: Vec<Value> = choices
        .modes
        .iter()
        .map(|mode| json!({"id": mode.value, "name": mode.name, "description": mode.about}))
        .collect();
    json!({"currentModeId": settings.mode, "availableModes": modes})
}

pub(crate) fn options(choices: &SettingChoices, settings: &SessionSettings) -> Value {
    let select = |id, name, category: &str, current: &str, choices: &[SettingChoice]| {
        let mut options: Vec<Value> = choices.iter().map(option).collect();
        if !choices.iter().any(|choice| choice.value == current) {
            // It was named on the command line, or the session had it before.
            options.push(json!({"value": shown(current), "name": current}));
        }
        json!({
            "id": id,
            "name": name,
            "category": category,
            "type": "select",
            "currentValue": shown(current),
            "options": options,
        })
    };
    json!([
        select(APPROVE, "Approvals", "mode", &settings.mode, &choices.modes),
        select(MODEL, "Model", "model", &settings.model, &choices.models),
        select(
            LOOP,
            "Loop",
            "_loop",
            &settings.cognitive_loop,
            &choices.loops
        ),
    ])
}

fn option(choice: &SettingChoice) -> Value {
    let mut option = json!({"value": shown(&choice.value), "name": choice.name});
    if !choice.about.is_empty() {
        option["description"] = json!(choice.about);
    }
    option
}

fn shown(value: &str) -> &str {
    if value.is_empty() { CONFIGURED } else { value }
}

/// Returns the settings with another value of an option.
///
/// # Errors
/// A message if there is no such option or value.
pub(crate) fn set(
    choices: &SettingChoices,
    settings: &SessionSettings,
    id: &str,
    value: &str,
) -> Result<SessionSettings, String> {
    let mut settings = settings.clone();
    let (known, current) = match id {
        APPROVE => (&choices.modes, &mut settings.mode),
        LOOP => (&choices.loops, &mut settings.cognitive_loop),
        MODEL => (&choices.models, &mut settings.model),
        _ => {
            let id = gyrus_text::quote(id, 40);
            return Err(format!(
                "there is no option {id}; there are {APPROVE}, {LOOP} and {MODEL}"
            ));
        }
    };
    if shown(current) == value {
        return Ok(settings);
    }
    let Some(choice) = known.iter().find(|choice| shown(&choice.value) == value) else {
        let value = gyrus_text::quote(value, 40);
        return Err(format!("{value} is not a value of the option `{id}`"));
    };
    current.clone_from(&choice.value);
    Ok(settings)
}
