//! The form that a server asks a person to fill in: a few flat fields. It is described in words,
//! the answer in words is read as the content of the form, and that is checked before the server
//! gets it.
//!
//! A person who leaves a field out has said nothing about it, whatever default the server suggests.

use gyrus_contract::AnswerForm;
use gyrus_text::{counted, shorten};
use rmcp::model::ElicitationSchema;
use serde_json::{Map, Number, Value};

use super::secrets;
use crate::definition::clean;

const MAX_FIELDS: usize = 20;

/// Maximum number of options of a field.
const MAX_OPTIONS: usize = 50;

/// Maximum characters of a field's name, title or description, and of an option.
const MAX_TEXT: usize = 500;

/// Maximum characters of the whole description.
const MAX_DESCRIBED: usize = 12_000;

/// Maximum characters of the value of a field.
const MAX_VALUE: usize = 10_000;

/// Maximum number of names in the headline of a card, and of their characters.
const NAMED: usize = 5;
const NAME_LENGTH: usize = 32;

/// The word by which a person refuses on every surface.
const DECLINE: &str = "decline";

#[derive(Debug)]
pub(super) struct RequestedForm {
    fields: Vec<RequestedField>,
}

#[derive(Debug)]
struct RequestedField {
    name: String,
    title: String,
    description: String,
    required: bool,
    suggested: Option<String>,
    kind: FieldKind,
}

#[derive(Debug)]
enum FieldKind {
    Text {
        min: u64,
        max: u64,
        format: Option<TextFormat>,
    },
    Number {
        whole: bool,
        min: Option<f64>,
        max: Option<f64>,
    },
    YesOrNo,
    One(Vec<FormOption>),
    Several {
        choices: Vec<FormOption>,
        min: u64,
        max: u64,
    },
}

#[derive(Debug, Clone, Copy)]
enum TextFormat {
    Email,
    Uri,
    Date,
    DateTime,
}

#[derive(Debug)]
struct FormOption {
    value: String,
    title: String,
}

impl RequestedForm {
    /// Parses a form.
    ///
    /// # Errors
    /// A message with the reason why no person is asked to fill the form in.
    pub(super) fn read(schema: &ElicitationSchema) -> Result<Self, String> {
        if schema.properties.len() > MAX_FIELDS {
            return Err(format!("it has more than {MAX_FIELDS} fields"));
        }
        let order = schema.property_order.iter().flatten();
        let mut names: Vec<&String> = order
            .filter(|name| schema.properties.contains_key(*name))
            .collect();
        if names.len() != schema.properties.len() {
            names = schema.properties.keys().collect();
        }
        let required = schema.required.as_deref().unwrap_or_default();
        let mut fields = Vec::new();
        for name in names {
            let described = serde_json::to_value(&schema.properties[name]);
            let described = described.map_err(|error| format!("its form is not JSON: {error}"))?;
            let mut field = RequestedField::read(name, &described)?;
            field.required = required.contains(name);
            fields.push(field);
        }
        if let Some(missing) = required
            .iter()
            .find(|name| !schema.properties.contains_key(*name))
        {
            let missing = shorten(missing, NAME_LENGTH).into_owned();
            return Err(format!(
                "it requires a field `{missing}` that it does not describe"
            ));
        }
        let form = Self { fields };
        if form.described().chars().count() > MAX_DESCRIBED {
            return Err("its form is too long to be read".to_owned());
        }
        Ok(form)
    }

