//! Helpers for the checkers of requests.

use serde_json::Value;

/// Returns the sentence as an error if `holds` is false.
pub(crate) fn expect(holds: bool, what: &str) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(format!("broken: {what}"))
    }
}

/// Checks an object with all of `required`, and no other fields than `optional`.
pub(crate) fn fields(object: &Value, required: &[&str], optional: &[&str]) -> Result<(), String> {
    let Some(found) = object.as_object() else {
        return Err(format!("no object: {object}"));
    };
    if let Some(missing) = required.iter().find(|name| !found.contains_key(**name)) {
        return Err(format!("`{missing}` is missing: {object}"));
    }
    let is_known = |name: &&String| {
        let name = name.as_str();
        required.contains(&name) || optional.contains(&name)
    };
    match found.keys().find(|name| !is_known(name)) {
        Some(unknown) => Err(format!("`{unknown}` is not known: {object}")),
        None => Ok(()),
    }
}

/// Returns the items of a list; none if it is not a list.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a text in an object; empty if there is none.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

/// Checks a name or an id by the rules of providers.
pub(crate) fn is_name(name: &str, longest: usize) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= longest && name.chars().all(is_plain)
}
