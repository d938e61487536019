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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AgentStep {
    /// The id of the step, unique over all plans of a run.
    pub(super) id: String,
    /// The tool that the step calls.
    pub(super) tool: String,
    /// The arguments of the step; always an object.
    pub(super) input: Value,
    pub(super) reason: String,
    /// Whether a person should know of the step. This is only shown; the gate decides who is asked.
    pub(super) requires_permission: bool,
    /// The expected result of the step.
    pub(super) expected: String,
    /// The ids of steps that must have succeeded before.
    pub(super) depends_on: Vec<String>,
}

impl AgentStep {
    /// Returns the call of the step with its references filled in from `outputs`, and an error for
    /// references to nothing; that is left as it is written.
    pub(super) fn call(&self, outputs: &BTreeMap<String, Value>) -> (ToolCall, Option<String>) {
        let mut wrong = None;
        let input = filled(&self.input, outputs, &mut wrong);
        (ToolCall::new(self.tool.clone(), input), wrong)
    }

    /// Returns the ids of the steps whose outputs the step uses.
    pub(super) fn references(&self) -> Vec<String> {
        let mut found = Vec::new();
        each_text(&self.input, &mut |text| {
            found.extend(pieces(text).filter_map(|piece| match piece {
                InputPiece::Output(reference) => Some(reference.id.to_owned()),
                InputPiece::Words(_) => None,
            }));
        });
        found
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AgentPlan {
    /// The goal, in the person's words.
    pub(super) goal: String,
    pub(super) steps: Vec<AgentStep>,
}

impl AgentPlan {
    /// Returns the plan as text for a person's edits.
    pub(super) fn to_edit(&self) -> String {
        // Strings, booleans and JSON values can always be serialized.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// Parses the plan in a reply; returns all mistakes in its form if there are any, with those that
/// `check` finds in the steps that can be read.
pub(super) fn read(
    text: &str,
    check: impl Fn(&AgentStep) -> Vec<String>,
) -> Result<AgentPlan, Vec<String>> {
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
        Some(goal) if wrong.is_empty() => Ok(AgentPlan {
            goal: goal.to_owned(),
            steps: read,
        }),
        _ => {
            wrong.extend(read.iter().flat_map(check));
            Err(wrong)
        }
    }
}

fn step(number: usize, value: Value, wrong: &mut Vec<String>) -> Option<AgentStep> {
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
    (wrong.len() == before).then_some(AgentStep {
        id,
        tool,
        input: input?,
        reason,
        requires_permission: requires_permission?,
        expected,
        depends_on: depends_on?,
    })
}

/// Returns the arguments, given as an object or as the text of one.
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

/// Returns the schema for providers. `input` is a text in it: its form differs from tool to tool,
/// and a choice between all of them would be more than providers accept.
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
enum InputPiece<'a> {
    Words(&'a str),
    Output(OutputReference<'a>),
}

/// A reference `{{ID.output}}` or `{{ID.output.FIELD}}`.
#[derive(Clone, Copy)]
struct OutputReference<'a> {
    id: &'a str,
    /// The names of fields and the numbers of items, from 0, that lead into the output; separated
    /// by dots, empty for all of it.
    path: &'a str,
    written: &'a str,
}

/// Splits a text into words and references. Braces that are not a reference are words.
fn pieces(text: &str) -> impl Iterator<Item = InputPiece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some((reference, after)) = reference(rest) {
            rest = after;
            return Some(InputPiece::Output(reference));
        }
        let next = rest.char_indices().skip(1);
        let end = next
            .map(|(at, _)| at)
            .find(|at| reference(&rest[*at..]).is_some())
            .unwrap_or(rest.len());
        let (words, after) = rest.split_at(end);
        rest = after;
        Some(InputPiece::Words(words))
    })
}

/// Returns the reference that `text` begins with, and the text behind it.
fn reference(text: &str) -> Option<(OutputReference<'_>, &str)> {
    let (inside, after) = text.strip_prefix("{{")?.split_once("}}")?;
    let (id, path) = inside.trim().split_once(".output")?;
    let path = match path {
        "" => None,
        fields => Some(fields.strip_prefix('.')?),
    };
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let is_name = |name: &str| !name.is_empty() && name.chars().all(plain);
    let is_valid = is_name(id) && path.is_none_or(|path| path.split('.').all(is_name));
    let reference = OutputReference {
        id,
        path: path.unwrap_or_default(),
        written: &text[..text.len() - after.len()],
    };
    is_valid.then_some((reference, after))
}

