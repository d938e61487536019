//! Parsing a model's reply.
//!
//! Mistakes in syntax are tolerated, ambiguity never: prose around the object, a number in
//! quotation marks or an unknown field beside the actions do no harm; two objects, an argument that
//! the action does not have or a point outside of the frame are asked about again.

use gyrus_contract::{Arguments as _, ElementId, FINISH, ScreenAction, StopReason, ToolCall};
use gyrus_text::{closest_in, shorten};
use serde_json::{Map, Value, json};

use super::{
    actions::{self, FinishClaim},
    words::clean,
};
use crate::json::the_object;

/// Maximum number of actions in a reply.
pub(super) const MOST_ACTIONS: usize = 5;

/// Maximum number of characters of a note, and of an expectation.
const NOTE: usize = 120;

/// Maximum number of characters of the mistake in an action.
const MISTAKE: usize = 200;

/// The facts for checking a reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplyChoices<'a> {
    pub(super) actions: &'a [&'static ScreenAction],
    /// Width and height of the frame shown to the model; without one, points are invalid.
    pub(super) frame: Option<(u32, u32)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct UsableReply {
    /// The model's thought.
    pub(super) note: String,
    /// The changes to the memo; an empty text removes a key.
    pub(super) memo: Vec<(String, String)>,
    /// The provider's reasons for requiring a person's confirmation.
    pub(super) confirm: Vec<String>,
    pub(super) deeds: Deeds,
    /// The model's expectation of the next view.
    pub(super) expects: String,
}

/// The decision of a model.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Deeds {
    /// One to five calls, in this order.
    Calls(Vec<ToolCall>),
    /// The model claims that the work is over.
    Finish(FinishClaim),
}

impl UsableReply {
    /// Creates a reply that ends the work with an answer in text.
    pub(super) fn answer(words: &str, token: &str) -> Self {
        Self {
            note: String::new(),
            memo: Vec::new(),
            confirm: Vec::new(),
            deeds: Deeds::Finish(FinishClaim {
                token: token.to_owned(),
                reached: true,
                answer: words.to_owned(),
                in_words: true,
            }),
            expects: String::new(),
        }
    }
}

/// Returns the text of a reply that is text only: whole, without a call, and without an object.
pub(super) fn in_words(reply: &gyrus_contract::Reply) -> Option<String> {
    let text = reply.text();
    let words = text.trim();
    let is_whole = reply.stop != StopReason::MaxTokens && reply.tool_calls().next().is_none();
    (is_whole && !words.is_empty() && !words.contains('{')).then(|| words.to_owned())
}

/// Returns the text for the model about a reply that could not be used for this reason.
pub(super) fn told(why: &str, was_in_words: bool) -> String {
    let again = if was_in_words {
        "If it was your answer, give it again with `finish`, or whole and in words: the work ends \
         with it. Otherwise answer with one JSON object and nothing else."
    } else {
        "Answer again, with one JSON object and nothing else."
    };
    format!("Your reply could not be used, so nothing was done: {why}. {again}")
}

/// Parses a reply; the error tells the model the mistake.
pub(super) fn read(text: &str, offered: ReplyChoices<'_>) -> Result<UsableReply, String> {
    understood(the_object(text, "actions")?, offered)
}

/// Converts an object to a reply.
pub(super) fn understood(
    mut object: Map<String, Value>,
    offered: ReplyChoices<'_>,
) -> Result<UsableReply, String> {
    let listed = match object.remove("actions") {
        Some(Value::Array(listed)) => listed,
        Some(one @ Value::Object(_)) => vec![one],
        _ => return Err("`actions` is not a list".to_owned()),
    };
    if listed.is_empty() || listed.len() > MOST_ACTIONS {
        return Err(format!(
            "`actions` has {} actions; give one to {MOST_ACTIONS}",
            listed.len()
        ));
    }
    let several = listed.len() > 1;
    let mut calls = Vec::new();
    let mut finish = None;
    for (number, action) in (1..).zip(listed) {
        let wrong = |why: String| format!("action {number}: {why}");
        let call = call(action, offered).map_err(wrong)?;
        match call.tool == FINISH {
            true if several => {
                let why = "`finish` stands alone: act first, look at what came of it, then finish";
                return Err(wrong(why.to_owned()));
            }
            true => finish = FinishClaim::parse(&call.arguments).ok(),
            false => calls.push(call),
        }
    }
    Ok(UsableReply {
        note: words(&object, "note"),
        memo: memo(object.get("memo"))?,
        confirm: Vec::new(),
        deeds: finish.map_or(Deeds::Calls(calls), Deeds::Finish),
        expects: words(&object, "expects"),
    })
}

