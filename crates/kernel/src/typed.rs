//! Passwords that a model types: a text for a secret's field is a secret, whatever it looks like,
//! and is removed from the reply before that is recorded.
//!
//! The fields are those of the last look. Within one reply the keyboard focus is followed from
//! action to action; after a key press it is unknown, and then any field for a secret counts.

use std::collections::{BTreeMap, BTreeSet};

use gyrus_contract::{
    Arguments as _, Bounds, ElementId, ElementState, Part, Reply, TypeTextCall, TypedInto, View,
    fields_filled, typed_text,
};
use serde_json::{Deserializer, Map, Value};

use crate::redact::Redactor;

/// Maximum number of objects in a text that are read.
const MAX_OBJECTS: usize = 64;

/// The secret fields of the last look.
#[derive(Debug, Clone, Default)]
pub(crate) struct SecretFields {
    fields: BTreeMap<ElementId, Option<Bounds>>,
    /// Whether one of the fields has the keyboard focus.
    focused: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FocusKind {
    Secret,
    Other,
    Unknown,
}

impl SecretFields {
    pub(crate) fn of(view: &View) -> Self {
        let is_field = |role: &str| matches!(role, "textbox" | "searchbox" | "combobox");
        let secret = view.elements.iter().filter(|element| {
            element.states.contains(&ElementState::Masked)
                || (is_field(&element.role) && Redactor::names_password(&element.name))
        });
        let focused =
            |element: &&gyrus_contract::Element| element.states.contains(&ElementState::Focused);
        Self {
            focused: secret.clone().any(|element| focused(&element)),
            fields: secret.map(|element| (element.id, element.bounds)).collect(),
        }
    }

    /// Whether there are no secret fields.
    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Removes texts that are typed into secret fields from a reply.
    pub(crate) fn conceal(&self, reply: &mut Reply, redactor: &Redactor) {
        if self.is_empty() {
            return;
        }
        let mut focus = self.focus();
        for part in &mut reply.parts {
            match part {
                Part::Text(text) => text.text = self.concealed(&text.text, redactor),
                Part::ToolCall(call) => {
                    if let Value::Object(arguments) = &mut call.arguments {
                        self.act(&call.tool, arguments, &mut focus, &mut |text| {
                            *text = redactor.conceal(text);
                        });
                    }
                }
                Part::Thinking(_) | Part::Image(_) | Part::ToolResult(_) => {}
            }
        }
    }

    /// Returns a text without the parts that the actions in it type into secret fields.
    pub(crate) fn concealed(&self, text: &str, redactor: &Redactor) -> String {
        let mut typed = BTreeSet::new();
        let mut rest = text;
        for _ in 0..MAX_OBJECTS {
            let Some(at) = rest.find('{') else { break };
            let mut values = Deserializer::from_str(&rest[at..]).into_iter::<Value>();
            let read = values.next();
            let length = values.byte_offset();
            rest = match read {
                Some(Ok(mut value)) => {
                    let mut focus = self.focus();
                    self.walk(&mut value, &mut focus, &mut |text| {
                        typed.insert(std::mem::take(text));
                    });
                    &rest[at + length.max(1)..]
                }
                _ => &rest[at + 1..],
            };
        }
        let mut concealed = text.to_owned();
        for text in typed {
            // The text as a JSON string; as bare words it is known from now on.
            let quoted = Value::String(text.clone()).to_string();
            let marker = redactor.conceal(&text);
            concealed = concealed.replace(&quoted, &Value::String(marker).to_string());
        }
        concealed
    }

    fn focus(&self) -> FocusKind {
        if self.focused {
            FocusKind::Secret
        } else {
            FocusKind::Other
        }
    }

