//! The meaning of a server's tool, or of a form of a page, as a person confirmed it: what a call does
//! there, and what each argument stands for. The arguments of a form are its fields.
//!
//! Nothing that a server or a page says of itself is a meaning. What nobody described counts as a
//! destination, so a meaning that is incomplete makes calls stricter, never looser.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The action of a call of a server's tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolAction {
    /// Reads, and changes nothing.
    Reads,
    /// Creates things of the person's own, which nobody else sees.
    Creates,
    /// Changes things of the person's own.
    Changes,
    /// Sends something to others, or lets them see it.
    Sends,
    /// Moves money, or orders something that costs.
    Pays,
    /// Deletes, cancels or gives up something.
    Deletes,
}

/// The role of an argument: the kind of thing that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentRole {
    /// A place that something goes to: recipients, channels, accounts, people.
    To,
    /// Names one of the person's own things: an id, a file, an event.
    Name,
    /// An address or host that is asked for something, and so learns what it is asked.
    Page,
    /// A password, a key or a code.
    Password,
    /// Written text: subjects, messages, contents. Links in it are destinations of their own.
    Text,
    /// An amount of money.
    Amount,
    /// Whatever goes nowhere: dates, numbers, words of a search, settings.
    Option,
}

impl ToolAction {
    /// All actions with the words that stand for them.
    pub const ALL: [(ToolAction, &'static str); 6] = [
        (ToolAction::Reads, "reads"),
        (ToolAction::Creates, "creates"),
        (ToolAction::Changes, "changes"),
        (ToolAction::Sends, "sends"),
        (ToolAction::Pays, "pays"),
        (ToolAction::Deletes, "deletes"),
    ];
}

impl ArgumentRole {
    /// All roles with the words that stand for them.
    pub const ALL: [(ArgumentRole, &'static str); 7] = [
        (ArgumentRole::To, "to"),
        (ArgumentRole::Name, "name"),
        (ArgumentRole::Page, "page"),
        (ArgumentRole::Password, "password"),
        (ArgumentRole::Text, "text"),
        (ArgumentRole::Amount, "amount"),
        (ArgumentRole::Option, "option"),
    ];
}

impl fmt::Display for ToolAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(word_of(&Self::ALL, self))
    }
}

impl fmt::Display for ArgumentRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(word_of(&Self::ALL, self))
    }
}

/// The error for a word that names no action or no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is none of {known}")]
pub struct MeaningError {
    /// The word that was given.
    pub given: String,
    /// The words that there are.
    pub known: String,
}

impl FromStr for ToolAction {
    type Err = MeaningError;
    fn from_str(word: &str) -> Result<Self, MeaningError> {
        meant_by(&Self::ALL, word)
    }
}

impl FromStr for ArgumentRole {
    type Err = MeaningError;
    fn from_str(word: &str) -> Result<Self, MeaningError> {
        meant_by(&Self::ALL, word)
    }
}

