//! A provider's own tool for screens: whether it is offered, and the translation of its calls.
//!
//! The one idea: a loop knows one set of actions on a screen, those of the screen's tools. Each
//! provider's file translates its calls into these; a call without an equivalent keeps its own
//! name, so that the loop can tell the model that there is no such action. Points become pixels of
//! the picture that was sent; the loop checks that they are inside. Nothing is ever confirmed on
//! behalf of a person.

use std::{borrow::Cow, sync::Arc};

use gyrus_contract::{CONFIRM, Message, Origin, Part, Prompt, Role, ScreenSize, Text};
use serde_json::{Map, Value, json};

use crate::ModelFacts;

/// Hint for a model that may use its own tool. It follows the picture, where nothing is cached.
const HINT: &str = include_str!("screen.md");

/// Number of pixels that one notch of a wheel scrolls.
const NOTCH: f64 = 100.0;

/// Returns the picture on which the reply to `prompt` may act by its provider's own tool, if that
/// is offered.
pub(crate) fn offered(prompt: &Prompt, facts: &ModelFacts) -> Option<ScreenSize> {
    prompt.screen.filter(|_| facts.screen_tool == Some(true))
}

/// Returns the prompt for a model that is offered its own screen tool: it contains the hint, and no
/// schema, which the calls could not fit.
pub(crate) fn told(prompt: &Prompt, offered: Option<ScreenSize>) -> Cow<'_, Prompt> {
    if offered.is_none() {
        return Cow::Borrowed(prompt);
    }
    let mut told = prompt.clone();
    told.output_schema = None;
    told.messages.push(Arc::new(Message {
        role: Role::User,
        parts: vec![Part::Text(Text::new(HINT.trim_end(), Origin::Kernel))],
    }));
    Cow::Owned(told)
}

/// A translated call: the tool and its arguments. Arguments that are `Null` are left out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Act {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
}

impl Act {
    pub(crate) fn new(tool: &str, arguments: Value) -> Self {
        let mut fields = match arguments {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        fields.retain(|_, value| !value.is_null());
        Self {
            tool: tool.to_owned(),
            arguments: fields.into(),
        }
    }

    /// Creates the action that asks a person for confirmation.
    pub(crate) fn confirm(why: &Value) -> Self {
        let why = why.as_str().unwrap_or("it gave no reason");
        Self::new(CONFIRM, json!({ "why": why }))
    }
}

/// Returns presses of keys. Keys that are only held precede the pressed one; further pressed keys
/// are pressed in turn.
pub(crate) fn presses<'a>(keys: impl IntoIterator<Item = &'a str>) -> Vec<Act> {
    let mut acts = Vec::new();
    let mut held: Vec<&str> = Vec::new();
    let press = |held: &[&str], key: &str| {
        let chord = held.iter().chain([&key]).copied().collect::<Vec<_>>();
        Act::new("press_key", json!({ "key": chord.join("+") }))
    };
    for key in keys {
        match modifier(key) {
            Some(modifier) => held.push(modifier),
            None => acts.push(press(&held, &key_name(key, !held.is_empty()))),
        }
    }
    match (acts.is_empty(), held.pop()) {
        (true, Some(last)) => vec![press(&held, last)],
        _ => acts,
    }
}

/// Returns the keys that are held during a click, by their names in clicks.
pub(crate) fn held<'a>(keys: impl IntoIterator<Item = &'a str>) -> Value {
    let words: Vec<_> = keys
        .into_iter()
        .map(|key| modifier(key).unwrap_or(key).to_lowercase())
        .collect();
    if words.is_empty() {
        Value::Null
    } else {
        words.into()
    }
}

fn modifier(key: &str) -> Option<&'static str> {
    match key.trim().to_ascii_lowercase().as_str() {
        "ctrl" | "control" => Some("Control"),
        "shift" => Some("Shift"),
        "alt" | "option" => Some("Alt"),
        "meta" | "cmd" | "command" | "super" | "win" => Some("Meta"),
        _ => None,
    }
}

/// Returns the screen's name of a key: those of the X Window System have underscores, and some
/// models write all letters in upper case.
fn key_name(key: &str, is_held: bool) -> String {
    let key = key.trim();
    match key.chars().count() {
        1 if is_held => key.to_lowercase(),
        1 => key.to_owned(),
        _ => key.replace('_', ""),
    }
}

/// Converts pixels of scrolling to pages of the picture.
pub(crate) fn pages(pixels: f64, length: u32) -> Value {
    json!((pixels.abs() / f64::from(length.max(1)) * 100.0).round() / 100.0)
}

/// Converts notches of a wheel to pages of the picture.
pub(crate) fn notches(notches: f64, length: u32) -> Value {
    pages(notches * NOTCH, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_our_names() {
        let check = |keys: &[&str], expected: &[&str]| {
            let acts = presses(keys.iter().copied());
            let keys: Vec<_> = acts
                .iter()
                .map(|act| act.arguments["key"].as_str().unwrap())
                .collect();
            assert_eq!(keys, expected);
        };
        check(&["CTRL", "SHIFT", "T"], &["Control+Shift+t"]);
        check(&["Page_Down"], &["PageDown"]);
        check(&["a", "b"], &["a", "b"]);
        check(&["super"], &["Meta"]);
        check(&["A"], &["A"]);
        check(&[], &[]);
        assert_eq!(held(["ctrl", "Shift"]), json!(["control", "shift"]));
        assert_eq!(held([]), Value::Null);
        assert_eq!(pages(-400.0, 800), json!(0.5));
    }
}
