//! Finding the one JSON object in a model's text, and parsing it strictly.
//!
//! Text around the object and a comma before a closing bracket are tolerated. Two objects, one that
//! was cut off, or a name that is given twice are errors, never guesses.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Default maximum length of a reply in bytes.
const LONGEST: usize = 64 * 1024;

/// Returns the only object in `text` with `field`; the error is the reason, for the model.
pub(crate) fn the_object(text: &str, field: &str) -> Result<Map<String, Value>, String> {
    the_object_within(LONGEST, text, field)
}

/// Works as [`the_object`], with the maximum length `longest` in bytes.
pub(crate) fn the_object_within(
    longest: usize,
    text: &str,
    field: &str,
) -> Result<Map<String, Value>, String> {
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.len() > longest {
        return Err(format!("it is longer than {longest} bytes"));
    }
    if let Ok(Strict(Value::Object(object))) = serde_json::from_str(text) {
        return if object.contains_key(field) {
            Ok(object)
        } else {
            Err(format!("the object has no `{field}`"))
        };
    }
    let name = format!("\"{field}\"");
    let mut found = objects(text)?
        .into_iter()
        .filter(|object| object.contains(&name));
    let Some(first) = found.next() else {
        return Err(format!("there is no JSON object with `{field}` in it"));
    };
    if found.next().is_some() {
        return Err(
            "there are two JSON objects in it, and only you know which one is meant".to_owned(),
        );
    }
    let read = serde_json::from_str(first);
    let read = read.or_else(|error| {
        // The model can act on the first error.
        serde_json::from_str(&without_trailing_commas(first)).map_err(|_| error)
    });
    match read {
        Ok(Strict(Value::Object(object))) if object.contains_key(field) => Ok(object),
        Ok(_) => Err(format!("the object has no `{field}`")),
        Err(error) => Err(format!("the JSON is wrong: {error}")),
    }
}

/// Returns the outermost balanced pairs of braces.
fn objects(text: &str) -> Result<Vec<&str>, String> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' if depth > 0 => in_string = true,
            b'{' => {
                if depth == 0 {
                    start = at;
                }
                depth += 1;
            }
            b'}' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    found.push(&text[start..=at]);
                }
            }
            _ => {}
        }
    }
    match depth {
        0 => Ok(found),
        _ => Err("a JSON object in it does not end".to_owned()),
    }
}

fn without_trailing_commas(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            ',' if !in_string && text[at + 1..].trim_start().starts_with(['}', ']']) => continue,
            _ => {}
        }
        kept.push(letter);
    }
    kept
}

/// A JSON value in which no object has a name twice.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ValueVisitor).map(Strict)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((name, Strict(value))) = entries.next_entry::<String, Strict>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom(format!("`{name}` is given twice")));
            }
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_comma_too_many_is_forgiven_outside_of_strings() {
        let text = "Here:\n```json\n{\"steps\": [1, 2,\n], \"a\": \"x,]\\\",}\",\n}\n```";
        let object = the_object(text, "steps").unwrap();
        assert_eq!(
            Value::Object(object),
            json!({"steps": [1, 2], "a": "x,]\",}"})
        );
        let error = the_object("{\"steps\": [1,, 2]}", "steps").unwrap_err();
        assert!(error.contains("JSON"), "{error}");
    }
}
