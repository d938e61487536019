//! The body of a request as text, with the properties of schemas in their own order.
//!
//! [`Value`] sorts keys, and a server that binds a reply to a schema has the model write the properties
//! in the order in which it reads them: the new text before the old one, and the arguments before the
//! tool. The list of required ones is in the order in which they were declared.

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

/// Returns the body as JSON.
pub(super) fn written(body: &Value) -> String {
    // A value has text keys only, so nothing in it cannot be written.
    serde_json::to_string(&InOrder(body)).unwrap_or_else(|_| body.to_string())
}

struct InOrder<'a>(&'a Value);

impl Serialize for InOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Array(items) => serializer.collect_seq(items.iter().map(InOrder)),
            Value::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                let required = fields.get("required").and_then(Value::as_array);
                for (key, value) in fields {
                    match (key.as_str(), value, required) {
                        ("properties", Value::Object(properties), Some(first)) => {
                            map.serialize_entry(key, &OrderedProperties { properties, first })?;
                        }
                        _ => map.serialize_entry(key, &InOrder(value))?,
                    }
                }
                map.end()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.0.serialize(serializer)
            }
        }
    }
}

/// Properties, of which some come first, in their order.
struct OrderedProperties<'a> {
    properties: &'a Map<String, Value>,
    first: &'a [Value],
}

impl Serialize for OrderedProperties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let place = |name: &str| self.first.iter().position(|it| it.as_str() == Some(name));
        let mut all: Vec<_> = self.properties.iter().collect();
        all.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        serializer.collect_map(all.into_iter().map(|(name, value)| (name, InOrder(value))))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::written;

    #[test]
    fn required_properties_come_first_and_in_their_order() {
        let schema = json!({
            "type": "object",
            "properties": {"all": {}, "new": {"required": ["b", 1, "a"], "properties": {"a": 1, "b": 2, "c": 3}}, "old": {}},
            "required": ["old", "new"],
        });
        let body =
            json!({"tools": [schema], "required": "x", "properties": {"z": 1, "a": [true, null]}});
        assert_eq!(
            written(&body),
            r#"{"properties":{"a":[true,null],"z":1},"required":"x","tools":[{"properties":{"old":{},"new":{"properties":{"b":2,"a":1,"c":3},"required":["b",1,"a"]},"all":{}},"required":["old","new"],"type":"object"}]}"#
        );
        let read: serde_json::Value = serde_json::from_str(&written(&body)).unwrap();
        assert_eq!(read, body);
    }
}