    /// Returns the kind of secret that a field asks for, if any.
    pub(super) fn wants_secret(&self) -> Option<&'static str> {
        self.fields.iter().find_map(|field| {
            let names = [&field.name, &field.title].into_iter();
            let named = names.clone().find_map(|name| secrets::named(name));
            named.or_else(|| secrets::wanted(&field.description))
        })
    }

    pub(super) fn wants(&self) -> AnswerForm {
        if self.fields.is_empty() {
            AnswerForm::Decision
        } else {
            AnswerForm::Words
        }
    }

    /// Returns a short description of the form. Only plain names stand in them: everything else is
    /// the server's text.
    pub(super) fn about(&self) -> String {
        let is_plain = |name: &str| {
            let usual = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            name.len() <= NAME_LENGTH && name.chars().all(usual)
        };
        let names = self.fields.iter().map(|field| field.name.as_str());
        match self.fields.len() {
            0 => "a yes".to_owned(),
            number if number <= NAMED && names.clone().all(is_plain) => {
                let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
                format!("{} ({})", counted(number, "field"), names.join(", "))
            }
            number => counted(number, "field"),
        }
    }

    pub(super) fn how_to_answer(&self) -> Vec<String> {
        let mut said = vec![
            "the answer goes to that server; no server may ask for a password, key, token or card \
             number"
                .to_owned(),
        ];
        match self.fields.as_slice() {
            [] => {}
            [_] => said.push(format!(
                "answer with the value alone, or with the word {DECLINE} to refuse"
            )),
            _ => said.push(format!(
                "answer with `field: value`, one a line or separated by `;` (or as a JSON object), \
                 or with the word {DECLINE} to refuse; what you leave out is not sent"
            )),
        }
        said
    }

    /// Returns the description of the fields, one a line with its options below it. Mostly the
    /// server's text.
    pub(super) fn described(&self) -> String {
        let lines = self.fields.iter().map(RequestedField::described);
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Reads an answer as the content of the form.
    ///
    /// # Errors
    /// A message for the person about an answer that does not fit.
    pub(super) fn filled(&self, words: &str) -> Result<Value, String> {
        let words = words.trim();
        let said: Vec<(&RequestedField, Value)> = match (self.fields.as_slice(), words) {
            ([], _) => Vec::new(),
            (_, object) if object.starts_with('{') => self.of_object(object)?,
            ([field], _) => vec![(field, field.value(self.without_name(field, words))?)],
            _ => self.of_lines(words)?,
        };
        let mut content = Map::new();
        for (field, value) in said {
            if content.insert(field.name.clone(), value).is_some() {
                return Err(format!("`{}` is answered twice", field.name));
            }
        }
        let missing = self
            .fields
            .iter()
            .find(|field| field.required && !content.contains_key(&field.name));
        match missing {
            Some(field) => Err(format!("`{}` is missing", field.shown_name())),
            None => Ok(Value::Object(content)),
        }
    }

    /// Returns the value where the only field was named before it.
    fn without_name<'w>(&self, field: &RequestedField, words: &'w str) -> &'w str {
        match words.split_once(':') {
            Some((name, value)) if name.trim() == field.name => value.trim(),
            _ => words,
        }
    }

    fn of_object(&self, words: &str) -> Result<Vec<(&RequestedField, Value)>, String> {
        let object: Map<String, Value> = serde_json::from_str(words)
            .map_err(|error| format!("it begins with {{ and is not a JSON object: {error}"))?;
        let fields = object.into_iter().map(|(name, value)| {
            let field = self.named(&name)?;
            let value = match value {
                Value::String(words) => field.value(&words)?,
                Value::Array(values) => {
                    let words: Option<Vec<_>> = values.iter().map(Value::as_str).collect();
                    let words = words.ok_or_else(|| field.misfit("a list of texts"))?;
                    field.several(&words)?
                }
                plain @ (Value::Number(_) | Value::Bool(_)) => field.value(&plain.to_string())?,
                Value::Null | Value::Object(_) => return Err(field.misfit("a plain value")),
            };
            Ok((field, value))
        });
        fields.collect()
    }

    fn of_lines(&self, words: &str) -> Result<Vec<(&RequestedField, Value)>, String> {
        let separator = if words.contains('\n') { '\n' } else { ';' };
        let lines = words.split(separator).map(str::trim);
        let fields = lines.filter(|line| !line.is_empty()).map(|line| {
            let (name, value) = line.split_once(':').ok_or_else(|| {
                let line = shorten(line, NAME_LENGTH);
                format!("`{line}` names no field; write `field: value`")
            })?;
            let field = self.named(name.trim())?;
            Ok((field, field.value(value.trim())?))
        });
        fields.collect()
    }

    fn named(&self, name: &str) -> Result<&RequestedField, String> {
        let mut fields = self.fields.iter();
        fields.find(|field| field.name == name).ok_or_else(|| {
            let name = shorten(name, NAME_LENGTH);
            format!("there is no field `{name}`")
        })
    }
}