impl OutputReference<'_> {
    /// Returns the text of the referenced output, or the reason why there is none.
    fn text(self, outputs: &BTreeMap<String, Value>) -> Result<String, String> {
        let OutputReference { id, path, written } = self;
        let Some(mut value) = outputs.get(id) else {
            return Ok(String::new());
        };
        for name in path.split('.').filter(|name| !name.is_empty()) {
            let field = match value {
                Value::Array(items) => name.parse().ok().and_then(|at: usize| items.get(at)),
                other => other.get(name),
            };
            value = field.ok_or_else(|| {
                let fields = value.as_object().into_iter().flat_map(Map::keys);
                let fields: Vec<_> = fields.map(String::as_str).collect();
                let known = if fields.is_empty() {
                    "it has no fields".to_owned()
                } else {
                    format!("its fields are {}", fields.join(", "))
                };
                format!("`{written}` refers to nothing: step {id} returned no `{name}`; {known}")
            })?;
        }
        Ok(plain_text(value).trim_end().to_owned())
    }
}

/// Returns a value as text: a text as it is, a list of plain values one per line, an object as its
/// field `text` or its only field, and everything else as JSON.
fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if !items.iter().any(|item| item.is_object() || item.is_array()) => {
            items.iter().map(plain_text).collect::<Vec<_>>().join("\n")
        }
        Value::Object(fields) => match (fields.get("text"), fields.values().next()) {
            (Some(text @ Value::String(_)), _) => plain_text(text),
            (_, Some(only)) if fields.len() == 1 => plain_text(only),
            _ => value.to_string(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => value.to_string(),
    }
}

/// Returns the value with its references replaced. References in the filled-in text are not
/// replaced again. The first one that refers to nothing is reported in `wrong`.
fn filled(value: &Value, outputs: &BTreeMap<String, Value>, wrong: &mut Option<String>) -> Value {
    match value {
        Value::String(text) => {
            let parts = pieces(text).map(|piece| match piece {
                InputPiece::Words(words) => words.to_owned(),
                InputPiece::Output(reference) => reference.text(outputs).unwrap_or_else(|why| {
                    wrong.get_or_insert(why);
                    reference.written.to_owned()
                }),
            });
            Value::String(parts.collect())
        }
        Value::Array(items) => items
            .iter()
            .map(|item| filled(item, outputs, wrong))
            .collect(),
        Value::Object(fields) => {
            let pairs = fields.iter();
            let pairs = pairs.map(|(name, value)| (name.clone(), filled(value, outputs, wrong)));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

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
            read(text, |_| Vec::new()).unwrap_err(),
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
        let draft = read(&format!("{one}]}}"), |_| Vec::new()).unwrap();
        assert_eq!(draft.steps[0].input, json!({"path": "a"}));
        assert_eq!(read(&draft.to_edit(), |_| Vec::new()).unwrap(), draft);
    }

    #[test]
    fn what_is_filled_in_is_data() {
        let outputs = BTreeMap::from([("1".to_owned(), json!("{{2.output}} $(x)\n"))]);
        let input = json!({"content": "{{ 1.output }}!{{name}} {{{1.output}}", "n": [1]});
        let mut wrong = None;
        assert_eq!(
            filled(&input, &outputs, &mut wrong),
            json!({"content": "{{2.output}} $(x)!{{name}} {{{2.output}} $(x)", "n": [1]})
        );
        assert_eq!(wrong, None);
    }

    #[test]
    fn a_reference_stands_for_the_value_or_a_field_of_it() {
        let outputs = BTreeMap::from([
            ("run".to_owned(), json!({"text": "1\n", "exit_code": 0})),
            ("find".to_owned(), json!({"paths": ["a", "b"]})),
            (
                "ask".to_owned(),
                json!({"users": [{"name": "Ada", "id": 7}], "more": false}),
            ),
            ("old".to_owned(), json!("words of a journal without values")),
        ]);
        for (text, expected) in [
            ("{{run.output}}", Ok("1")),
            ("{{run.output.exit_code}}", Ok("0")),
            ("{{find.output}}", Ok("a\nb")),
            ("{{find.output.paths.1}}", Ok("b")),
            ("{{ask.output.users.0.name}}", Ok("Ada")),
            ("{{ask.output.users.0}}", Ok(r#"{"id":7,"name":"Ada"}"#)),
            (
                "{{ask.output}}",
                Ok(r#"{"more":false,"users":[{"id":7,"name":"Ada"}]}"#),
            ),
            ("{{old.output}}", Ok("words of a journal without values")),
            (
                "{{run.outputs}} {{run.output.}}",
                Ok("{{run.outputs}} {{run.output.}}"),
            ),
            (
                "{{run.output.stdout}}",
                Err(
                    "`{{run.output.stdout}}` refers to nothing: step run returned no `stdout`; \
                     its fields are exit_code, text",
                ),
            ),
            (
                "{{find.output.paths.2}}",
                Err(
                    "`{{find.output.paths.2}}` refers to nothing: step find returned no `2`; it \
                     has no fields",
                ),
            ),
        ] {
            let mut wrong = None;
            let filled = filled(&json!(text), &outputs, &mut wrong);
            let found = match wrong {
                None => Ok(filled.as_str().unwrap().to_owned()),
                Some(why) => Err(why),
            };
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(found, expected, "{text}");
        }
    }
}
