//! Whether a schema may be enforced.
//!
//! The provider enforces a schema only in its strict mode, and then refuses schemas outside a
//! subset of JSON Schema: objects must forbid other fields and require all named ones.

use serde_json::Value;

/// The keywords of the subset that are used here; others are not worth a refused request.
const KEYWORDS: [&str; 11] = [
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "$schema",
];

/// Whether the strict mode accepts `schema`, which must describe an object.
pub(super) fn is_strict(schema: &Value) -> bool {
    schema["type"] == "object" && is_in_subset(schema)
}

fn is_in_subset(schema: &Value) -> bool {
    let Some(fields) = schema.as_object() else {
        return false;
    };
    let known = fields.keys().all(|key| KEYWORDS.contains(&key.as_str()));
    let closed = match fields.get("properties").and_then(Value::as_object) {
        None => schema["type"] != "object",
        Some(properties) => {
            let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
            let is_required = |name: &String| required.iter().any(|other| other == name);
            schema["additionalProperties"] == false
                && properties.keys().all(is_required)
                && properties.values().all(is_in_subset)
        }
    };
    let items = fields.get("items").is_none_or(is_in_subset);
    let choices = fields.get("anyOf").and_then(Value::as_array);
    known && closed && items && choices.is_none_or(|choices| choices.iter().all(is_in_subset))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_closed_objects_are_enforced() {
        let text = json!({"type": "string"});
        let object = |inner: &Value, required: &[&str]| {
            json!({
                "type": "object", "properties": {"a": inner}, "required": required,
                "additionalProperties": false,
            })
        };
        let check = |schema: Value, expected| assert_eq!(is_strict(&schema), expected, "{schema}");
        check(object(&text, &["a"]), true);
        check(object(&object(&text, &["a"]), &["a"]), true);
        check(
            object(&json!({"type": "array", "items": text}), &["a"]),
            true,
        );
        check(object(&text, &[]), false);
        check(object(&object(&text, &[]), &["a"]), false);
        check(
            object(&json!({"type": "string", "pattern": "x"}), &["a"]),
            false,
        );
        check(
            object(&json!({"anyOf": [text, {"type": "object"}]}), &["a"]),
            false,
        );
        check(json!({"type": "object"}), false);
        check(text, false);
        check(json!(true), false);
    }
}