pub(super) fn declines(words: &str) -> bool {
    words.trim().eq_ignore_ascii_case(DECLINE)
}

impl RequestedField {
    fn read(name: &str, described: &Value) -> Result<Self, String> {
        let text = |key: &str| clean(described[key].as_str().unwrap_or_default());
        let (title, description) = (text("title"), text("description"));
        let is_long = |text: &str| text.chars().count() > MAX_TEXT;
        if is_long(name) || is_long(&title) || is_long(&description) {
            return Err("the description of a field is too long to be read".to_owned());
        }
        let suggested = match &described["default"] {
            Value::Null => None,
            Value::String(words) => Some(clean(words)),
            other => Some(other.to_string()),
        };
        Ok(Self {
            name: name.to_owned(),
            title,
            description,
            required: false,
            suggested: suggested.map(|words| shorten(&words, MAX_TEXT).into_owned()),
            kind: FieldKind::read(described)?,
        })
    }

    fn shown_name(&self) -> String {
        clean(&self.name).replace('\n', " ")
    }

    fn described(&self) -> String {
        let mut line = self.shown_name();
        if self.required {
            line.push_str(" (required)");
        }
        line.push_str(&format!(": {}", self.kind.in_words()));
        for more in [&self.title, &self.description] {
            if !more.is_empty() {
                line.push_str(&format!("; {}", more.replace('\n', " ")));
            }
        }
        if let Some(suggested) = &self.suggested {
            line.push_str(&format!("; the server suggests {suggested}"));
        }
        for choice in self.kind.choices() {
            line.push_str(&format!(
                "\n  - {}",
                clean(&choice.value).replace('\n', " ")
            ));
            if choice.title != choice.value {
                line.push_str(&format!(" ({})", clean(&choice.title).replace('\n', " ")));
            }
        }
        line
    }

    fn misfit(&self, wanted: &str) -> String {
        format!("`{}` is not {wanted}", self.shown_name())
    }

    fn value(&self, words: &str) -> Result<Value, String> {
        if words.chars().count() > MAX_VALUE {
            return Err(self.misfit("a short value"));
        }
        match &self.kind {
            FieldKind::Text { min, max, format } => self.text(words, (*min, *max), *format),
            FieldKind::Number { whole, min, max } => self.number(words, *whole, (*min, *max)),
            FieldKind::YesOrNo => match words.to_ascii_lowercase().as_str() {
                "yes" | "y" | "true" => Ok(Value::Bool(true)),
                "no" | "n" | "false" => Ok(Value::Bool(false)),
                _ => Err(self.misfit("yes or no")),
            },
            FieldKind::One(choices) => self.choice(choices, words).map(Value::from),
            FieldKind::Several { .. } => {
                let words = words.split(',').map(str::trim);
                self.several(&words.filter(|word| !word.is_empty()).collect::<Vec<_>>())
            }
        }
    }

    fn text(
        &self,
        words: &str,
        (min, max): (u64, u64),
        format: Option<TextFormat>,
    ) -> Result<Value, String> {
        let length = words.chars().count() as u64;
        if length < min || length > max {
            let least = if min > 0 {
                format!("{min} to ")
            } else {
                "at most ".to_owned()
            };
            return Err(self.misfit(&format!("a text of {least}{max} characters")));
        }
        match format {
            Some(format) if !format.fits(words) => Err(self.misfit(format.in_words())),
            _ => Ok(Value::from(words)),
        }
    }

    fn number(
        &self,
        words: &str,
        whole: bool,
        (min, max): (Option<f64>, Option<f64>),
    ) -> Result<Value, String> {
        let number = match words.parse::<i64>() {
            Ok(number) => Some(Number::from(number)),
            Err(_) if whole => None,
            Err(_) => words.parse().ok().and_then(Number::from_f64),
        };
        let number = number.ok_or_else(|| self.misfit(self.kind.in_words_alone()))?;
        let value = number.as_f64().unwrap_or_default();
        if min.is_some_and(|min| value < min) || max.is_some_and(|max| value > max) {
            return Err(self.misfit(&self.kind.in_words()));
        }
        Ok(Value::Number(number))
    }

