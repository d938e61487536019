//! Schemas of arguments: derived from a type, and validation against them, so that a model learns
//! of mistakes before anybody is asked.
//!
//! Validation supports the keywords of JSON Schema (draft 2020-12) that tools are described with; the tool
//! itself checks the others. Arguments that are accepted here may still be refused by the tool, but
//! none that the tool would accept are refused. Patterns are not matched, because they may come
//! from a server and take forever.

use std::fmt;

use schemars::{
    JsonSchema, Schema, SchemaGenerator,
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform as _},
};
use serde::{Deserialize, Serialize};
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

/// Removes keywords without meaning for a model from one part of a schema.
fn shorten(schema: &mut Schema) {
    for name in ["title", "format"] {
        schema.remove(name);
    }
    // The folder that a path means which is left out is read by the gate.
    if schema.get("default").is_some_and(|default| default != ".") {
        schema.remove("default");
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

/// Replaces a choice between a schema and `null` by the schema.
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

/// Replaces a choice between described constants by a list of them.
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
    /// Returns the schema of the arguments as a model is told it: without bounds and closed objects,
    /// which are checked when it calls, and cost tokens in every request.
    pub fn told_parameters(&self) -> Value {
        let mut told = self.parameters.clone();
        leave_out_checks(&mut told);
        told
    }

    /// Returns the mismatches between `arguments` and the schema as sentences for a model; empty if
    /// they match, as far as can be told without asking the tool. At most twenty.
    pub fn misfits(&self, arguments: &Value) -> Vec<String> {
        misfits(&self.parameters, arguments, &ARGUMENTS)
    }
}

fn leave_out_checks(schema: &mut Value) {
    let Value::Object(schema) = schema else {
        return;
    };
    schema.retain(|keyword, value| match keyword.as_str() {
        "minimum" | "maximum" => !value.is_number(),
        "additionalProperties" => *value != Value::Bool(false),
        "required" => value.as_array().is_none_or(|names| !names.is_empty()),
        _ => true,
    });
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(leave_out_checks);
    }
    for inner in ["items", "additionalProperties"] {
        schema.get_mut(inner).into_iter().for_each(leave_out_checks);
    }
}

/// Names of a checked value and of a part of it, for messages.
struct SubjectWords {
    whole: &'static str,
    part: &'static str,
}

const ARGUMENTS: SubjectWords = SubjectWords {
    whole: "the arguments",
    part: "an argument",
};

const ANSWER: SubjectWords = SubjectWords {
    whole: "the answer",
    part: "a field of it",
};

fn misfits(schema: &Value, value: &Value, subject: &SubjectWords) -> Vec<String> {
    let mut check = SchemaCheck {
        root: schema,
        subject,
        looks: 0,
        wrong: Vec::new(),
    };
    check.value(schema, value, "", 0);
    check.wrong
}

/// A schema of answers, all of whose keywords are checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct AnswerSchema(Value);

/// The keywords of JSON Schema that are checked, and those that only annotate.
const KEYWORDS: [&str; 29] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "allOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "$ref",
    "$defs",
    "definitions",
    "$schema",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "format",
    "deprecated",
];

/// The error for a schema of answers that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswerSchema {
    /// The schema is not an object.
    #[error("a schema is a JSON object, such as {{\"type\": \"object\"}}")]
    NoObject,
    #[error("the keyword `{keyword}` is not one that is checked; leave it out, or say it in words")]
    Keyword { keyword: String },
    #[error("the reference `{reference}` leads nowhere; it begins with #/")]
    Reference { reference: String },
    #[error("it is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
}

impl AnswerSchema {
    /// Returns the mismatches between an answer and the schema as sentences for a model; empty if
    /// it fits. At most twenty.
    pub fn misfits(&self, answer: &Value) -> Vec<String> {
        misfits(&self.0, answer, &ANSWER)
    }
}

impl TryFrom<Value> for AnswerSchema {
    type Error = BadAnswerSchema;

    fn try_from(schema: Value) -> Result<Self, BadAnswerSchema> {
        if !schema.is_object() {
            return Err(BadAnswerSchema::NoObject);
        }
        is_checked(&schema, &schema, 0)?;
        Ok(Self(schema))
    }
}

impl From<AnswerSchema> for Value {
    fn from(schema: AnswerSchema) -> Self {
        schema.0
    }
}

impl fmt::Display for AnswerSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Checks that every keyword in a schema is one that is checked.
fn is_checked(root: &Value, schema: &Value, depth: usize) -> Result<(), BadAnswerSchema> {
    if depth > MAX_DEPTH {
        return Err(BadAnswerSchema::TooDeep);
    }
    let schema = match schema {
        Value::Object(schema) => schema,
        Value::Bool(_) => return Ok(()),
        _ => return Err(BadAnswerSchema::NoObject),
    };
    for (keyword, value) in schema {
        match keyword.as_str() {
            "properties" | "$defs" | "definitions" => {
                let parts = value.as_object().ok_or(BadAnswerSchema::NoObject)?;
                for part in parts.values() {
                    is_checked(root, part, depth + 1)?;
                }
            }
            "anyOf" | "oneOf" | "allOf" => {
                let parts = value.as_array().ok_or(BadAnswerSchema::NoObject)?;
                for part in parts {
                    is_checked(root, part, depth + 1)?;
                }
            }
            "items" | "additionalProperties" => is_checked(root, value, depth + 1)?,
            "$ref" => {
                let named = value.as_str().unwrap_or_default();
                let found = named.strip_prefix('#').and_then(|at| root.pointer(at));
                if found.is_none() {
                    let reference = named.to_owned();
                    return Err(BadAnswerSchema::Reference { reference });
                }
            }
            known if KEYWORDS.contains(&known) => {}
            unknown => {
                let keyword = unknown.to_owned();
                return Err(BadAnswerSchema::Keyword { keyword });
            }
        }
    }
    Ok(())
}

