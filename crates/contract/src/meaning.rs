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
    /// A place to which something goes: recipients, channels, accounts, people.
    To,
    /// The name of one of the person's own things: an id, a file, an event.
    Name,
    /// An address or host from which something is requested, and which so learns of the request.
    Page,
    /// A password, a key or a code.
    Password,
    /// Written text: subjects, messages, contents. Links in it are destinations of their own.
    Text,
    /// An amount of money.
    Amount,
    /// A value that goes nowhere: dates, numbers, words of a search, settings.
    Option,
}

impl ToolAction {
    /// All actions with their words.
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
    /// All roles with their words.
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
    /// The unknown word.
    pub given: String,
    /// The words that are allowed.
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolMeaning {
    /// The action of a call.
    pub action: ToolAction,
    /// The roles of the tool's arguments. A name may lead into objects, `message.to`; lists are
    /// looked through. A role says nothing of the parts of an argument, whose names the call
    /// chooses; `filter.*` describes all of them that have no role of their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, ArgumentRole>,
}

/// A value in the arguments of a call: a text, a number or a truth value, or the key of an object
/// that the tool's schema does not name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentValue {
    /// The place of the value: `to`, `events.participants`. Positions in lists are left out.
    pub path: String,
    /// The value's role; `None` if nobody described it.
    pub role: Option<ArgumentRole>,
    pub text: String,
    /// Whether the value is a text; otherwise a number or a truth value.
    pub is_text: bool,
}

/// A call of a server's tool, or the sending of a form of a page, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeantCall {
    /// Name of the tool or form, as mandates refer to it.
    pub name: String,
    /// The action of the call; `None` if nobody said.
    pub action: Option<ToolAction>,
    /// All values in the call's arguments. The links in written text are values of their own.
    pub values: Vec<ArgumentValue>,
}

impl ArgumentValue {
    /// Whether something may go to the place in the value, as for every undescribed value.
    pub fn is_destination(&self) -> bool {
        matches!(
            self.role,
            None | Some(ArgumentRole::To | ArgumentRole::Page)
        )
    }
}

/// Placeholder in the name of an argument that matches every part of it.
pub const ANY_PART: &str = "*";

/// Maximum depth to which arguments are taken apart; whatever is deeper is one value, which nobody
/// described.
const MAX_DEPTH: usize = 16;

/// Maximum number of references and alternatives of a schema that are followed at one place.
const MAX_ALTERNATIVES: usize = 32;

impl ToolMeaning {
    /// Splits the arguments of a call into values. `null` has no value, and neither has an empty
    /// list. `parameters` is the tool's schema.
    pub fn values(&self, arguments: &Value, parameters: &Value) -> Vec<ArgumentValue> {
        let mut parts = ArgumentParts {
            meaning: self,
            schema: parameters,
            path: Vec::new(),
            found: Vec::new(),
        };
        parts.take(arguments, &[parameters], 0);
        parts.found
    }

    /// The role of a place: its own, or that of all parts of an argument around it. What stands
    /// anywhere in a password hands it over.
    pub fn role_at(&self, path: &[&str]) -> Option<ArgumentRole> {
        let own = |path: &[&str]| {
            let mut roles = self.arguments.iter();
            // The name is taken apart, not the path put together: a key may hold a dot.
            let found = roles.find(|(name, _)| name.split('.').eq(path.iter().copied()));
            found.map(|(_, role)| *role)
        };
        let around = || (1..path.len()).rev().map(|length| &path[..length]);
        let of_all_parts = || around().find_map(|path| own(&[path, &[ANY_PART]].concat()));
        let is_password = |role: &ArgumentRole| *role == ArgumentRole::Password;
        let of_password = || around().filter_map(own).find(is_password);
        own(path).or_else(of_all_parts).or_else(of_password)
    }

    /// Whether a path, or one below it, was described.
    fn describes(&self, path: &[String]) -> bool {
        let begins = |name: &str| {
            let mut parts = name.split('.');
            path.iter().all(|part| parts.next() == Some(part))
        };
        self.arguments.keys().any(|name| begins(name))
    }
}