    /// Returns the option that words mean: by its value, or else by its title.
    fn choice(&self, choices: &[FormOption], words: &str) -> Result<String, String> {
        let by_value = choices.iter().find(|choice| choice.value == words);
        let mut titled = choices.iter().filter(|choice| {
            choice.title.eq_ignore_ascii_case(words) || choice.value.eq_ignore_ascii_case(words)
        });
        let by_title = match (titled.next(), titled.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        };
        let meant = by_value.or(by_title);
        meant
            .map(|choice| choice.value.clone())
            .ok_or_else(|| self.misfit("one of its options"))
    }

    fn several(&self, words: &[&str]) -> Result<Value, String> {
        let FieldKind::Several { choices, min, max } = &self.kind else {
            return Err(self.misfit(self.kind.in_words_alone()));
        };
        let mut chosen = Vec::new();
        for word in words {
            let value = self.choice(choices, word)?;
            if !chosen.contains(&value) {
                chosen.push(value);
            }
        }
        let number = chosen.len() as u64;
        if number < *min || number > *max {
            return Err(self.misfit(&self.kind.in_words()));
        }
        Ok(Value::from(chosen))
    }
}

impl FieldKind {
    fn read(described: &Value) -> Result<Self, String> {
        let number = |key: &str| described[key].as_u64();
        let kind = match described["type"].as_str() {
            Some("string") if described["oneOf"].is_array() => {
                Self::One(choices(&described["oneOf"], &Value::Null)?)
            }
            Some("string") if described["enum"].is_array() => {
                Self::One(choices(&described["enum"], &described["enumNames"])?)
            }
            Some("string") => Self::Text {
                min: number("minLength").unwrap_or(0),
                max: number("maxLength").unwrap_or(MAX_VALUE as u64),
                format: TextFormat::read(&described["format"])?,
            },
            Some(kind @ ("number" | "integer")) => Self::Number {
                whole: kind == "integer",
                min: described["minimum"].as_f64(),
                max: described["maximum"].as_f64(),
            },
            Some("boolean") => Self::YesOrNo,
            Some("array") => {
                let items = &described["items"];
                let listed = ["enum", "anyOf", "oneOf"].map(|key| &items[key]);
                let listed = listed.into_iter().find(|listed| listed.is_array());
                let choices = choices(listed.unwrap_or(&Value::Null), &Value::Null)?;
                Self::Several {
                    min: number("minItems").unwrap_or(0),
                    max: number("maxItems").unwrap_or(choices.len() as u64),
                    choices,
                }
            }
            _ => return Err("a field of its form is not flat".to_owned()),
        };
        Ok(kind)
    }

    fn choices(&self) -> &[FormOption] {
        match self {
            Self::One(choices) | Self::Several { choices, .. } => choices,
            Self::Text { .. } | Self::Number { .. } | Self::YesOrNo => &[],
        }
    }

    fn in_words_alone(&self) -> &'static str {
        match self {
            Self::Text { format, .. } => format.map_or("a text", TextFormat::in_words),
            Self::Number { whole: true, .. } => "a whole number",
            Self::Number { whole: false, .. } => "a number",
            Self::YesOrNo => "yes or no",
            Self::One(_) => "one of",
            Self::Several { .. } => "some of, separated by commas",
        }
    }

    fn in_words(&self) -> String {
        let alone = self.in_words_alone();
        match self {
            Self::Number {
                min: Some(min),
                max: Some(max),
                ..
            } => {
                format!("{alone} from {min} to {max}")
            }
            Self::Number {
                min: Some(min),
                max: None,
                ..
            } => format!("{alone} from {min} on"),
            Self::Number {
                min: None,
                max: Some(max),
                ..
            } => format!("{alone} up to {max}"),
            Self::Several { min, max, .. } => format!("{min} to {max} of, separated by commas"),
            Self::Text { .. } | Self::Number { .. } | Self::YesOrNo | Self::One(_) => {
                alone.to_owned()
            }
        }
    }
}

