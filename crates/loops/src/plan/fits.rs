//! Whether arguments fit a tool's JSON Schema, so that a plan can be repaired before it begins.
//!
//! It knows the keywords that tools use to describe arguments. What it does not know it lets pass:
//! the tool itself refuses what is wrong.

use serde_json::Value;

/// Nested deeper than this, nothing is looked at.
const DEEPEST: usize = 16;

/// Everything in which `value` does not fit `schema`; `at` is its place, in words for a model.
pub(super) fn misfits(value: &Value, schema: &Value, at: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    look(value, schema, at, DEEPEST, &mut wrong);
    wrong
}

fn look(value: &Value, schema: &Value, at: &str, left: usize, wrong: &mut Vec<String>) {
    let Some(left) = left.checked_sub(1) else {
        return;
    };
    if let Some(expected) = schema.get("type")
        && !is_of_type(value, expected)
    {
        wrong.push(format!("{at} must be of type {}", plain(expected)));
        return;
    }
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        wrong.push(format!("{at} must be one of {}", plain(&schema["enum"])));
    }
    if let Some(only) = schema.get("const")
        && only != value
    {
        wrong.push(format!("{at} must be {only}"));
    }
    for word in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[word].as_array()
            && !choices
                .iter()
                .any(|choice| misfits(value, choice, at).is_empty())
        {
            wrong.push(format!("{at} fits none of its forms"));
        }
    }
    match value {
        Value::Object(_) => object(value, schema, at, left, wrong),
        Value::Array(items) => {
            between(items.len(), schema, ["minItems", "maxItems"], at, wrong);
            for (number, item) in (1..).zip(items) {
                let at = format!("{at}, item {number}");
                look(item, &schema["items"], &at, left, wrong);
            }
        }
        Value::String(text) => {
            let length = text.chars().count();
            between(length, schema, ["minLength", "maxLength"], at, wrong);
        }
        Value::Number(number) => {
            let (number, bound) = (number.as_f64(), |word: &str| schema[word].as_f64());
            if number < bound("minimum") {
                wrong.push(format!("{at} must be at least {}", schema["minimum"]));
            }
            if bound("maximum").is_some_and(|most| number > Some(most)) {
                wrong.push(format!("{at} must be at most {}", schema["maximum"]));
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn object(value: &Value, schema: &Value, at: &str, left: usize, wrong: &mut Vec<String>) {
    let Some(fields) = value.as_object() else {
        return;
    };
    let required = schema["required"].as_array().into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            wrong.push(format!("{at}: `{name}` is missing"));
        }
    }
    for (name, item) in fields {
        let at = format!("{at}: `{name}`");
        match (
            schema["properties"].get(name),
            &schema["additionalProperties"],
        ) {
            (Some(known), _) => look(item, known, &at, left, wrong),
            (None, Value::Bool(false)) => {
                let known = schema["properties"].as_object();
                let known: Vec<_> = known.into_iter().flat_map(|fields| fields.keys()).collect();
                wrong.push(format!("{at} is not known; there are {known:?}"));
            }
            (None, rest) => look(item, rest, &at, left, wrong),
        }
    }
}

/// Whether a count is within the bounds of these names.
fn between(count: usize, schema: &Value, names: [&str; 2], at: &str, wrong: &mut Vec<String>) {
    let [least, most] = names.map(|name| schema[name].as_u64());
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    if least.is_some_and(|least| count < least) {
        wrong.push(format!(
            "{at} is too short; {} is the least",
            schema[names[0]]
        ));
    }
    if most.is_some_and(|most| count > most) {
        wrong.push(format!(
            "{at} is too long; {} is the most",
            schema[names[1]]
        ));
    }
}

fn is_of_type(value: &Value, expected: &Value) -> bool {
    match expected {
        Value::Array(choices) => choices.iter().any(|choice| is_of_type(value, choice)),
        Value::String(name) => match name.as_str() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            "number" => value.is_number(),
            "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            _ => true,
        },
        _ => true,
    }
}

/// A word without quotation marks, or the JSON as it is.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_looked_at_before_anything_is_called() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1},
                "depth": {"type": "integer", "minimum": 1, "maximum": 9},
                "kind": {"enum": ["a", "b"]},
                "names": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
                "either": {"anyOf": [{"type": "null"}, {"type": "number"}]},
            },
            "required": ["path"],
            "additionalProperties": false,
        });
        let check = |value: Value, expected: &[&str]| {
            assert_eq!(misfits(&value, &schema, "input"), expected, "{value}");
        };
        check(
            json!({"path": "a", "depth": 3.0, "kind": "b", "either": null}),
            &[],
        );
        check(json!({}), &["input: `path` is missing"]);
        check(json!("a"), &["input must be of type object"]);
        check(
            json!({"path": ""}),
            &["input: `path` is too short; 1 is the least"],
        );
        check(
            json!({"path": 3, "depth": 10, "kind": "c"}),
            &[
                "input: `depth` must be at most 9",
                "input: `kind` must be one of [\"a\",\"b\"]",
                "input: `path` must be of type string",
            ],
        );
        check(
            json!({"path": "a", "depth": 0.5, "names": ["a", 1, "c"], "either": "x"}),
            &[
                "input: `depth` must be of type integer",
                "input: `either` fits none of its forms",
                "input: `names` is too long; 2 is the most",
                "input: `names`, item 2 must be of type string",
            ],
        );
        check(
            json!({"path": "a", "sudo": true}),
            &[
                "input: `sudo` is not known; there are [\"depth\", \"either\", \"kind\", \"names\", \"path\"]",
            ],
        );
        // What is not known is the tool's business.
        assert!(misfits(&json!({"a": 1}), &json!({"$ref": "#/x"}), "input").is_empty());
    }
}
