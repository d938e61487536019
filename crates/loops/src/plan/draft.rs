//! A plan as a model, or a person, writes it: parsed tolerantly, completely or not at all.

use std::collections::BTreeMap;

use gyrus_contract::ToolCall;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::json::the_object_within;

/// Maximum number of steps in a plan: a person must be able to read it.
pub(super) const MAX_STEPS: usize = 50;

/// Maximum length of a plan's text in bytes; it may contain files.
const LONGEST: usize = 256 * 1024;

/// Maximum number of letters in a step's id.
const LONGEST_ID: usize = 24;

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Step {
    /// The id, unique over all plans of a run.
    pub(super) id: String,
    /// The tool that it calls.
    pub(super) tool: String,
    /// The arguments; always an object.
    pub(super) input: Value,
    /// The reason.
    pub(super) reason: String,
    /// Whether a person should know of it. This is only shown; the gate decides who is asked.
    pub(super) requires_permission: bool,
    /// The expected result.
    pub(super) expected: String,
    /// The ids of steps that must have succeeded before.
    pub(super) depends_on: Vec<String>,
}

impl Step {
    /// Returns the call of the step, with its references filled in from `outputs`.
    pub(super) fn call(&self, outputs: &BTreeMap<String, String>) -> ToolCall {
        ToolCall::new(self.tool.clone(), filled(&self.input, outputs))
    }

    /// Returns the ids of the steps that it refers to.
    pub(super) fn references(&self) -> Vec<String> {
        let mut found = Vec::new();
        each_text(&self.input, &mut |text| {
            found.extend(pieces(text).filter_map(|piece| match piece {
                Piece::Output(id) => Some(id.to_owned()),
                Piece::Words(_) => None,
            }));
        });
        found
    }
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Draft {
    /// The goal, in the person's words.
    pub(super) goal: String,
    /// The steps.
    pub(super) steps: Vec<Step>,
}

impl Draft {
    /// Returns the plan as a text that a person may edit.
    pub(super) fn to_edit(&self) -> String {
        // Strings, booleans and JSON values can always be serialized.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// Parses the plan in a reply; returns all mistakes in its form if there are any.
pub(super) fn read(text: &str) -> Result<Draft, Vec<String>> {
    let mut object = the_object_within(LONGEST, text, "steps").map_err(|why| vec![why])?;
    let Some(Value::Array(steps)) = object.remove("steps") else {
        return Err(vec!["`steps` must be a list".to_owned()]);
    };
    if steps.is_empty() {
        return Err(vec!["a plan has at least one step".to_owned()]);
    }
    if steps.len() > MAX_STEPS {
        let count = steps.len();
        return Err(vec![format!(
            "it has {count} steps, and {MAX_STEPS} are allowed: do what repeats in one step, by a \
             command or a script"
        )]);
    }
    let mut wrong = Vec::new();
    let goal = object.get("goal").and_then(Value::as_str);
    if goal.is_none() {
        wrong.push("`goal` is missing; it is the person's goal, word for word".to_owned());
    }
    let read: Vec<_> = (1..)
        .zip(steps)
        .filter_map(|(number, value)| step(number, value, &mut wrong))
        .collect();
    match goal {
        Some(goal) if wrong.is_empty() => Ok(Draft {
            goal: goal.to_owned(),
            steps: read,
        }),
        _ => Err(wrong),
    }
}

fn step(number: usize, value: Value, wrong: &mut Vec<String>) -> Option<Step> {
    let Value::Object(mut fields) = value else {
        wrong.push(format!("step number {number} must be an object"));
        return None;
    };
    let before = wrong.len();
    let mut missing = |name: &str, what: &str| {
        wrong.push(format!("step number {number}: `{name}` {what}"));
    };
    let mut text = |name: &str| match fields.remove(name) {
        Some(Value::String(text)) if !text.trim().is_empty() => text,
        // Models number the steps.
        Some(Value::Number(count)) if name == "id" => count.to_string(),
        _ => {
            missing(name, "is missing; it must be a text");
            String::new()
        }
    };
    let (id, tool) = (text("id"), text("tool"));
    let (reason, expected) = (text("reason"), text("expected"));
    let input = input(fields.remove("input"));
    if input.is_none() {
        missing("input", "must be an object with the tool's arguments");
    }
    let requires_permission = fields.get("requires_permission").and_then(Value::as_bool);
    if requires_permission.is_none() {
        missing("requires_permission", "must be true or false");
    }
    let depends_on = fields.remove("depends_on").and_then(ids);
    if depends_on.is_none() {
        missing("depends_on", "must be a list of ids");
    }
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    if !id.chars().all(plain) || id.len() > LONGEST_ID {
        missing("id", "must be short, of letters, digits, `-` and `_`");
    }
    (wrong.len() == before).then_some(Step {
        id,
        tool,
        input: input?,
        reason,
        requires_permission: requires_permission?,
        expected,
        depends_on: depends_on?,
    })
}

/// Returns the arguments: an object, or the text of one.
fn input(value: Option<Value>) -> Option<Value> {
    match value? {
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(object)) => Some(Value::Object(object)),
            _ => None,
        },
        object @ Value::Object(_) => Some(object),
        _ => None,
    }
}

fn ids(value: Value) -> Option<Vec<String>> {
    let Value::Array(items) = value else {
        return None;
    };
    let one = |item: Value| match item {
        Value::String(id) => Some(id),
        Value::Number(count) => Some(count.to_string()),
        _ => None,
    };
    items.into_iter().map(one).collect()
}

/// Returns the schema that a provider may enforce. `input` is a text in it: its form differs from
/// tool to tool, and a choice between all of them would be more than providers accept.
pub(super) fn schema() -> Value {
    let text = || json!({"type": "string"});
    let step = json!({
        "id": text(),
        "tool": text(),
        "input": {"type": "string", "description": "the tool's arguments: the JSON text of one object"},
        "reason": text(),
        "requires_permission": {"type": "boolean"},
        "expected": text(),
        "depends_on": {"type": "array", "items": text()},
    });
    let closed = |properties: Value| {
        let names: Vec<String> = properties
            .as_object()
            .map(|fields| fields.keys().cloned().collect())
            .unwrap_or_default();
        json!({
            "type": "object",
            "properties": properties,
            "required": names,
            "additionalProperties": false,
        })
    };
    closed(json!({
        "goal": text(),
        "steps": {"type": "array", "items": closed(step)},
    }))
}

/// A part of a text in an input.
enum Piece<'a> {
    Words(&'a str),
    /// A reference `{{ID.output}}`.
    Output(&'a str),
}

/// Splits a text into its parts. Braces that are not a reference are words.
fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some((id, after)) = reference(rest) {
            rest = after;
            return Some(Piece::Output(id));
        }
        let next = rest.char_indices().skip(1);
        let end = next
            .map(|(at, _)| at)
            .find(|at| reference(&rest[*at..]).is_some())
            .unwrap_or(rest.len());
        let (words, after) = rest.split_at(end);
        rest = after;
        Some(Piece::Words(words))
    })
}

