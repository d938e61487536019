//! Options as they are stored and sent: a map by their names, without those that are not given.
//!
//! A value may be written in several forms, as whoever typed it meant it: a number as a text, the
//! only item of a list without the list.

use clap::{Arg, ArgAction, Args as _};
use serde::{Deserialize, Deserializer, Serialize as _, Serializer};
use serde_json::{Map, Value, json};

use super::{flags::RunOptions, values::RefusedRequest};

/// The name that replaces unreadable options.
const UNREADABLE: &str = "unreadable";

/// Returns all options by their names, none of them set.
fn none() -> Map<String, Value> {
    match serde_json::to_value(RunOptions::default()) {
        Ok(Value::Object(none)) => none,
        _ => Map::new(),
    }
}

pub(super) fn are_none(options: &RunOptions) -> bool {
    *options == RunOptions::default()
}

/// Writes the options that are set.
///
/// # Errors
/// A path is not valid UTF-8.
pub fn serialize<S: Serializer>(options: &RunOptions, serializer: S) -> Result<S::Ok, S::Error> {
    if let Some(refused) = &options.refused {
        return json!({UNREADABLE: refused.to_string()}).serialize(serializer);
    }
    let mut given = match serde_json::to_value(options) {
        Ok(Value::Object(given)) => given,
        Ok(_) => Map::new(),
        Err(error) => return Err(serde::ser::Error::custom(error)),
    };
    let none = none();
    given.retain(|name, value| none.get(name) != Some(value));
    given.serialize(serializer)
}

/// Reads options, in any of the forms. What is wrong with them is said when a run is to start: one
/// command of another version does not make a queue unreadable.
///
/// # Errors
/// The value is not a map.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RunOptions, D::Error> {
    let given = Map::deserialize(deserializer)?;
    let read = match given.get(UNREADABLE) {
        Some(why) => Err(RefusedRequest {
            message: why.as_str().unwrap_or(UNREADABLE).to_owned(),
            hint: None,
        }),
        None => read(given),
    };
    Ok(read.unwrap_or_else(|refused| RunOptions {
        refused: Some(refused),
        ..RunOptions::default()
    }))
}

/// Reads options, in any of the forms.
///
/// # Errors
/// An option is unknown, or its value cannot be taken.
pub fn read(given: Map<String, Value>) -> Result<RunOptions, RefusedRequest> {
    let mut all = none();
    let wrong = |name: &str, error: serde_json::Error| RefusedRequest {
        message: format!("invalid value for `--{name}`: {error}"),
        hint: None,
    };
    for (name, value) in given {
        if !all.contains_key(&name) {
            let near = gyrus_text::closest(&name, all.keys().map(String::as_str));
            return Err(RefusedRequest {
                message: format!("there is no option `{name}`"),
                hint: Some(match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "the options are those of gyrus run --help, without dashes".to_owned(),
                }),
            });
        }
        let read = |value: &Value| serde_json::from_value::<RunOptions>(json!({&name: value}));
        let fits = forms(&value).find(|form| read(form).is_ok());
        match (fits, read(&value)) {
            (Some(form), _) => drop(all.insert(name, form)),
            (None, Err(error)) => return Err(wrong(&name, error)),
            (None, Ok(_)) => {}
        }
    }
    serde_json::from_value(Value::Object(all)).map_err(|error| wrong("", error))
}

/// Returns the values that a given one may mean.
fn forms(value: &Value) -> impl Iterator<Item = Value> {
    let other = match value {
        Value::Number(number) => Some(Value::from(number.to_string())),
        Value::String(text) => text.parse::<u64>().ok().map(Value::from),
        _ => None,
    };
    let alone = [Some(value.clone()), other];
    let listed = alone.clone().into_iter().flatten();
    let listed = listed.map(|value| Value::Array(vec![value]));
    alone.into_iter().flatten().chain(listed)
}

/// Returns the JSON Schema of the options.
pub fn schema() -> Value {
    let command = RunOptions::augment_args(clap::Command::new("run"));
    let mut properties = Map::new();
    for name in none().keys() {
        let mut all = command.get_arguments();
        let option = all.find(|option| option.get_long() == Some(name));
        properties.extend(option.map(|option| (name.clone(), schema_of(option))));
    }
    json!({
        "type": "object",
        "description": "Options of `gyrus run`, by their long names without dashes.",
        "properties": properties,
        "additionalProperties": false,
    })
}

fn schema_of(option: &Arg) -> Value {
    let values = option.get_possible_values();
    let values: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
    let text = if values.is_empty() {
        json!({"type": ["string", "number"]})
    } else {
        json!({"type": "string", "enum": values})
    };
    let mut schema = match option.get_action() {
        ArgAction::SetTrue => json!({"type": "boolean"}),
        ArgAction::Append => {
            json!({"anyOf": [text, {"type": "array", "items": {"type": "string"}}]})
        }
        _ => text,
    };
    if let Some(help) = option.get_help() {
        schema["description"] = json!(help.to_string());
    }
    schema
}