/// The state of splitting arguments into values.
struct ArgumentParts<'a> {
    meaning: &'a ToolMeaning,
    /// The whole schema, into which references lead.
    schema: &'a Value,
    path: Vec<String>,
    found: Vec<ArgumentValue>,
}

impl<'a> ArgumentParts<'a> {
    fn role(&self) -> Option<ArgumentRole> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        self.meaning.role_at(&path)
    }

    fn push(&mut self, role: Option<ArgumentRole>, text: String, is_text: bool) {
        self.found.push(ArgumentValue {
            path: self.path.join("."),
            role,
            text,
            is_text,
        });
    }

    /// Adds data that is not split into values. It stands at a place below the argument, of which
    /// nothing that is said of the argument itself holds.
    fn push_unread(&mut self, text: String) {
        self.path.push("{}".to_owned());
        self.push(None, text, true);
        self.path.pop();
    }

    /// Splits a value that these schemas describe.
    fn take(&mut self, value: &Value, schemas: &[&'a Value], depth: usize) {
        let role = self.role();
        match value {
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) => self.push(role, value.to_string(), false),
            Value::String(text) => {
                self.push(role, text.clone(), true);
                // Servers read data that is written as a text as if it were not.
                match data_in(text) {
                    Some(Ok(data)) => self.take_data(&data, schemas, depth),
                    Some(Err(unread)) => self.push_unread(unread),
                    None => {}
                }
            }
            Value::Array(_) | Value::Object(_) => self.take_data(value, schemas, depth),
        }
    }

    /// Splits a list or an object into its parts.
    fn take_data(&mut self, value: &Value, schemas: &[&'a Value], depth: usize) {
        if depth == MAX_DEPTH {
            self.push_unread(value.to_string());
            return;
        }
        let schemas = self.alternatives(schemas);
        match value {
            Value::Array(values) => {
                let items: Vec<&Value> = schemas.iter().map(|one| &one["items"]).collect();
                for value in values {
                    self.take(value, &items, depth + 1);
                }
            }
            Value::Object(object) => {
                for (key, value) in object {
                    let declared = schemas.iter().filter_map(|one| one["properties"].get(key));
                    let declared: Vec<&Value> = declared.collect();
                    self.path.push(key.clone());
                    if declared.is_empty() && !self.meaning.describes(&self.path) {
                        // A key that only the call knows is as good a place for a text as a value.
                        self.push(self.role(), key.clone(), true);
                    }
                    self.take(value, &declared, depth + 1);
                    self.path.pop();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Returns the schemas, with those that they refer to or offer as a choice.
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

/// Returns the list or object in a text that contains nothing else, possibly in quotes; as an error
/// the text of one that a more lenient parser may read.
fn data_in(text: &str) -> Option<Result<Value, String>> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if text.starts_with('"') {
        return data_in(&serde_json::from_str::<String>(text).ok()?);
    }
    let is_object = text.starts_with('{') && text.ends_with('}');
    let is_list = text.starts_with('[') && text.ends_with(']');
    if !is_object && !is_list {
        return None;
    }
    let has_parts = text.contains(':') && text.contains('{');
    match serde_json::from_str(text) {
        Ok(data) => Some(Ok(data)),
        Err(_) => has_parts.then(|| Err(text.to_owned())),
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
        people.mail - a@x.com
        people.note text hi
        people.y@z.com - y@z.com
        people.y@z.com - 1
        people.note - people.note
        people.note - a key with a dot is another key
        ");
    }

    /// Arguments with a part that nobody described, where only the argument, or another part, was.
    #[test]
    fn parts_that_nobody_described_are_destinations_at_any_depth() {
        let deep = |inner: Value| (0..40).fold(inner, |inner, _| json!([inner]));
        let text = |value: Value| Value::String(value.to_string());
        let evil = || json!({"bcc": "evil@x.com"});
        let schema = json!({"properties": {
            "body": {"anyOf": [{"type": "string"}, {"properties": {"bcc": {}, "text": {}}}]},
            "items": {"items": {"properties": {"id": {}, "bcc": {}}}},
        }});
        let cases = [
            json!({"body": evil()}),
            json!({"body": [evil()]}),
            json!({"body": ["hi", [evil()]]}),
            json!({"body": {"text": "hi", "bcc": ["evil@x.com"]}}),
            json!({"body": {"text": {"bcc": "evil@x.com"}}}),
            json!({"body": {"text": "hi", "more": {"evil@x.com": true}}}),
            json!({"body": {"evil@x.com": null}}),
            json!({"body": {"to.evil@x.com": 1}}),
            json!({"body": {"": "evil@x.com"}}),
            json!({"body": {"*": "evil@x.com"}}),
            json!({"body": text(evil())}),
            json!({"body": format!(" \n\u{feff}{} ", evil())}),
            json!({"body": text(json!([evil()]))}),
            json!({"body": text(text(evil()))}),
            json!({"body": text(text(text(evil())))}),
            json!({"body": {"text": text(evil())}}),
            json!({"body": [text(evil())]}),
            json!({"body": "{\"bcc\": \"evil@x.com\", \"n\": NaN}"}),
            json!({"body": "{'bcc': 'evil@x.com'}"}),
            json!({"body": "{bcc: evil@x.com}"}),
            json!({"body": "[{bcc: evil@x.com}]"}),
            json!({"body": "{\"bcc\": \"evil@x.com\",}"}),
            json!({"body": deep(evil())}),
            json!({"body": text(deep(evil()))}),
            json!({"body": format!("{{\"a\":{}1{},\"bcc\":\"evil@x.com\"}}", "[".repeat(200), "]".repeat(200))}),
            json!({"items": [{"id": 1, "bcc": "evil@x.com"}]}),
            json!({"items": [[{"id": 1, "bcc": "evil@x.com"}]]}),
            json!({"items": {"0": {"id": 1, "to": "evil@x.com"}}}),
            json!({"items": text(json!([{"id": 1, "bcc": "evil@x.com"}]))}),
            json!({"items.id": "evil@x.com"}),
            json!({"items": [{"id": {"evil@x.com": "x"}}]}),
            json!({"n": {"evil@x.com": 1}}),
            json!({"n": [1, {"bcc": "evil@x.com"}]}),
        ];
        let meaning = meaning(&[
            ("body", ArgumentRole::Text),
            ("body.text", ArgumentRole::Text),
            ("items.id", ArgumentRole::Name),
            ("n", ArgumentRole::Option),
        ]);
        assert!(cases.len() >= 20);
        for case in cases {
            let values = meaning.values(&case, &schema);
            let mut places = values.iter().filter(|value| value.is_destination());
            assert!(
                places.any(|value| value.text.contains("evil@x.com")),
                "{case}: {values:?}"
            );
        }
    }

    #[test]
    fn texts_that_are_not_data_have_no_parts() {
        let meaning = meaning(&[("body", ArgumentRole::Text)]);
        for text in [
            "hi {name}",
            "[Draft] see [1]",
            "{name}",
            "[1, 2]",
            "\"hi\"",
            "{",
            "[]",
            "a: b",
        ] {
            let values = meaning.values(&json!({"body": text}), &json!({}));
            assert!(!values.iter().any(ArgumentValue::is_destination), "{text}");
        }
    }

    #[test]
    fn one_role_can_cover_all_parts() {
        let meaning = meaning(&[
            ("filter.*", ArgumentRole::Option),
            ("filter.owner", ArgumentRole::To),
            ("login", ArgumentRole::Password),
        ]);
        let schema = json!({"properties": {"filter": {}, "login": {}}});
        let arguments = json!({
            "filter": {"owner": "anna", "a": {"b": [1]}},
            "login": {"pin": 7},
        });
        insta::assert_snapshot!(shown(&meaning, &arguments, &schema), @r"
        filter.a option a
        filter.a.b option b
        filter.a.b option 1
        filter.owner to anna
        login.pin password pin
        login.pin password 7
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
