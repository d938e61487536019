//! Repair of arguments that mean the right thing in the wrong form: a number in quotes, a list of
//! one without its brackets, a key that the tool does not know.
//!
//! Models write such arguments all the time, and every refusal costs a turn. A repair never decides
//! anything: it is made only where the arguments do not match the schema and match it afterwards.
//! The gate judges the repaired call, and the call names its repairs.

use serde_json::{Map, Value};

use crate::ToolSpec;

/// Maximum depth of values that are repaired.
const MAX_DEPTH: usize = 16;

impl ToolSpec {
    /// Returns the arguments in the form that the schema requires, with a sentence for each repair.
    /// Arguments that match the schema, or that no repair makes match it, are returned as they are.
    pub fn repair(&self, arguments: Value) -> (Value, Vec<String>) {
        if self.misfits(&arguments).is_empty() {
            return (arguments, Vec::new());
        }
        let mut repaired = arguments.clone();
        let mut repairs = Vec::new();
        repair(&self.parameters, &mut repaired, "", 0, &mut repairs);
        if repairs.is_empty() || !self.misfits(&repaired).is_empty() {
            return (arguments, Vec::new());
        }
        (repaired, repairs)
    }
}

fn repair(schema: &Value, value: &mut Value, at: &str, depth: usize, repairs: &mut Vec<String>) {
    if depth > MAX_DEPTH {
        return;
    }
    let wants = |kind: &str| match &schema["type"] {
        Value::String(one) => one == kind,
        Value::Array(several) => several.iter().any(|one| one == kind),
        _ => false,
    };
    let is_known = !schema["type"].is_null();
    if is_known && !wants(kind_of(value)) && !(wants("number") && value.is_number()) {
        let Some((other, how)) = converted(value, &wants) else {
            return;
        };
        repairs.push(if at.is_empty() {
            format!("what was given {how}")
        } else {
            format!("`{at}` {how}")
        });
        *value = other;
    }
    match value {
        Value::Object(fields) => repair_fields(schema, fields, at, depth, repairs),
        Value::Array(items) => {
            for item in items {
                repair(&schema["items"], item, at, depth + 1, repairs);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn repair_fields(
    schema: &Value,
    fields: &mut Map<String, Value>,
    at: &str,
    depth: usize,
    repairs: &mut Vec<String>,
) {
    let Some(known) = schema["properties"].as_object() else {
        return;
    };
    let is_closed = schema["additionalProperties"] == Value::Bool(false);
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    for name in fields.keys().cloned().collect::<Vec<_>>() {
        let path = if at.is_empty() {
            name.clone()
        } else {
            format!("{at}.{name}")
        };
        let Some(field) = known.get(&name) else {
            let same = known.keys().find(|other| plain(other) == plain(&name));
            match same.filter(|same| !fields.contains_key(*same)) {
                Some(same) => {
                    repairs.push(format!("`{path}` was read as `{same}`"));
                    if let Some(value) = fields.remove(&name) {
                        fields.insert(same.clone(), value);
                    }
                }
                None if is_closed => {
                    repairs.push(format!("`{path}` is not known and was left out"));
                    fields.remove(&name);
                }
                None => {}
            }
            continue;
        };
        let is_null = fields[&name].is_null();
        if is_null && !is_required(&name) && field["type"] != "null" {
            repairs.push(format!("`{path}` was null and was left out"));
            fields.remove(&name);
        }
    }
    for (name, value) in fields.iter_mut() {
        let path = if at.is_empty() {
            name.clone()
        } else {
            format!("{at}.{name}")
        };
        if let Some(field) = known.get(name) {
            repair(field, value, &path, depth + 1, repairs);
        }
    }
}

/// Returns the value in a required form, with a description of the conversion.
fn converted(value: &Value, wants: &dyn Fn(&str) -> bool) -> Option<(Value, &'static str)> {
    let text = value.as_str().map(str::trim);
    let parsed = text.and_then(|text| serde_json::from_str::<Value>(&text.to_lowercase()).ok());
    if let Some(parsed) = parsed.filter(|parsed| parsed.is_number() || parsed.is_boolean()) {
        let is_wanted = wants(kind_of(&parsed)) || (wants("number") && parsed.is_number());
        if is_wanted {
            return Some((parsed, "was text and was read as its value"));
        }
    }
    let parsed = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
    if let Some(parsed) = parsed.filter(|parsed| parsed.is_array() || parsed.is_object())
        && wants(kind_of(&parsed))
    {
        return Some((parsed, "was JSON in a text and was read as its value"));
    }
    if let Some(whole) = value.as_f64().filter(|number| number.fract() == 0.0)
        && wants("integer")
        && whole.abs() < 9e15
    {
        return Some((Value::from(whole as i64), "was read as a whole number"));
    }
    if wants("string") && (value.is_number() || value.is_boolean()) {
        return Some((Value::from(value.to_string()), "was read as text"));
    }
    (wants("array") && !value.is_null()).then(|| {
        let list = Value::Array(vec![value.clone()]);
        (list, "was read as a list of one")
    })
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns a name in a normal form for different spellings.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec() -> ToolSpec {
        let parameters = json!({
            "type": "object", "additionalProperties": false, "required": ["command"],
            "properties": {
                "command": {"type": "string"},
                "timeout_seconds": {"type": "integer"},
                "follow": {"type": "boolean"},
                "ratio": {"type": "number"},
                "paths": {"type": "array", "items": {"type": "string"}},
                "edits": {"type": "array", "items": {
                    "type": "object", "additionalProperties": false,
                    "properties": {"line": {"type": "integer"}}, "required": ["line"],
                }},
            },
        });
        ToolSpec {
            name: "shell".into(),
            description: String::new(),
            parameters,
            touches: Vec::new(),
            repeat: crate::Repeat::Never,
        }
    }

    #[test]
    fn what_means_the_right_thing_is_read_as_it() {
        for (given, wanted, repairs) in [
            (json!({"command": "ls"}), json!({"command": "ls"}), 0),
            (
                json!({"command": "ls", "timeout_seconds": "5", "follow": "True", "ratio": "0.5"}),
                json!({"command": "ls", "timeout_seconds": 5, "follow": true, "ratio": 0.5}),
                3,
            ),
            (
                json!({"command": 7, "timeout_seconds": 5.0, "paths": "a"}),
                json!({"command": "7", "timeout_seconds": 5, "paths": ["a"]}),
                3,
            ),
            (
                json!({"command": "ls", "paths": "[\"a\", \"b\"]", "follow": null}),
                json!({"command": "ls", "paths": ["a", "b"]}),
                2,
            ),
            (
                json!({"Command": "ls", "timeoutSeconds": 5, "explanation": "x"}),
                json!({"command": "ls", "timeout_seconds": 5}),
                3,
            ),
            (
                json!({"command": "ls", "edits": {"line": "3", "why": 1}}),
                json!({"command": "ls", "edits": [{"line": 3}]}),
                3,
            ),
        ] {
            let (repaired, told) = spec().repair(given.clone());
            assert_eq!(repaired, wanted, "{given}: {told:?}");
            assert_eq!(told.len(), repairs, "{given}: {told:?}");
        }
    }

    #[test]
    fn what_stays_wrong_is_not_touched() {
        for given in [
            json!({"timeout_seconds": "5"}),
            json!({"command": ["a", "b"]}),
            json!({"command": "ls", "timeout_seconds": "soon"}),
            json!("ls"),
            json!(null),
        ] {
            assert_eq!(spec().repair(given.clone()), (given, Vec::new()));
        }
    }
}