struct SchemaCheck<'a> {
    root: &'a Value,
    subject: &'a SubjectWords,
    looks: u32,
    wrong: Vec<String>,
}

impl<'a> SchemaCheck<'a> {
    fn refuse(&mut self, why: String) {
        if self.wrong.len() < MAX_MISFITS {
            self.wrong.push(why);
        }
    }

    fn named(&self, at: &str) -> String {
        match at {
            "" => self.subject.whole.to_owned(),
            at => format!("`{at}`"),
        }
    }

    fn value(&mut self, schema: &'a Value, value: &Value, at: &str, depth: usize) {
        self.looks += 1;
        if depth > MAX_DEPTH || self.looks > MAX_LOOKS {
            return;
        }
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(false) => {
                return self.refuse(format!("{} may not be given", self.named(at)));
            }
            _ => return,
        };
        let target = schema.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|name| self.root.pointer(name.strip_prefix('#')?));
        if let Some(target) = target {
            self.value(target, value, at, depth + 1);
        }
        // With a wrong type, further mismatches say nothing.
        let name = self.named(at);
        if let Some(why) = kind(schema, value, &name) {
            return self.refuse(why);
        }
        let misfits = [
            one_of_values(schema, value, &name),
            bounds(schema, value, &name),
        ];
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
                    let part = self.subject.part;
                    self.refuse(format!("`{}` is not {part}; {known}", below(name)));
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
                self.refuse(format!("{} fits none of its forms: {why}", self.named(at)));
            }
        }
    }
}

fn kind(schema: &Map<String, Value>, value: &Value, name: &str) -> Option<String> {
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
    (!fits).then(|| format!("{name} must be of type {}", wanted.join(" or ")))
}

fn one_of_values(schema: &Map<String, Value>, value: &Value, name: &str) -> Option<String> {
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
    Some(format!("{name} must be one of {}{more}", shown.join(", ")))
}

fn bounds(schema: &Map<String, Value>, value: &Value, name: &str) -> Option<String> {
    let limit = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let measured = |size: f64, least: &str, most: &str, what: &str| {
        let under = limit(least).is_some_and(|least| size < least);
        let over = limit(most).is_some_and(|most| size > most);
        match (under, over) {
            (true, _) => Some(format!("{name} is below {}{what}", schema[least])),
            (false, true) => Some(format!("{name} is above {}{what}", schema[most])),
            (false, false) => None,
        }
    };
    match value {
        Value::Number(number) => {
            let number = number.as_f64()?;
            let under = limit("exclusiveMinimum").is_some_and(|least| number <= least);
            let over = limit("exclusiveMaximum").is_some_and(|most| number >= most);
            let outside = || format!("{name} is outside of its bounds");
            measured(number, "minimum", "maximum", "").or_else(|| (under || over).then(outside))
        }
        // No text is that long.
        Value::String(text) => {
            let characters = text.chars().count() as f64;
            measured(characters, "minLength", "maxLength", " characters")
        }
        // No list is that long.
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
    fn a_schema_of_answers_has_no_keyword_that_would_be_left_unchecked() {
        let why = |schema: Value| AnswerSchema::try_from(schema).unwrap_err().to_string();
        assert!(why(json!([])).contains("JSON object"));
        assert!(why(json!({"properties": {"a": {"pattern": "x"}}})).contains("`pattern`"));
        assert!(why(json!({"items": {"anyOf": [{"not": {}}]}})).contains("`not`"));
        assert!(why(json!({"$ref": "https://example.com"})).contains("leads nowhere"));
        assert!(why(json!({"properties": 7})).contains("JSON object"));
        let deep = (0..100).fold(json!({}), |schema, _| json!({"items": schema}));
        assert!(why(deep).contains("nested"));
        let schema = json!({
            "type": "object",
            "properties": {"lines": {"type": "integer", "minimum": 0}},
            "required": ["lines"],
            "additionalProperties": false,
        });
        let schema = AnswerSchema::try_from(schema).unwrap();
        assert_eq!(schema.misfits(&json!({"lines": 3})), [""; 0]);
        assert_eq!(
            schema.misfits(&json!({"lines": -1, "more": 1})),
            [
                "`lines` is below 0",
                "`more` is not a field of it; there are [\"lines\"]"
            ]
        );
        assert_eq!(
            schema.misfits(&json!([])),
            ["the answer must be of type object"]
        );
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
