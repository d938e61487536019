//! Parses the arguments of a tool call from the model's text.
//!
//! A model's text may not be JSON. That is an error of the model and not of the wire, so the reply
//! must not be lost: small mistakes of its writing are mended, and arguments that cannot be read stay
//! a string with the raw text, so that the loop can tell the model.

use serde_json::{Map, Value};

/// Maximum nesting of JSON, in brackets. What comes in is written into journals and requests some
/// levels deeper and must be readable there, where readers stop at 128.
pub(crate) const MAX_NESTING: usize = 100;

/// Returns the arguments of a call. Empty text stands for the empty object.
pub(crate) fn parse(raw: String, begun_with: Value) -> Value {
    if raw.trim().is_empty() {
        return match begun_with {
            Value::Object(_) => begun_with,
            _ => Value::Object(Map::new()),
        };
    }
    if nests_too_deep(&raw) {
        return Value::String(raw);
    }
    read_leniently(&raw).unwrap_or(Value::String(raw))
}

/// Reads JSON after repairing invalid escapes (`\\;`), line feeds in texts, commas before a closing
/// bracket and the constants of Python.
pub(crate) fn read_leniently(text: &str) -> Option<Value> {
    if nests_too_deep(text) {
        return None;
    }
    let strict = serde_json::from_str(text).ok();
    strict.or_else(|| serde_json::from_str(&mended(text)).ok())
}

/// Repairs the mistakes that models make in JSON.
fn mended(text: &str) -> String {
    let mut mended = String::with_capacity(text.len() + 16);
    let mut in_string = false;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '"' => {
                in_string = !in_string;
                mended.push(c);
            }
            '\\' if in_string => {
                let next = rest.chars().next();
                rest = &rest[next.map_or(0, char::len_utf8)..];
                let is_unicode = next == Some('u')
                    && rest.len() >= 4
                    && rest.bytes().take(4).all(|digit| digit.is_ascii_hexdigit());
                match next {
                    Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {
                        mended.push(c);
                        mended.extend(next);
                    }
                    Some('u') if is_unicode => mended.push_str("\\u"),
                    Some('\'') => mended.push('\''),
                    // The backslash is meant: `sed 's/\./x/'`, `find -exec … \;`.
                    Some('\n') => mended.push_str("\\\\\\n"),
                    Some(other) => {
                        mended.push_str("\\\\");
                        mended.push(other);
                    }
                    None => {}
                }
            }
            '\n' if in_string => mended.push_str("\\n"),
            '\r' if in_string => mended.push_str("\\r"),
            '\t' if in_string => mended.push_str("\\t"),
            ',' if !in_string && rest.trim_start().starts_with(['}', ']']) => {}
            _ if in_string => mended.push(c),
            _ => match PYTHON.iter().find(|(word, _)| {
                let is_word = word.starts_with(c) && rest.starts_with(&word[1..]);
                is_word && !mended.ends_with(char::is_alphanumeric)
            }) {
                Some((word, json)) => {
                    mended.push_str(json);
                    rest = &rest[word.len() - 1..];
                }
                None => mended.push(c),
            },
        }
    }
    mended
}

/// Constants of Python, and of JSON.
const PYTHON: [(&str, &str); 3] = [("True", "true"), ("False", "false"), ("None", "null")];

pub(crate) fn is_empty(arguments: &Value) -> bool {
    arguments.as_object().is_some_and(Map::is_empty)
}

/// Whether a text of JSON opens more than [`MAX_NESTING`] brackets at once.
pub(crate) fn nests_too_deep(json: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if std::mem::take(&mut escaped) => {}
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mistakes_of_writing_are_mended() {
        for (raw, expected) in [
            (
                r#"{"c": "find . -exec ls {} \;"}"#,
                json!({"c": "find . -exec ls {} \\;"}),
            ),
            (
                r#"{"c": "find . -exec ls {} \;", "n": True,}"#,
                json!({"c": "find . -exec ls {} \\;", "n": true}),
            ),
            (r#"{"c": "s/\./x/"}"#, json!({"c": "s/\\./x/"})),
            (r#"{"c": "it\'s"}"#, json!({"c": "it's"})),
            ("{\"c\": \"a\nb\tc\"}", json!({"c": "a\nb\tc"})),
            (
                "{\"c\": [1, 2,], \"d\": None}",
                json!({"c": [1, 2], "d": null}),
            ),
            (r#"{"c": "\u00e4\n"}"#, json!({"c": "ä\n"})),
            (r#"{"c": "True, ]"}"#, json!({"c": "True, ]"})),
        ] {
            assert_eq!(read_leniently(raw), Some(expected), "{raw}");
        }
        for raw in ["{", r#"{"c": "#, "ls", r#"{'c': 1}"#, ""] {
            assert_eq!(read_leniently(raw), None, "{raw}");
        }
    }
}