/// Parses options: texts with separate titles, or objects with a `const` and a `title`.
fn choices(listed: &Value, titles: &Value) -> Result<Vec<FormOption>, String> {
    let listed = listed.as_array().map(Vec::as_slice).unwrap_or_default();
    if listed.is_empty() || listed.len() > MAX_OPTIONS {
        return Err(format!(
            "a field of its form has no options, or more than {MAX_OPTIONS}"
        ));
    }
    let read = |(place, option): (usize, &Value)| {
        let value = option.as_str().or_else(|| option["const"].as_str())?;
        let title = titles[place].as_str().or_else(|| option["title"].as_str());
        let choice = FormOption {
            value: value.to_owned(),
            title: title.unwrap_or(value).to_owned(),
        };
        let is_short = |text: &str| text.chars().count() <= MAX_TEXT;
        (is_short(&choice.value) && is_short(&choice.title)).then_some(choice)
    };
    let choices = listed.iter().enumerate().map(read);
    choices
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| "an option of its form is not a text, or too long to be read".to_owned())
}

impl TextFormat {
    fn read(said: &Value) -> Result<Option<Self>, String> {
        match said.as_str() {
            None => Ok(None),
            Some("email") => Ok(Some(Self::Email)),
            Some("uri") => Ok(Some(Self::Uri)),
            Some("date") => Ok(Some(Self::Date)),
            Some("date-time") => Ok(Some(Self::DateTime)),
            Some(_) => Err("a field of its form has a format that gyrus does not know".to_owned()),
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Email => "an e-mail address",
            Self::Uri => "an address (URI)",
            Self::Date => "a date (2026-01-31)",
            Self::DateTime => "a date with a time (2026-01-31T12:00:00Z)",
        }
    }