fn word_of<T: PartialEq>(all: &[(T, &'static str)], meant: &T) -> &'static str {
    let found = all.iter().find(|(one, _)| one == meant);
    found.expect("every one is in its list").1
}

fn meant_by<T: Copy>(all: &[(T, &'static str)], given: &str) -> Result<T, MeaningError> {
    let found = all.iter().find(|(_, word)| *word == given);
    found.map(|(meant, _)| *meant).ok_or_else(|| MeaningError {
        given: given.chars().take(40).collect(),
        known: all
            .iter()
            .map(|(_, word)| *word)
            .collect::<Vec<_>>()
            .join(", "),
    })
}

/// The meaning of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolMeaning {
    /// The action of a call.
    pub action: ToolAction,
    /// The roles of its arguments. A name may lead into objects, `message.to`; lists are looked
    /// through. A role covers everything below its argument that has none of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, ArgumentRole>,
}

/// One value in the arguments of a call: a text, a number or a truth value, or the key of an object
/// that the tool's schema does not name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentValue {
    /// The place of the value: `to`, `events.participants`. Positions in lists are left out.
    pub path: String,
    /// Its role; `None` if nobody described it.
    pub role: Option<ArgumentRole>,
    /// The value, as text.
    pub text: String,
    /// Whether it is a text; otherwise a number or a truth value.
    pub is_text: bool,
}

/// A call of a server's tool, or the sending of a form of a page, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeantCall {
    /// The name by which a mandate speaks of it: that of the tool, or of the form.
    pub name: String,
    /// The action of the call; `None` if nobody said.
    pub action: Option<ToolAction>,
    /// All values of its arguments. The links in written text are values of their own.
    pub values: Vec<ArgumentValue>,
}

impl ArgumentValue {
    /// Whether something may go to where the value says. Whatever nobody described may.
    pub fn is_destination(&self) -> bool {
        matches!(
            self.role,
            None | Some(ArgumentRole::To | ArgumentRole::Page)
        )
    }
}

/// Maximum depth to which arguments are taken apart; whatever is deeper is one value.
const MAX_DEPTH: usize = 16;

/// Maximum number of references and alternatives of a schema that are followed at one place.
const MAX_ALTERNATIVES: usize = 32;

impl ToolMeaning {
    /// Takes the arguments of a call apart. `null` has no value, and neither has an empty list.
    /// `parameters` is the tool's schema.
    pub fn values(&self, arguments: &Value, parameters: &Value) -> Vec<ArgumentValue> {
        let mut parts = Parts {
            meaning: self,
            schema: parameters,
            path: Vec::new(),
            found: Vec::new(),
        };
        parts.take(arguments, &[parameters], 0);
        parts.found
    }

    /// The role of a place: that of the nearest argument at or above it that has one.
    fn role_at(&self, path: &[&str]) -> Option<ArgumentRole> {
        let role_of = |path: &[&str]| {
            let mut roles = self.arguments.iter();
            // The name is taken apart, not the path put together: a key may hold a dot.
            let is_at = |name: &str| name.split('.').eq(path.iter().copied());
            roles.find(|(name, _)| is_at(name)).map(|(_, role)| *role)
        };
        let mut lengths = (1..=path.len()).rev();
        lengths.find_map(|length| role_of(&path[..length]))
    }

    /// Whether a place, or something below it, was described.
    fn describes(&self, path: &[&str]) -> bool {
        let begins = |name: &str| {
            let mut parts = name.split('.');
            path.iter().all(|part| parts.next() == Some(part))
        };
        self.arguments.keys().any(|name| begins(name))
    }
}

/// Arguments that are being taken apart.
struct Parts<'a> {
    meaning: &'a ToolMeaning,
    /// The whole schema, into which references lead.
    schema: &'a Value,
    path: Vec<&'a str>,
    found: Vec<ArgumentValue>,
}

impl<'a> Parts<'a> {
    fn push(&mut self, text: String, is_text: bool) {
        self.found.push(ArgumentValue {
            path: self.path.join("."),
            role: self.meaning.role_at(&self.path),
            text,
            is_text,
        });
    }

    /// Takes a value apart of which these schemas speak.
    fn take(&mut self, value: &'a Value, schemas: &[&'a Value], depth: usize) {
        match value {
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) => self.push(value.to_string(), false),
            Value::String(text) => self.push(text.clone(), true),
            Value::Array(_) | Value::Object(_) if depth == MAX_DEPTH => {
                self.push(value.to_string(), true);
            }
            Value::Array(values) => {
                let schemas = self.alternatives(schemas);
                let items: Vec<&Value> = schemas.iter().map(|one| &one["items"]).collect();
                for value in values {
                    self.take(value, &items, depth + 1);
                }
            }
            Value::Object(object) => {
                let schemas = self.alternatives(schemas);
                for (key, value) in object {
                    let declared = schemas.iter().filter_map(|one| one["properties"].get(key));
                    let declared: Vec<&Value> = declared.collect();
                    self.path.push(key);
                    if declared.is_empty() && !self.meaning.describes(&self.path) {
                        // A key that only the call knows is as good a place for a text as a value.
                        self.push(key.clone(), true);
                    }
                    self.take(value, &declared, depth + 1);
                    self.path.pop();
                }
            }
        }
    }

    /// The schemas, and those that they refer to or leave the choice of.
    fn alternatives(&self, schemas: &[&'a Value]) -> Vec<&'a Value> {
        let mut all: Vec<&Value> = schemas.to_vec();
        let mut next = 0;
        while next < all.len() && all.len() < MAX_ALTERNATIVES {
            let schema = all[next];
            next += 1;
            let reference = schema["$ref"]
                .as_str()
                .and_then(|name| name.strip_prefix('#'));
            all.extend(reference.and_then(|pointer| self.schema.pointer(pointer)));
            for choice in ["anyOf", "oneOf", "allOf"] {
                all.extend(schema[choice].as_array().into_iter().flatten());
            }
        }
        all.truncate(MAX_ALTERNATIVES);
        all
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn meaning(arguments: &[(&str, ArgumentRole)]) -> ToolMeaning {
        ToolMeaning {
            action: ToolAction::Sends,
            arguments: arguments
                .iter()
                .map(|(name, role)| ((*name).to_owned(), *role))
                .collect(),
        }
    }

    fn shown(meaning: &ToolMeaning, arguments: &Value, schema: &Value) -> String {
        let values = meaning.values(arguments, schema).into_iter();
        let line = |value: ArgumentValue| {
            let role = value.role.map_or("-".to_owned(), |role| role.to_string());
            format!("{} {role} {}", value.path, value.text)
        };
        values.map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn lists_are_looked_through_and_objects_have_paths() {
        let meaning = meaning(&[
            ("people", ArgumentRole::To),
            ("people.note", ArgumentRole::Text),
            ("at", ArgumentRole::Option),
        ]);
        let schema = json!({
            "properties": {
                "people": {"items": {"$ref": "#/$defs/Person"}},
                "at": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "cc": {"items": {"type": "string"}},
            },
            "$defs": {"Person": {"properties": {"mail": {}, "note": {}}}},
        });
        let arguments = json!({
            "people": [{"mail": "a@x.com", "note": "hi"}, {"mail": null, "y@z.com": 1}],
            "at": 7,
            "cc": [["b@x.com"], []],
            "people.note": "a key with a dot is another key",
        });
        insta::assert_snapshot!(shown(&meaning, &arguments, &schema), @r"
        at option 7
        cc - b@x.com
        people.mail to a@x.com
        people.note text hi
        people.y@z.com to y@z.com
        people.y@z.com to 1
        people.note - people.note
        people.note - a key with a dot is another key
        ");
    }

    #[test]
    fn what_is_too_deep_is_one_value_that_nobody_described() {
        let mut deep = json!("evil@x.com");
        for _ in 0..40 {
            deep = json!([deep]);
        }
        let values = meaning(&[]).values(&json!({"to": deep}), &json!({}));
        assert!(values.iter().all(ArgumentValue::is_destination));
        assert!(values.iter().any(|value| value.text.contains("evil@x.com")));
    }
}
