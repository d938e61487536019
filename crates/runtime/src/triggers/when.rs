//! Conditions on the payload of a trigger, which are checked before anything wakes. They are
//! comparisons and ask no model.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use serde_json::Value;

/// Maximum number of conditions of a trigger.
pub const MAX_CONDITIONS: usize = 16;

/// Maximum size of a pattern in bytes, and of its automaton.
const MAX_PATTERN: usize = 1_000;
const MAX_AUTOMATON: usize = 1 << 20;

/// The reason why a condition is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// The place is not a JSON pointer.
    #[error("invalid path `{0}`: it is empty, or begins with / like `/build/state`")]
    Pointer(String),
    /// The pattern cannot be used.
    #[error("invalid pattern: {0}")]
    Pattern(String),
}

/// A comparison of one place of a payload.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    pointer: String,
    comparison: Comparison,
}

/// A comparison with a value. A place that the payload lacks compares as false, except with `null`.
#[derive(Debug, Clone)]
pub enum Comparison {
    Equals(Value),
    /// The value is a text that contains the pattern.
    Matches(Regex),
    /// The value is a number above this one.
    Above(f64),
    /// The value is a number below this one.
    Below(f64),
    /// The value differs from that of the previous payload. The first payload has none before it.
    Changed,
}

impl PartialEq for Comparison {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Equals(one), Self::Equals(other)) => one == other,
            (Self::Matches(one), Self::Matches(other)) => one.as_str() == other.as_str(),
            (Self::Above(one), Self::Above(other)) | (Self::Below(one), Self::Below(other)) => {
                one == other
            }
            (Self::Changed, Self::Changed) => true,
            (
                Self::Equals(_)
                | Self::Matches(_)
                | Self::Above(_)
                | Self::Below(_)
                | Self::Changed,
                _,
            ) => false,
        }
    }
}

impl Comparison {
    /// Creates a comparison with a pattern, which is matched in linear time.
    ///
    /// # Errors
    /// The pattern is invalid or too large.
    pub fn matches(pattern: &str) -> Result<Self, ConditionError> {
        if pattern.len() > MAX_PATTERN {
            let reason = format!("it is longer than {MAX_PATTERN} bytes");
            return Err(ConditionError::Pattern(reason));
        }
        let regex = RegexBuilder::new(pattern).size_limit(MAX_AUTOMATON).build();
        let regex = regex.map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                ConditionError::Pattern("it is too large".to_owned())
            }
            // The rest of the text draws the place.
            error => {
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default();
                ConditionError::Pattern(last.trim_start_matches("error: ").to_owned())
            }
        });
        Ok(Self::Matches(regex?))
    }
}

impl Condition {
    /// Creates a condition on the place that a JSON pointer (RFC 6901) names.
    ///
    /// # Errors
    /// The text is not a pointer.
    pub fn new(pointer: &str, comparison: Comparison) -> Result<Self, ConditionError> {
        if !pointer.is_empty() && !pointer.starts_with('/') {
            let given = pointer.chars().take(80).collect();
            return Err(ConditionError::Pointer(given));
        }
        Ok(Self {
            pointer: pointer.to_owned(),
            comparison,
        })
    }

    fn holds(&self, payload: &Value, last: &BTreeMap<String, String>) -> bool {
        let value = payload.pointer(&self.pointer).unwrap_or(&Value::Null);
        match &self.comparison {
            Comparison::Equals(wanted) => is_equal(value, wanted),
            Comparison::Matches(regex) => value.as_str().is_some_and(|text| regex.is_match(text)),
            Comparison::Above(limit) => value.as_f64().is_some_and(|number| number > *limit),
            Comparison::Below(limit) => value.as_f64().is_some_and(|number| number < *limit),
            Comparison::Changed => last.get(&self.pointer) != Some(&hash(value)),
        }
    }
}

/// Whether all conditions hold. `last` are the values of the previous payload, by [`values`].
pub(super) fn all_hold(
    conditions: &[Condition],
    payload: &Value,
    last: &BTreeMap<String, String>,
) -> bool {
    conditions.iter().all(|one| one.holds(payload, last))
}

/// Returns hashes of the values with which the next payload is compared, by their pointers.
pub(super) fn values(conditions: &[Condition], payload: &Value) -> BTreeMap<String, String> {
    let changed = conditions
        .iter()
        .filter(|one| matches!(one.comparison, Comparison::Changed));
    changed
        .map(|one| {
            let value = payload.pointer(&one.pointer).unwrap_or(&Value::Null);
            (one.pointer.clone(), hash(value))
        })
        .collect()
}

/// Whether two values are equal; numbers are compared by value, so that 1 equals 1.0.
fn is_equal(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64() == other.as_f64()
        }
        (value, wanted) => value == wanted,
    }
}

fn hash(value: &Value) -> String {
    let text = value.to_string();
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_are_compared() {
        let payload = json!({"state": "failed", "size": 7, "tags": ["a", "b"], "none": null});
        let nothing = BTreeMap::new();
        let holds = |pointer: &str, comparison| {
            let condition = Condition::new(pointer, comparison).unwrap();
            all_hold(&[condition], &payload, &nothing)
        };
        for (pointer, comparison, expected) in [
            ("/state", Comparison::Equals(json!("failed")), true),
            ("/state", Comparison::Equals(json!("Failed")), false),
            ("/size", Comparison::Equals(json!(7.0)), true),
            ("/size", Comparison::Equals(json!("7")), false),
            ("/tags/1", Comparison::Equals(json!("b")), true),
            ("/gone", Comparison::Equals(json!(null)), true),
            ("/gone", Comparison::Equals(json!("failed")), false),
            ("/state", Comparison::matches("^fail").unwrap(), true),
            ("/size", Comparison::matches("7").unwrap(), false),
            ("/size", Comparison::Above(6.5), true),
            ("/size", Comparison::Above(7.0), false),
            ("/size", Comparison::Below(8.0), true),
            ("/gone", Comparison::Below(8.0), false),
            ("/state", Comparison::Changed, true),
        ] {
            assert_eq!(
                holds(pointer, comparison.clone()),
                expected,
                "{pointer} {comparison:?}"
            );
        }
        let changed = [Condition::new("/size", Comparison::Changed).unwrap()];
        let last = values(&changed, &payload);
        assert!(!all_hold(&changed, &payload, &last));
        assert!(all_hold(&changed, &json!({"size": 8}), &last));
        assert!(all_hold(&changed, &json!({}), &last));
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        assert!(Condition::new("state", Comparison::Changed).is_err());
        for pattern in ["(", "a{1000}{1000}", &"a".repeat(1_001)] {
            let error = Comparison::matches(pattern).unwrap_err().to_string();
            assert!(error.starts_with("invalid pattern: "), "{error}");
        }
    }
}
