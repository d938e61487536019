//! Schemas of arguments: derived from a type, and validation against them, so that a model learns
//! of mistakes before anybody is asked.
//!
//! Validation supports the keywords of JSON Schema (draft 2020-12) that tools are described with; the tool
//! itself checks the others. Arguments that are accepted here may still be refused by the tool, but
//! none that the tool would accept are refused. Patterns are not matched, because they may come
//! from a server and take forever.

use schemars::{
    JsonSchema, Schema, SchemaGenerator,
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform as _},
};
use serde_json::{Map, Value, json};

use crate::ToolSpec;

/// Returns the schema of a type of arguments, as small as models need it: without definitions,
/// titles and formats, and with descriptions of fields only. An optional field is one that may be
/// left out; that it may be `null` is not said.
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(shorten).transform(&mut schema);
    schema.remove("description");
    for always in [("properties", json!({})), ("required", json!([]))] {
        if schema.get(always.0).is_none() {
            schema.insert(always.0.to_owned(), always.1);
        }
    }
    schema.to_value()
}

/// Returns the doc comment of a type of arguments, for a tool that is described there.
pub(crate) fn description_of<T: JsonSchema>() -> String {
    let schema = SchemaGenerator::default().into_root_schema_for::<T>();
    let words = schema.get("description").and_then(Value::as_str);
    words.unwrap_or_default().replace('\n', " ")
}

/// Removes what tells a model nothing from one part of a schema.
fn shorten(schema: &mut Schema) {
    for name in ["title", "format", "default"] {
        schema.remove(name);
    }
    if let Some(Value::String(words)) = schema.get_mut("description") {
        // Doc comments are wrapped.
        *words = words.replace('\n', " ");
    }
    if let Some(Value::Object(items)) = schema.get_mut("items")
        && items.contains_key("properties")
    {
        items.remove("description");
    }
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = &kinds[..] {
            let kind = kind.clone();
            schema.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    if schema.get("additionalProperties") == Some(&Value::Bool(true)) {
        schema.remove("additionalProperties");
    }
    inline_null(schema);
    list_constants(schema);
}

/// Replaces a choice between something and `null` by the former.
fn inline_null(schema: &mut Schema) {
    let Some(Value::Array(forms)) = schema.get_mut("anyOf") else {
        return;
    };
    forms.retain(|form| form["type"] != "null");
    if let [Value::Object(form)] = &mut forms[..] {
        let form = std::mem::take(form);
        schema.remove("anyOf");
        for (name, value) in form {
            if schema.get(&name).is_none() {
                schema.insert(name, value);
            }
        }
    }
}

/// Replaces a choice between constants, each with a description, by their list.
fn list_constants(schema: &mut Schema) {
    let Some(forms) = schema.get("oneOf").and_then(Value::as_array) else {
        return;
    };
    let constants = forms.iter().map(|form| form.get("const").cloned());
    if let Some(constants) = constants.collect::<Option<Vec<_>>>() {
        schema.remove("oneOf");
        schema.insert("type".to_owned(), json!("string"));
        schema.insert("enum".to_owned(), Value::Array(constants));
    }
}

/// Maximum number of schema parts that one check visits: schemas can refer to themselves in many
/// places.
const MAX_LOOKS: u32 = 10_000;

/// Maximum depth of values and schemas that are checked.
const MAX_DEPTH: usize = 32;

/// Maximum number of mismatches that are reported.
const MAX_MISFITS: usize = 20;

impl ToolSpec {
    /// Returns the mismatches between `arguments` and the schema as sentences for a model; empty if
    /// they match, as far as can be told without asking the tool. At most twenty.
    pub fn misfits(&self, arguments: &Value) -> Vec<String> {
        let mut check = Check {
            root: &self.parameters,
            looks: 0,
            wrong: Vec::new(),
        };
        check.value(&self.parameters, arguments, "", 0);
        check.wrong
    }
}

struct Check<'a> {
    root: &'a Value,
    looks: u32,
    wrong: Vec<String>,
}

impl<'a> Check<'a> {
    fn refuse(&mut self, why: String) {
        if self.wrong.len() < MAX_MISFITS {
            self.wrong.push(why);
        }
    }