fn words(object: &Map<String, Value>, name: &str) -> String {
    let text = object.get(name).and_then(Value::as_str);
    shorten(&clean(text.unwrap_or_default()), NOTE).into_owned()
}

/// Returns changes to the memo: a list of keys and texts, or an object of them.
fn memo(given: Option<&Value>) -> Result<Vec<(String, String)>, String> {
    let text = |value: Option<&Value>| match value {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        None | Some(Value::Null) => Ok(String::new()),
        Some(_) => Err("what stands in `memo` must be text".to_owned()),
    };
    match given {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(changes)) => changes
            .iter()
            .map(|(key, value)| Ok((key.clone(), text(Some(value))?)))
            .collect(),
        Some(Value::Array(changes)) => changes
            .iter()
            .map(|change| match change.get("key").and_then(Value::as_str) {
                Some(key) => Ok((key.to_owned(), text(change.get("text"))?)),
                None => Err("each change in `memo` needs a `key` and a `text`".to_owned()),
            })
            .collect(),
        Some(_) => Err("`memo` is not a list of changes".to_owned()),
    }
}

/// Converts an action to a call.
fn call(action: Value, offered: ReplyChoices<'_>) -> Result<ToolCall, String> {
    let Value::Object(mut given) = action else {
        return Err("it is not an object".to_owned());
    };
    let Some(Value::String(name)) = given.remove("do") else {
        return Err("it does not say what to `do`".to_owned());
    };
    let known = offered.actions.iter().find(|action| action.name == name);
    let action = known.ok_or_else(|| {
        let names: Vec<_> = offered.actions.iter().map(|action| action.name).collect();
        let name = shorten(&clean(&name), 40).into_owned();
        format!(
            "there is no action `{name}`; there are {}",
            names.join(", ")
        )
    })?;
    let required = action.schema["required"].as_array();
    let mut arguments = Map::new();
    for (name, value) in given {
        let schema = &action.schema["properties"][&name];
        let is_required = required.is_some_and(|required| required.iter().any(|one| *one == name));
        // Some models fill in every field of the reply's schema.
        let is_filler = schema.is_null() && (value == false || value == 0);
        if !is_filler && !is_nothing(&value, schema, is_required) {
            let read = argument_of(&name, schema, &value, offered.frame)?;
            arguments.insert(name, read);
        }
    }
    let arguments = arguments.into();
    match (action.check)(&arguments) {
        Ok(()) => Ok(ToolCall::new(name, arguments)),
        Err(why) => {
            let meant =
                closest_in(&why).map(|meant| format!(" (did you mean `{}`?)", clean(meant)));
            let (why, meant) = (clean(&why), meant.unwrap_or_default());
            let why = shorten(&why, MISTAKE);
            Err(format!(
                "{why}{meant}; the syntax is {name}{}",
                action.usage
            ))
        }
    }
}

/// Whether a value means that the argument is omitted.
fn is_nothing(value: &Value, schema: &Value, is_required: bool) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty() && !(is_required && is_text(schema)),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// Whether any text is valid.
fn is_text(schema: &Value) -> bool {
    schema["type"] == "string" && schema["pattern"].is_null() && schema["enum"].is_null()
}

