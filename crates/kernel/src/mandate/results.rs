//! Results of calls, read as data: each leaf with the path of its field.

use gyrus_text::{Yaml, YamlNode, parse_yaml};
use serde_json::Value;

/// Maximum number of leaves of one result.
const MAX_LEAVES: usize = 10_000;

/// Maximum length in bytes of a text that is read as data.
const MAX_BYTES: usize = 256 * 1024;

/// Maximum length in bytes of a leaf; a longer one is running text.
const MAX_LEAF: usize = 2_000;

/// A leaf of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leaf {
    /// The names of the fields that lead to it, joined by dots; positions in lists are left out.
    pub(super) field: String,
    /// Its text.
    pub(super) text: String,
}

/// Returns the leaves of a result: of its structured content, or of a text that is JSON or YAML as
/// a whole. Running text has none.
pub(super) fn leaves(value: Option<&Value>, text: &str) -> Vec<Leaf> {
    let mut found = Vec::new();
    match value {
        Some(value @ (Value::Object(_) | Value::Array(_))) => collect(value, "", &mut found),
        _ if text.len() > MAX_BYTES => {}
        _ => match serde_json::from_str::<Value>(text) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => collect(&value, "", &mut found),
            Ok(_) => {}
            Err(_) => {
                // A sentence with a colon in it is YAML, too.
                if let Ok(node) = parse_yaml(text, 1)
                    && has_plain_keys(&node)
                {
                    collect_yaml(&node, "", &mut found);
                }
            }
        },
    }
    found
}

fn add(field: &str, text: String, found: &mut Vec<Leaf>) {
    if found.len() < MAX_LEAVES && !field.is_empty() && text.len() <= MAX_LEAF {
        found.push(Leaf {
            field: field.to_owned(),
            text,
        });
    }
}

fn below(field: &str, key: &str) -> String {
    if field.is_empty() {
        key.to_owned()
    } else {
        format!("{field}.{key}")
    }
}

fn collect(value: &Value, field: &str, found: &mut Vec<Leaf>) {
    match value {
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) => add(field, value.to_string(), found),
        Value::String(text) => add(field, text.clone(), found),
        Value::Array(values) => values.iter().for_each(|value| collect(value, field, found)),
        Value::Object(object) => {
            for (key, value) in object {
                collect(value, &below(field, key), found);
            }
        }
    }
}

/// Whether all keys are names, as programs write them.
fn has_plain_keys(node: &YamlNode) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match &node.value {
        Yaml::Text(..) => true,
        Yaml::List(nodes) => nodes.iter().all(has_plain_keys),
        Yaml::Map(fields) => fields.iter().all(|(_, key, node)| {
            !key.is_empty() && key.chars().all(plain) && has_plain_keys(node)
        }),
    }
}

fn collect_yaml(node: &YamlNode, field: &str, found: &mut Vec<Leaf>) {
    match &node.value {
        Yaml::Text(text, _) => add(field, text.clone(), found),
        Yaml::List(nodes) => nodes
            .iter()
            .for_each(|node| collect_yaml(node, field, found)),
        Yaml::Map(fields) => {
            for (_, key, node) in fields {
                collect_yaml(node, &below(field, key), found);
            }
        }
    }
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
    }
}