    fn value(&mut self, schema: &'a Value, value: &Value, at: &str, depth: usize) {
        self.looks += 1;
        if depth > MAX_DEPTH || self.looks > MAX_LOOKS {
            return;
        }
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(false) => return self.refuse(format!("{} may not be given", named(at))),
            _ => return,
        };
        let target = schema.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|name| self.root.pointer(name.strip_prefix('#')?));
        if let Some(target) = target {
            self.value(target, value, at, depth + 1);
        }
        // With a wrong type, further mismatches say nothing.
        if let Some(why) = kind(schema, value, at) {
            return self.refuse(why);
        }
        let misfits = [one_of_values(schema, value, at), bounds(schema, value, at)];
        misfits
            .into_iter()
            .flatten()
            .for_each(|why| self.refuse(why));
        self.combined(schema, value, at, depth);
        match value {
            Value::Object(object) => self.object(schema, object, at, depth),
            Value::Array(values) => {
                let Some(items) = schema.get("items") else {
                    return;
                };
                for (index, value) in values.iter().enumerate() {
                    self.value(items, value, &format!("{at}[{index}]"), depth + 1);
                }
            }
            _ => {}
        }
    }

    fn object(
        &mut self,
        schema: &'a Map<String, Value>,
        object: &Map<String, Value>,
        at: &str,
        depth: usize,
    ) {
        let below = |name: &str| {
            if at.is_empty() {
                name.to_owned()
            } else {
                format!("{at}.{name}")
            }
        };
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !object.contains_key(name) {
                self.refuse(format!("`{}` is missing", below(name)));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let matched = schema.contains_key("patternProperties");
        for (name, value) in object {
            let property = properties.and_then(|properties| properties.get(name));
            match (property, schema.get("additionalProperties")) {
                (Some(property), _) => self.value(property, value, &below(name), depth + 1),
                (None, Some(Value::Bool(false))) if !matched => {
                    let known: Vec<_> = properties.into_iter().flat_map(Map::keys).collect();
                    let known = if known.is_empty() {
                        "there is none".to_owned()
                    } else {
                        format!("there are {known:?}")
                    };
                    self.refuse(format!("`{}` is not an argument; {known}", below(name)));
                }
                (None, Some(more)) if !matched => {
                    self.value(more, value, &below(name), depth + 1);
                }
                _ => {}
            }
        }
    }

    fn combined(&mut self, schema: &'a Map<String, Value>, value: &Value, at: &str, depth: usize) {
        let all = |name| schema.get(name).and_then(Value::as_array);
        for part in all("allOf").into_iter().flatten() {
            self.value(part, value, at, depth + 1);
        }
        for name in ["anyOf", "oneOf"] {
            let mut first = None;
            let mut fits = false;
            for part in all(name).into_iter().flatten() {
                // Failing to match one alternative is not a mismatch yet.
                let before = std::mem::take(&mut self.wrong);
                self.value(part, value, at, depth + 1);
                let wrong = std::mem::replace(&mut self.wrong, before);
                match wrong.into_iter().next() {
                    None => {
                        fits = true;
                        break;
                    }
                    why => first = first.or(why),
                }
            }
            if let (false, Some(why)) = (fits, first) {
                self.refuse(format!("{} fits none of its forms: {why}", named(at)));
            }
        }
    }
}

fn named(at: &str) -> String {
    match at {
        "" => "the arguments".to_owned(),
        at => format!("`{at}`"),
    }
}

