//! The actions of a model on a screen, and the schema of a reply with them.
//!
//! They are the tools of a screen and the end of the work. Prompt, schema and parser of replies use
//! one list; actions whose tool the run does not have are not offered.

use std::sync::LazyLock;

use gyrus_contract::{Arguments, FINISH, ScreenAction, ScreenEffect, screen_actions};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A model's claim that the work is over. Its token is not checked yet.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FinishClaim {
    #[serde(default)]
    pub(super) token: String,
    pub(super) reached: bool,
    pub(super) answer: String,
    /// It was no call but words: they are an answer, and claim nothing.
    #[serde(skip)]
    pub(super) in_words: bool,
}

impl Arguments for FinishClaim {
    const TOOL: &'static str = FINISH;
    const EXAMPLE: &'static str =
        r#"{"token": "12ab 34cd", "reached": true, "answer": "It is sent."}"#;
}

/// All actions, in the order of the prompt.
pub(super) static ACTIONS: LazyLock<Vec<ScreenAction>> = LazyLock::new(|| {
    let mut actions = screen_actions();
    actions.push(ScreenAction::of::<FinishClaim>(
        ScreenEffect::Acts,
        "{token, reached, answer}: ends the work; alone, and only after you have seen the outcome",
    ));
    actions
});

pub(super) fn named(name: &str) -> Option<&'static ScreenAction> {
    ACTIONS.iter().find(|action| action.name == name)
}

/// Returns the schema of a reply with these actions. Every action has the same schema: a choice
/// between twenty would be more than providers accept.
pub(super) fn schema(actions: &[&ScreenAction]) -> Value {
    let names: Vec<_> = actions.iter().map(|action| action.name).collect();
    let mut properties = Map::new();
    properties.insert("do".to_owned(), json!({"type": "string", "enum": names}));
    let arguments = actions.iter().flat_map(|action| arguments(action));
    properties.extend(arguments.map(|(name, schema)| (name.clone(), only_types(schema))));
    let closed = |properties: Value, required: Value| {
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    };
    let change = closed(
        json!({"key": {"type": "string"}, "text": {"type": "string"}}),
        json!(["key", "text"]),
    );
    closed(
        json!({
            "note": {"type": "string"},
            "memo": {"type": "array", "items": change},
            "actions": {"type": "array", "items": closed(properties.into(), json!(["do"]))},
            "expects": {"type": "string"},
        }),
        json!(["note", "memo", "actions", "expects"]),
    )
}

pub(super) fn arguments(action: &ScreenAction) -> impl Iterator<Item = (&String, &Value)> {
    action.schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
}

/// Returns a schema without keywords that not every provider accepts.
fn only_types(schema: &Value) -> Value {
    match schema {
        Value::Object(schema) => ["type", "enum", "items", "anyOf"]
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), only_types(schema.get(name)?))))
            .collect(),
        Value::Array(schemas) => schemas.iter().map(only_types).collect(),
        _ => schema.clone(),
    }
}