    fn fits(self, words: &str) -> bool {
        match self {
            Self::Email => {
                let parts = words.rsplit_once('@');
                let is_clean = |text: &str| {
                    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '@')
                };
                parts.is_some_and(|(name, host)| is_clean(name) && is_clean(host))
            }
            Self::Uri => reqwest::Url::parse(words).is_ok(),
            Self::Date => {
                words.len() == "2026-01-31".len() && words.parse::<jiff::civil::Date>().is_ok()
            }
            Self::DateTime => words.parse::<jiff::Timestamp>().is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(properties: Value, required: &[&str]) -> Result<RequestedForm, String> {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let schema = serde_json::from_value(schema).map_err(|error| error.to_string())?;
        RequestedForm::read(&schema)
    }

    fn filled(properties: Value, words: &str) -> String {
        match form(properties, &[]).unwrap().filled(words) {
            Ok(content) => content.to_string(),
            Err(why) => why,
        }
    }

    #[test]
    fn the_only_field_takes_its_value_alone() {
        let branch = json!({"branch": {"type": "string", "maxLength": 8}});
        let check = |words: &str| filled(branch.clone(), words);
        assert_eq!(check(" main "), r#"{"branch":"main"}"#);
        assert_eq!(check("branch: main"), r#"{"branch":"main"}"#);
        assert_eq!(check("a: b"), r#"{"branch":"a: b"}"#);
        assert_eq!(check(r#"{"branch": "x"}"#), r#"{"branch":"x"}"#);
        assert_eq!(
            check("much too long"),
            "`branch` is not a text of at most 8 characters"
        );
        assert!(check("{broken").contains("is not a JSON object"));
        assert_eq!(check(r#"{"branch": {}}"#), "`branch` is not a plain value");
        assert_eq!(check(r#"{"branch": ["a"]}"#), "`branch` is not a text");
    }

    #[test]
    fn values_fit_their_fields() {
        let all = json!({
            "count": {"type": "integer", "minimum": 1, "maximum": 100},
            "ratio": {"type": "number"},
            "sure": {"type": "boolean"},
            "mail": {"type": "string", "format": "email"},
            "page": {"type": "string", "format": "uri"},
            "day": {"type": "string", "format": "date"},
            "at": {"type": "string", "format": "date-time"},
            "hero": {"type": "string", "oneOf": [
                {"const": "h-1", "title": "Superman"}, {"const": "h-2", "title": "Lantern"},
            ]},
            "pet": {"type": "string", "enum": ["p1", "p2"], "enumNames": ["Cat", "Dog"]},
            "fish": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"anyOf": [
                {"const": "f1", "title": "Tuna"}, {"const": "f2", "title": "Trout"},
                {"const": "f3", "title": "Salmon"},
            ]}},
            "tools": {"type": "array", "items": {"type": "string", "enum": ["saw", "axe"]}},
        });
        let check = |words: &str| filled(all.clone(), words);
        assert_eq!(
            check("count: 7; ratio: 2.5; sure: yes; hero: superman; pet: Dog; fish: f1, Trout"),
            r#"{"count":7,"fish":["f1","f2"],"hero":"h-1","pet":"p2","ratio":2.5,"sure":true}"#
        );
        assert_eq!(
            check(
                "mail: a@b.example\npage: https://x.example/?a=1;b=2\nday: 2024-02-29\nat: 2026-01-31T12:00:00Z"
            ),
            r#"{"at":"2026-01-31T12:00:00Z","day":"2024-02-29","mail":"a@b.example","page":"https://x.example/?a=1;b=2"}"#
        );
        assert_eq!(
            check("{\"tools\": [\"axe\"], \"count\": 3}"),
            r#"{"count":3,"tools":["axe"]}"#
        );
        for (words, why) in [
            ("count: 0", "`count` is not a whole number from 1 to 100"),
            ("count: 1.5", "`count` is not a whole number"),
            (
                "count: 99999999999999999999",
                "`count` is not a whole number",
            ),
            ("ratio: NaN", "`ratio` is not a number"),
            ("ratio: 1e999", "`ratio` is not a number"),
            ("sure: maybe", "`sure` is not yes or no"),
            ("mail: nobody", "`mail` is not an e-mail address"),
            ("page: here", "`page` is not an address (URI)"),
            ("day: 2023-02-29", "`day` is not a date (2026-01-31)"),
            (
                "at: noon",
                "`at` is not a date with a time (2026-01-31T12:00:00Z)",
            ),
            ("hero: Batman", "`hero` is not one of its options"),
            (
                "fish: f1, f2, f3",
                "`fish` is not 1 to 2 of, separated by commas",
            ),
            ("other: 1", "there is no field `other`"),
            ("hello", "`hello` names no field; write `field: value`"),
            ("count: 1; count: 2", "`count` is answered twice"),
        ] {
            assert_eq!(check(words), why);
        }
    }

    #[test]
    fn required_fields_must_be_there_and_defaults_are_only_suggested() {
        let two = json!({
            "a": {"type": "string", "default": "x", "description": "the first"},
            "b": {"type": "boolean", "default": true},
        });
        let form = form(two, &["a"]).unwrap();
        assert_eq!(form.filled("b: no").unwrap_err(), "`a` is missing");
        assert_eq!(form.filled("a: y").unwrap().to_string(), r#"{"a":"y"}"#);
        assert_eq!(form.about(), "2 fields (`a`, `b`)");
        assert_eq!(
            form.described(),
            "a (required): a text; the first; the server suggests x\n\
             b: yes or no; the server suggests true"
        );
    }

    #[test]
    fn forms_that_nobody_can_read_are_refused() {
        let long = "x".repeat(600);
        let many: Map<String, Value> = (0..21)
            .map(|number| (format!("f{number}"), json!({"type": "string"})))
            .collect();
        let options: Vec<String> = (0..51).map(|number| number.to_string()).collect();
        for properties in [
            Value::Object(many),
            json!({"a": {"type": "string", "description": long}}),
            json!({long.as_str(): {"type": "string"}}),
            json!({"a": {"type": "string", "enum": options}}),
            json!({"a": {"type": "string", "enum": []}}),
            json!({"a": {"type": "object", "properties": {}}}),
            json!({"a": {"type": "string", "format": "password"}}),
        ] {
            assert!(form(properties.clone(), &[]).is_err(), "{properties}");
        }
        assert!(form(json!({}), &["a"]).is_err());
    }

    #[test]
    fn names_that_say_something_stay_out_of_the_headline() {
        let odd = json!({"approve everything\u{202e}": {"type": "string"}});
        assert_eq!(form(odd, &[]).unwrap().about(), "1 field");
    }
}