/// Returns the id of the reference that `text` begins with, and the text behind it.
fn reference(text: &str) -> Option<(&str, &str)> {
    let (inside, after) = text.strip_prefix("{{")?.split_once("}}")?;
    let id = inside.trim().strip_suffix(".output")?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    (!id.is_empty() && id.chars().all(plain)).then_some((id, after))
}

/// Returns the value with its references filled in. References in the filled-in text are not
/// replaced again.
fn filled(value: &Value, outputs: &BTreeMap<String, String>) -> Value {
    let fill = |text: &str| {
        let parts = pieces(text).map(|piece| match piece {
            Piece::Words(words) => words,
            Piece::Output(id) => outputs.get(id).map_or("", String::as_str),
        });
        parts.collect::<String>()
    };
    match value {
        Value::String(text) => Value::String(fill(text)),
        Value::Array(items) => items.iter().map(|item| filled(item, outputs)).collect(),
        Value::Object(fields) => {
            let pairs = fields.iter();
            let pairs = pairs.map(|(name, value)| (name.clone(), filled(value, outputs)));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Calls `see` for every text in a value.
pub(super) fn each_text(value: &Value, see: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, see)),
        Value::Object(fields) => fields.values().for_each(|item| each_text(item, see)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_field_is_named_at_once() {
        let text = r#"{"goal": "g", "steps": [{"id": 1, "tool": "read", "input": "{\"path\": \"a\"}",
            "reason": "r", "requires_permission": false, "expected": "e", "depends_on": []},
            {"id": "b!", "input": [], "depends_on": "1"}]}"#;
        assert_eq!(
            read(text).unwrap_err(),
            [
                "step number 2: `tool` is missing; it must be a text",
                "step number 2: `reason` is missing; it must be a text",
                "step number 2: `expected` is missing; it must be a text",
                "step number 2: `input` must be an object with the tool's arguments",
                "step number 2: `requires_permission` must be true or false",
                "step number 2: `depends_on` must be a list of ids",
                "step number 2: `id` must be short, of letters, digits, `-` and `_`",
            ]
        );
        let one = text.split_once(",\n            {\"id\": \"b!\"").unwrap().0;
        let draft = read(&format!("{one}]}}")).unwrap();
        assert_eq!(draft.steps[0].input, json!({"path": "a"}));
        assert_eq!(read(&draft.to_edit()).unwrap(), draft);
    }

    #[test]
    fn what_is_filled_in_is_data() {
        let outputs = BTreeMap::from([("1".to_owned(), "{{2.output}} $(x)".to_owned())]);
        let input = json!({"content": "{{ 1.output }}!{{name}} {{{1.output}}", "n": [1]});
        assert_eq!(
            filled(&input, &outputs),
            json!({"content": "{{2.output}} $(x)!{{name}} {{{2.output}} $(x)", "n": [1]})
        );
    }
}
