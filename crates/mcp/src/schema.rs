//! Whether arguments fit a tool's schema: asked before a person is.
//!
//! The words of JSON Schema (draft 2020-12) that tools are described with. What is not known here
//! is left to the server: what fits may still be refused there, what is refused here would be.
//! Patterns are not tried, because they are the server's and may take forever.

use std::cell::Cell;

use serde_json::{Map, Value};

/// Looks at parts of a schema that one check takes: schemas can name themselves, in many places.
const MAX_LOOKS: u32 = 10_000;

/// Levels of values and schemas that are looked at.
const MAX_DEPTH: usize = 32;

/// Checks `value`.
///
/// # Errors
/// What is wrong, where, for the model.
pub(crate) fn check(schema: &Value, value: &Value) -> Result<(), String> {
    let checker = Checker {
        root: schema,
        looks: Cell::new(0),
    };
    checker.check(schema, value, "", 0)
}

struct Checker<'a> {
    root: &'a Value,
    looks: Cell<u32>,
}

impl Checker<'_> {
    fn check(&self, schema: &Value, value: &Value, at: &str, depth: usize) -> Result<(), String> {
        self.looks.set(self.looks.get() + 1);
        if depth > MAX_DEPTH || self.looks.get() > MAX_LOOKS {
            return Ok(());
        }
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(false) => return Err(format!("{} may not be given", named(at))),
            _ => return Ok(()),
        };
        if let Some(name) = schema.get("$ref").and_then(Value::as_str)
            && let Some(target) = name
                .strip_prefix('#')
                .and_then(|path| self.root.pointer(path))
        {
            self.check(target, value, at, depth + 1)?;
        }
        kind(schema, value, at)?;
        one_of_values(schema, value, at)?;
        bounds(schema, value, at)?;
        self.combined(schema, value, at, depth)?;
        match value {
            Value::Object(object) => self.object(schema, object, at, depth),
            Value::Array(values) => match schema.get("items") {
                Some(items) => values.iter().enumerate().try_for_each(|(index, value)| {
                    self.check(items, value, &format!("{at}[{index}]"), depth + 1)
                }),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn object(
        &self,
        schema: &Map<String, Value>,
        object: &Map<String, Value>,
        at: &str,
        depth: usize,
    ) -> Result<(), String> {
        let below = |name: &str| match at.is_empty() {
            true => name.to_owned(),
            false => format!("{at}.{name}"),
        };
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !object.contains_key(name) {
                return Err(format!("`{}` is missing", below(name)));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let matched = schema.contains_key("patternProperties");
        for (name, value) in object {
            match (
                properties.and_then(|properties| properties.get(name)),
                schema.get("additionalProperties"),
            ) {
                (Some(property), _) => self.check(property, value, &below(name), depth + 1)?,
                (None, Some(Value::Bool(false))) if !matched => {
                    let known: Vec<_> = properties.into_iter().flat_map(Map::keys).collect();
                    let known = match known.is_empty() {
                        true => "there is none".to_owned(),
                        false => format!("there are {known:?}"),
                    };
                    return Err(format!("`{}` is no argument; {known}", below(name)));
                }
                (None, Some(more)) if !matched => {
                    self.check(more, value, &below(name), depth + 1)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn combined(
        &self,
        schema: &Map<String, Value>,
        value: &Value,
        at: &str,
        depth: usize,
    ) -> Result<(), String> {
        let all = |name| schema.get(name).and_then(Value::as_array);
        for part in all("allOf").into_iter().flatten() {
            self.check(part, value, at, depth + 1)?;
        }
        for name in ["anyOf", "oneOf"] {
            let Some(parts) = all(name).filter(|parts| !parts.is_empty()) else {
                continue;
            };
            let mut wrong = None;
            for part in parts {
                match self.check(part, value, at, depth + 1) {
                    Ok(()) => {
                        wrong = None;
                        break;
                    }
                    Err(why) => wrong = wrong.or(Some(why)),
                }
            }
            if let Some(why) = wrong {
                return Err(format!("{} fits none of its forms: {why}", named(at)));
            }
        }
        Ok(())
    }
}

fn named(at: &str) -> String {
    match at {
        "" => "the arguments".to_owned(),
        at => format!("`{at}`"),
    }
}

fn kind(schema: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
    let wanted: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(()),
    };
    let is = |kind: &&str| match *kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    };
    match wanted.is_empty() || wanted.iter().any(is) {
        true => Ok(()),
        false => Err(format!(
            "{} must be of type {}",
            named(at),
            wanted.join(" or ")
        )),
    }
}

fn one_of_values(schema: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
    const SHOWN: usize = 20;
    let wrong = |allowed: &[Value]| {
        let shown: Vec<_> = allowed.iter().take(SHOWN).map(Value::to_string).collect();
        let more = if allowed.len() > SHOWN { ", …" } else { "" };
        Err(format!(
            "{} must be one of {}{more}",
            named(at),
            shown.join(", ")
        ))
    };
    if let Some(only) = schema.get("const").filter(|only| *only != value) {
        return wrong(std::slice::from_ref(only));
    }
    match schema.get("enum").and_then(Value::as_array) {
        Some(allowed) if !allowed.contains(value) => wrong(allowed),
        _ => Ok(()),
    }
}

fn bounds(schema: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let measured = |size: f64, least: &str, most: &str, what: &str| {
        if limit(least).is_some_and(|least| size < least) {
            return Err(format!("{} is below {}{what}", named(at), schema[least]));
        }
        if limit(most).is_some_and(|most| size > most) {
            return Err(format!("{} is above {}{what}", named(at), schema[most]));
        }
        Ok(())
    };
    match value {
        Value::Number(number) => {
            let Some(number) = number.as_f64() else {
                return Ok(());
            };
            measured(number, "minimum", "maximum", "")?;
            let under = limit("exclusiveMinimum").is_some_and(|least| number <= least);
            let over = limit("exclusiveMaximum").is_some_and(|most| number >= most);
            match under || over {
                true => Err(format!("{} is outside of its bounds", named(at))),
                false => Ok(()),
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "no text is that long")]
        Value::String(text) => {
            let characters = text.chars().count() as f64;
            measured(characters, "minLength", "maxLength", " characters")
        }
        #[expect(clippy::cast_precision_loss, reason = "no list is that long")]
        Value::Array(values) => measured(values.len() as f64, "minItems", "maxItems", " values"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_and_schemas() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "integer", "minimum": 1, "exclusiveMaximum": 10},
                "s": {"type": ["string", "null"], "maxLength": 3},
                "e": {"enum": ["x", "y"]},
                "l": {"type": "array", "items": {"$ref": "#/$defs/pair"}, "maxItems": 2},
                "any": {"anyOf": [{"type": "number"}, {"const": "auto"}]},
                "no": false,
            },
            "required": ["a"],
            "additionalProperties": false,
            "$defs": {"pair": {
                "type": "object",
                "required": ["k"],
                "properties": {"k": {"type": "string"}, "more": {"$ref": "#/$defs/pair"}},
            }},
        });
        for (arguments, expected) in [
            (json!({"a": 1}), Ok(())),
            (json!({"a": 9.0, "s": null, "e": "y", "any": 2.5}), Ok(())),
            (
                json!({"a": 1, "l": [{"k": "v", "more": {"k": "w"}}]}),
                Ok(()),
            ),
            (json!({}), Err("`a` is missing")),
            (json!([]), Err("the arguments must be of type object")),
            (json!({"a": 1.5}), Err("`a` must be of type integer")),
            (json!({"a": 0}), Err("`a` is below 1")),
            (json!({"a": 10}), Err("`a` is outside of its bounds")),
            (
                json!({"a": 1, "s": "long"}),
                Err("`s` is above 3 characters"),
            ),
            (
                json!({"a": 1, "s": 4}),
                Err("`s` must be of type string or null"),
            ),
            (
                json!({"a": 1, "e": "z"}),
                Err("`e` must be one of \"x\", \"y\""),
            ),
            (
                json!({"a": 1, "l": [{"k": 1}]}),
                Err("`l[0].k` must be of type string"),
            ),
            (
                json!({"a": 1, "l": [1, 2, 3]}),
                Err("`l` is above 2 values"),
            ),
            (
                json!({"a": 1, "l": [{"k": "v", "more": {}}]}),
                Err("`l[0].more.k` is missing"),
            ),
            (
                json!({"a": 1, "any": "x"}),
                Err("`any` fits none of its forms: `any` must be of type number"),
            ),
            (json!({"a": 1, "no": 1}), Err("`no` may not be given")),
            (
                json!({"a": 1, "b": 1}),
                Err("`b` is no argument; there are [\"a\", \"any\", \"e\", \"l\", \"no\", \"s\"]"),
            ),
        ] {
            let found = check(&schema, &arguments);
            assert_eq!(found, expected.map_err(str::to_owned), "{arguments}");
        }
    }

    #[test]
    fn no_schema_is_endless() {
        let twice = [json!({"$ref": "#"}), json!({"$ref": "#"})];
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": twice}),
            json!({"anyOf": twice}),
        ] {
            assert_eq!(check(&schema, &json!({})), Ok(()));
        }
    }
}