fn kind(schema: &Map<String, Value>, value: &Value, at: &str) -> Option<String> {
    let wanted: Vec<&str> = match schema.get("type")? {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return None,
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
    let fits = wanted.is_empty() || wanted.iter().any(is);
    (!fits).then(|| format!("{} must be of type {}", named(at), wanted.join(" or ")))
}

fn one_of_values(schema: &Map<String, Value>, value: &Value, at: &str) -> Option<String> {
    const SHOWN: usize = 20;
    let only = schema.get("const").map(std::slice::from_ref);
    let choices = schema.get("enum").and_then(Value::as_array);
    let choices = choices.map(Vec::as_slice);
    let allowed = [only, choices].into_iter().flatten();
    let allowed = allowed
        .into_iter()
        .find(|allowed| !allowed.contains(value))?;
    let shown: Vec<_> = allowed.iter().take(SHOWN).map(Value::to_string).collect();
    let more = if allowed.len() > SHOWN { ", …" } else { "" };
    Some(format!(
        "{} must be one of {}{more}",
        named(at),
        shown.join(", ")
    ))
}

fn bounds(schema: &Map<String, Value>, value: &Value, at: &str) -> Option<String> {
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let measured = |size: f64, least: &str, most: &str, what: &str| {
        let under = limit(least).is_some_and(|least| size < least);
        let over = limit(most).is_some_and(|most| size > most);
        match (under, over) {
            (true, _) => Some(format!("{} is below {}{what}", named(at), schema[least])),
            (false, true) => Some(format!("{} is above {}{what}", named(at), schema[most])),
            (false, false) => None,
        }
    };
    match value {
        Value::Number(number) => {
            let number = number.as_f64()?;
            let under = limit("exclusiveMinimum").is_some_and(|least| number <= least);
            let over = limit("exclusiveMaximum").is_some_and(|most| number >= most);
            let outside = || format!("{} is outside of its bounds", named(at));
            measured(number, "minimum", "maximum", "").or_else(|| (under || over).then(outside))
        }
        #[expect(clippy::cast_precision_loss, reason = "no text is that long")]
        Value::String(text) => {
            let characters = text.chars().count() as f64;
            measured(characters, "minLength", "maxLength", " characters")
        }
        #[expect(clippy::cast_precision_loss, reason = "no list is that long")]
        Value::Array(values) => measured(values.len() as f64, "minItems", "maxItems", " values"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Repeat;

    fn misfits(schema: Value, arguments: &Value) -> Vec<String> {
        let spec = ToolSpec {
            name: "tool".to_owned(),
            description: String::new(),
            parameters: schema,
            touches: Vec::new(),
            repeat: Repeat::Freely,
        };
        spec.misfits(arguments)
    }

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
            (json!({"a": 1}), &[][..]),
            (json!({"a": 9.0, "s": null, "e": "y", "any": 2.5}), &[][..]),
            (json!({"a": 1, "l": [{"k": "v", "more": {"k": "w"}}]}), &[]),
            (json!({}), &["`a` is missing"]),
            (json!([]), &["the arguments must be of type object"]),
            (json!({"a": 1.5}), &["`a` must be of type integer"]),
            (json!({"a": 0}), &["`a` is below 1"]),
            (json!({"a": 10}), &["`a` is outside of its bounds"]),
            (json!({"a": 1, "s": "long"}), &["`s` is above 3 characters"]),
            (
                json!({"a": 1, "s": 4}),
                &["`s` must be of type string or null"],
            ),
            (
                json!({"a": 1, "e": "z"}),
                &["`e` must be one of \"x\", \"y\""],
            ),
            (
                json!({"a": 1, "l": [{"k": 1}]}),
                &["`l[0].k` must be of type string"],
            ),
            (
                json!({"a": 1, "l": [{"k": "1"}, {"k": "2"}, {"k": "3"}]}),
                &["`l` is above 2 values"],
            ),
            (
                json!({"a": 1, "l": [{"k": "v", "more": {}}]}),
                &["`l[0].more.k` is missing"],
            ),
            (
                json!({"a": 1, "any": "x"}),
                &["`any` fits none of its forms: `any` must be of type number"],
            ),
            (json!({"a": 1, "no": 1}), &["`no` may not be given"]),
            (
                json!({"a": 1.5, "s": "long", "l": [{"k": 1}, {}, 3]}),
                &[
                    "`a` must be of type integer",
                    "`l` is above 2 values",
                    "`l[0].k` must be of type string",
                    "`l[1].k` is missing",
                    "`l[2]` must be of type object",
                    "`s` is above 3 characters",
                ],
            ),
            (
                json!({"a": 1, "b": 1}),
                &[
                    "`b` is not an argument; there are [\"a\", \"any\", \"e\", \"l\", \"no\", \"s\"]",
                ],
            ),
        ] {
            assert_eq!(misfits(schema.clone(), &arguments), expected, "{arguments}");
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
            assert!(misfits(schema, &json!({})).is_empty());
        }
    }
}