    /// Visits the actions in their order.
    fn walk(&self, value: &mut Value, focus: &mut FocusKind, found: &mut dyn FnMut(&mut String)) {
        match value {
            Value::Array(values) => {
                for value in values {
                    self.walk(value, focus, found);
                }
            }
            Value::Object(object) => match object.get("do").and_then(Value::as_str) {
                Some(action) => {
                    let action = action.to_owned();
                    self.act(&action, object, focus, found);
                }
                None => {
                    for value in object.values_mut() {
                        self.walk(value, focus, found);
                    }
                }
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn act(
        &self,
        action: &str,
        arguments: &mut Map<String, Value>,
        focus: &mut FocusKind,
        found: &mut dyn FnMut(&mut String),
    ) {
        let filled = fields_filled(arguments);
        let secret = filled.filter(|(field, _)| self.fields.contains_key(field));
        secret.for_each(|(_, text)| found(text));
        let is_secret = match TypedInto::of(arguments) {
            TypedInto::Element(id) => self.fields.contains_key(&id),
            TypedInto::Point(x, y) => self.is_at(x as i32, y as i32),
            TypedInto::Focused if action == TypeTextCall::TOOL => match focus {
                FocusKind::Secret | FocusKind::Unknown => true,
                FocusKind::Other => false,
            },
            TypedInto::Focused => {
                *focus = FocusKind::Unknown;
                return;
            }
        };
        *focus = if is_secret {
            FocusKind::Secret
        } else {
            FocusKind::Other
        };
        if let (true, TypeTextCall::TOOL, Some(text)) = (is_secret, action, typed_text(arguments)) {
            found(text);
        }
    }

    fn is_at(&self, x: i32, y: i32) -> bool {
        let mut bounds = self.fields.values().flatten();
        bounds.any(|bounds| bounds.contains(x, y))
    }
}

#[cfg(test)]
mod tests {
    use gyrus_contract::{Origin, StopReason, Text, ToolCall};
    use serde_json::json;

    use super::*;

    fn fields(focused: bool) -> SecretFields {
        let bounds = Bounds {
            x: 100,
            y: 100,
            width: 200,
            height: 20,
        };
        SecretFields {
            fields: BTreeMap::from([("a2".parse().unwrap(), Some(bounds))]),
            focused,
        }
    }

    fn reply(parts: Vec<Part>) -> Reply {
        Reply {
            parts,
            usage: None,
            stop: StopReason::EndOfTurn,
            model: String::new(),
        }
    }

    fn call(tool: &str, arguments: Value) -> Part {
        Part::ToolCall(ToolCall::new(tool, arguments))
    }

    #[test]
    fn what_is_typed_into_a_field_for_a_secret_is_one() {
        let on = |id: &str| vec![call("type_text", json!({"on": id, "text": "swordfish"}))];
        let at = |x: i32| {
            vec![call(
                "type_text",
                json!({"at": [x, 110], "text": "swordfish"}),
            )]
        };
        let typed = || call("type_text", json!({"text": "swordfish"}));
        let click = |id: &str| call("click", json!({"on": id}));
        let key = || call("press_key", json!({"key": "Tab"}));
        let actions = |on: &str| {
            let text = json!({"note": "I type swordfish", "actions": [
                {"do": "type_text", "on": "a1", "text": "me"},
                {"do": "type_text", "on": on, "text": "swordfish"},
            ]});
            vec![Part::Text(Text::new(format!("So: {text}"), Origin::Model))]
        };
        for (focused, parts, leaves) in [
            (false, on("a2"), true),
            (false, on("a1"), false),
            (false, at(150), true),
            (false, at(50), false),
            (false, vec![typed()], false),
            (true, vec![typed()], true),
            (false, vec![click("a2"), typed()], true),
            (true, vec![click("a1"), typed()], false),
            (false, vec![key(), typed()], true),
            (false, actions("a2"), true),
            (false, actions("a1"), false),
        ] {
            let redactor = Redactor::new([7; 32], vec![]);
            let mut reply = reply(parts);
            let before = serde_json::to_string(&reply).unwrap();
            fields(focused).conceal(&mut reply, &redactor);
            // Redacts as the kernel does it next.
            let after = redactor
                .redact(&serde_json::to_string(&reply).unwrap())
                .into_owned();
            assert_eq!(!after.contains("swordfish"), leaves, "{before}\n{after}");
            assert_eq!(redactor.reveal(&after).unwrap(), before);
        }
    }

    #[test]
    fn a_short_code_leaves_where_it_is_typed_and_nowhere_else() {
        let redactor = Redactor::new([7; 32], vec![]);
        let mut reply = reply(vec![call("type_text", json!({"on": "a2", "text": "4711"}))]);
        fields(false).conceal(&mut reply, &redactor);
        let text = serde_json::to_string(&reply).unwrap();
        assert!(!text.contains("4711"), "{text}");
        assert_eq!(redactor.redact("room 4711"), "room 4711");
        assert!(redactor.reveal(&text).unwrap().contains("4711"));
    }
}
