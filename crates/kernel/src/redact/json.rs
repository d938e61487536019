//! Redaction of JSON: strings, keys, and strings because of their keys.

use std::borrow::Cow;

use serde_json::Value;

use super::{Redactor, context, pairs, pass::HitName};

impl Redactor {
    /// Redacts every string and key of a value in place. A string whose key names a secret is
    /// redacted, unless it is a placeholder or very short.
    pub fn redact_json(&self, value: &mut Value) {
        self.redact_value(value, None);
    }

    fn redact_value(&self, value: &mut Value, key: Option<&str>) {
        match value {
            Value::String(text) => {
                let mut redacted = self.redact(text);
                if let Some(at) = key.and_then(|key| context::value_under(key, &redacted)) {
                    let marker =
                        self.marker_for(&redacted[at.clone()], HitName::Found(context::KIND));
                    redacted.to_mut().replace_range(at, &marker);
                }
                if let Cow::Owned(redacted) = redacted {
                    *text = redacted;
                }
            }
            Value::Array(values) => values
                .iter_mut()
                .for_each(|value| self.redact_value(value, key)),
            Value::Object(map) => {
                let named = pairs::class_by_sibling(map);
                for (key, value) in map.iter_mut() {
                    self.redact_value(value, Some(key));
                    if let (Some(class), Value::String(text)) = (named, value)
                        && pairs::is_value(key)
                        && let Some(at) = context::value_of(class, text)
                    {
                        let marker =
                            self.marker_for(&text[at.clone()], HitName::Found(context::KIND));
                        text.replace_range(at, &marker);
                    }
                }
                if map
                    .keys()
                    .any(|key| matches!(self.redact(key), Cow::Owned(_)))
                {
                    *map = std::mem::take(map)
                        .into_iter()
                        .map(|(key, value)| (self.redact(&key).into_owned(), value))
                        .collect();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
