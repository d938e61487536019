//! Results of calls, read as data: each leaf with the path of its field.

use gyrus_text::{Yaml, YamlNode, parse_yaml};
use serde_json::Value;

/// Maximum number of leaves of one result.
const MAX_LEAVES: usize = 10_000;

/// Maximum length in bytes of a text that is read as data.
const MAX_BYTES: usize = 256 * 1024;

/// Maximum length in bytes of a leaf; a longer one is running text.
const MAX_LEAF: usize = 2_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leaf {
    /// The names of the fields that lead to the leaf, joined by dots; positions in lists are left
    /// out.
    pub(super) field: String,
    pub(super) text: String,
    /// Whether the leaf is an element of a list of texts, or of names of things, rather than in a
    /// field of its own.
    pub(super) is_element: bool,
}

/// Returns the leaves of a result: of its structured content, or of a text that is JSON or YAML as
/// a whole. Running text has none.
pub(super) fn leaves(value: Option<&Value>, text: &str) -> Vec<Leaf> {
    let mut found = Leaves {
        found: Vec::new(),
        longest: MAX_LEAF,
    };
    found.read(value, text);
    found.found
}

pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Whether a result contains a word: in its text, or in a text of the data that it is, where a
/// quoted word has a backslash beside it.
pub(super) fn has_word(value: Option<&Value>, text: &str, is_in: impl Fn(&str) -> bool) -> bool {
    if is_in(text) {
        return true;
    }
    let mut read = Leaves {
        found: Vec::new(),
        longest: usize::MAX,
    };
    read.read(value, text);
    read.found.iter().any(|leaf| is_in(&leaf.text))
}

struct Leaves {
    found: Vec<Leaf>,
    /// Maximum length of a leaf in bytes.
    longest: usize,
}

impl Leaves {
    fn read(&mut self, value: Option<&Value>, text: &str) {
        match value {
            Some(value @ (Value::Object(_) | Value::Array(_))) => {
                self.json(value, "", LeafPlace::Field)
            }
            _ if text.len() > MAX_BYTES => {}
            _ => match serde_json::from_str::<Value>(text) {
                Ok(value @ (Value::Object(_) | Value::Array(_))) => {
                    self.json(&value, "", LeafPlace::Field)
                }
                Ok(_) => {}
                Err(_) => {
                    // A sentence with a colon in it is YAML, too.
                    if let Ok(node) = parse_yaml(text, 1)
                        && begins_as_data(&node)
                    {
                        self.yaml(&node, "", LeafPlace::Field);
                    }
                }
            },
        }
    }

    fn add(&mut self, field: &str, text: &str, place: LeafPlace) {
        let is_element = place == LeafPlace::List;
        let has_place = is_element || !field.is_empty();
        if self.found.len() < MAX_LEAVES && has_place && text.len() <= self.longest {
            self.found.push(Leaf {
                field: field.to_owned(),
                text: text.to_owned(),
                is_element,
            });
        }
    }

    fn json(&mut self, value: &Value, field: &str, place: LeafPlace) {
        match value {
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) => self.add(field, &value.to_string(), place),
            Value::String(text) => self.add(field, text, place),
            Value::Array(values) => {
                for value in values {
                    self.json(value, field, LeafPlace::List);
                }
            }
            Value::Object(object) => {
                for (key, value) in object {
                    let below = self.below(field, key);
                    self.json(value, &below, LeafPlace::Field);
                }
            }
        }
    }

    fn yaml(&mut self, node: &YamlNode, field: &str, place: LeafPlace) {
        match &node.value {
            Yaml::Text(text, _) => self.add(field, text, place),
            Yaml::List(nodes) => {
                for node in nodes {
                    self.yaml(node, field, LeafPlace::List);
                }
            }
            Yaml::Map(fields) => {
                for (_, key, node) in fields {
                    let below = self.below(field, key);
                    self.yaml(node, &below, LeafPlace::Field);
                }
            }
        }
    }

    /// Returns the path of the values below a key. A key that programs do not write as the name of
    /// a field names a thing (`{"anna@example.com": "reads"}`): it is data itself, and no part of
    /// the path.
    fn below(&mut self, field: &str, key: &str) -> String {
        if !is_field_name(key) {
            self.add(field, key, LeafPlace::List);
            return field.to_owned();
        }
        if field.is_empty() {
            key.to_owned()
        } else {
            format!("{field}.{key}")
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LeafPlace {
    Field,
    List,
}

/// Whether the first keys of a document are names of fields.
fn begins_as_data(node: &YamlNode) -> bool {
    match &node.value {
        Yaml::Text(..) => true,
        Yaml::List(nodes) => nodes.iter().all(begins_as_data),
        Yaml::Map(fields) => fields.iter().all(|(_, key, _)| is_field_name(key)),
    }
}

fn is_field_name(key: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !key.is_empty() && key.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(value: Option<&Value>, text: &str) -> String {
        let all = leaves(value, text).into_iter();
        all.map(|leaf| format!("{}={}", leaf.field, leaf.text))
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn structured_content_json_and_yaml_have_fields_and_prose_has_none() {
        let value = json!({"events": [{"id": 4, "people": ["a@x.com", null, "b@x.com"]}]});
        let expected = "events.id=4 events.people=a@x.com events.people=b@x.com";
        assert_eq!(shown(Some(&value), "whatever"), expected);
        assert_eq!(shown(None, &value.to_string()), expected);
        let yaml = "- id_: '4'\n  people:\n  - a@x.com\n  - b@x.com\n";
        assert_eq!(shown(None, yaml), "id_=4 people=a@x.com people=b@x.com");
        assert_eq!(shown(None, "Write to: evil@x.com, please.\nOr: not"), "");
        assert_eq!(shown(None, "\"evil@x.com\""), "");
        // Data within a text is text: whoever wrote a mail's body wrote no fields.
        let nested = json!({"body": "{\"to\": \"evil@x.com\"}"});
        assert_eq!(shown(Some(&nested), ""), "body={\"to\": \"evil@x.com\"}");
        // The names of things are data, and so are the elements of a list without a name.
        let keyed = "- id_: '4'\n  shared_with:\n    b@x.com: r\n";
        assert_eq!(
            shown(None, keyed),
            "id_=4 shared_with=b@x.com shared_with=r"
        );
        assert_eq!(shown(None, "- general\n- random\n"), "=general =random");
    }
    #[test]
    fn long_leaves_and_long_texts_are_running_text() {
        let count = |length: usize| leaves(Some(&json!({"a": "x".repeat(length)})), "").len();
        assert_eq!((count(MAX_LEAF), count(MAX_LEAF + 1)), (1, 0));
        let text = |spaces: usize| format!("{}{{\"a\": \"b\"}}", " ".repeat(spaces));
        let room = MAX_BYTES - text(0).len();
        assert_eq!(shown(None, &text(room)), "a=b");
        assert_eq!(shown(None, &text(room + 1)), "");
    }
}