/// Converts an argument to the type in its schema where its meaning is clear. Points must lie in the
/// frame; the other types are checked with the whole call.
fn argument_of(
    name: &str,
    schema: &Value,
    value: &Value,
    frame: Option<(u32, u32)>,
) -> Result<Value, String> {
    let items = &schema["items"];
    let several = value
        .as_array()
        .map_or(std::slice::from_ref(value), Vec::as_slice);
    let meant = match schema["type"].as_str() {
        Some("boolean") => value
            .as_str()
            .and_then(|word| Some(word.parse::<bool>().ok()?.into())),
        Some("integer") => number(value)
            .filter(|number| (0.0..=1e6).contains(number) && number.fract() == 0.0)
            .map(|number| json!(number as u32)),
        Some("number") => number(value).map(Value::from),
        Some("string") if is_text(schema) => {
            value.as_number().map(|number| number.to_string().into())
        }
        Some("string") if schema["enum"].is_null() => element(value),
        Some("string") => Some(one_of(&schema["enum"], value)),
        Some("array") if items["type"] == "number" => Some(point(name, value, frame)?),
        Some("array") if items["items"]["type"] == "string" => {
            let text = |one: &Value| {
                one.as_number()
                    .map_or(one.clone(), |one| one.to_string().into())
            };
            let texts = |pair: &Value| -> Option<Value> {
                Some(pair.as_array()?.iter().map(text).collect())
            };
            several.iter().map(texts).collect()
        }
        Some("array") if items["type"] == "array" => {
            let points = several.iter().map(|one| point(name, one, frame));
            Some(points.collect::<Result<_, _>>()?)
        }
        Some("array") => Some(
            several
                .iter()
                .map(|one| one_of(&items["enum"], one))
                .collect(),
        ),
        // The check refuses an argument that the action does not have.
        _ if schema.is_null() => None,
        _ => Some(element(value).map_or_else(|| point(name, value, frame), Ok)?),
    };
    Ok(meant.unwrap_or_else(|| value.clone()))
}

/// Returns the one of these words that equals the value in any case, or else the value.
fn one_of(words: &Value, value: &Value) -> Value {
    let given = value.as_str().unwrap_or_default().trim().to_lowercase();
    let words = words.as_array().into_iter().flatten();
    let known = words.into_iter().find(|word| **word == given);
    known.unwrap_or(value).clone()
}

fn element(value: &Value) -> Option<Value> {
    let id: ElementId = value.as_str()?.trim().parse().ok()?;
    Some(id.to_string().into())
}

/// Parses a finite number, possibly in quotation marks.
fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => {
            let text = text.trim();
            // `parse` also accepts words for infinity and for values that are not numbers.
            let figures = text
                .bytes()
                .all(|byte| byte.is_ascii_digit() || b".-".contains(&byte));
            figures.then(|| text.parse().ok())??
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    number.is_finite().then_some(number)
}

fn point(name: &str, value: &Value, frame: Option<(u32, u32)>) -> Result<Value, String> {
    let pair = match value {
        Value::Array(pair) => match pair.as_slice() {
            [x, y] => number(x).zip(number(y)),
            _ => None,
        },
        _ => None,
    };
    let Some((x, y)) = pair else {
        return Err(format!(
            "`{name}` must be [x, y] in pixels of the picture, or an id"
        ));
    };
    let Some((width, height)) = frame else {
        return Err(format!(
            "`{name}` is a point, but you were shown no picture: use the id of an element"
        ));
    };
    // Negative zero becomes zero.
    let within = |at: f64, length: u32| (0.0..f64::from(length)).contains(&at);
    if !within(x, width) || !within(y, height) {
        return Err(format!(
            "`{name}` lies outside of the picture, which is {width} by {height} pixels"
        ));
    }
    Ok(json!([x as u32, y as u32]))
}

/// Returns the actions that are possible with the run's tools.
pub(super) fn offered_by<'a>(
    tools: impl Iterator<Item = &'a str> + Clone,
) -> Vec<&'static ScreenAction> {
    let has = |name: &str| name == FINISH || tools.clone().any(|tool| tool == name);
    actions::ACTIONS
        .iter()
        .filter(|action| has(action.name))
        .collect()
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
