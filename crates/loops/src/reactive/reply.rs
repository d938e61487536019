//! Parsing a model's reply.
//!
//! Mistakes in syntax are tolerated, ambiguity never: prose around the object, a number in
//! quotation marks or an unknown field do no harm; two objects, an argument with two possible
//! meanings or a point outside of the frame are asked about again.

use gyrus_contract::{ElementId, ToolCall};
use gyrus_text::shorten;
use serde_json::{Map, Value, json};

use super::{
    actions::{self, Action, Argument, FINISH, Kind},
    words::clean,
};
use crate::json::the_object;

/// Maximum number of actions in a reply.
pub(super) const MOST_ACTIONS: usize = 5;

/// Maximum number of characters of a note, and of an expectation.
const NOTE: usize = 120;

/// Maximum number of pages of one scroll.
const MOST_PAGES: f64 = 20.0;

/// Maximum number of seconds of one wait.
const MOST_SECONDS: f64 = 10.0;

/// Maximum number of points of one drag.
const MOST_POINTS: usize = 100;

/// The facts that a reply is checked against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offered<'a> {
    /// The offered actions.
    pub(super) actions: &'a [&'static Action],
    /// Width and height of the frame that was shown; without one, points are invalid.
    pub(super) frame: Option<(u32, u32)>,
}

/// A usable reply.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reply {
    /// The model's thought.
    pub(super) note: String,
    /// The changes to the memo; an empty text removes a key.
    pub(super) memo: Vec<(String, String)>,
    /// The reasons for which the model's provider wants a person's confirmation, in the provider's
    /// words.
    pub(super) confirm: Vec<String>,
    /// The decision.
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
    Finish(Finish),
}

/// A model's claim that the work is over. Its token is not checked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finish {
    pub(super) token: String,
    pub(super) reached: bool,
    pub(super) answer: String,
}

/// Parses a reply; the error tells the model the mistake.
pub(super) fn read(text: &str, offered: Offered<'_>) -> Result<Reply, String> {
    understood(the_object(text, "actions")?, offered)
}

/// Converts an object to a reply.
pub(super) fn understood(
    mut object: Map<String, Value>,
    offered: Offered<'_>,
) -> Result<Reply, String> {
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
            true => finish = Some(finished(&call)),
            false => calls.push(call),
        }
    }
    Ok(Reply {
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

fn finished(call: &ToolCall) -> Finish {
    let text = |name: &str| call.arguments[name].as_str().unwrap_or_default().to_owned();
    Finish {
        token: text("token"),
        reached: call.arguments["reached"] == true,
        answer: text("answer"),
    }
}

/// Converts an action to a call. Arguments that the tool does not take are left out.
fn call(action: Value, offered: Offered<'_>) -> Result<ToolCall, String> {
    let Value::Object(given) = action else {
        return Err("it is not an object".to_owned());
    };
    let name = given
        .get("do")
        .and_then(Value::as_str)
        .ok_or("it does not say what to `do`")?;
    let known = offered.actions.iter().find(|action| action.name == name);
    let action = known.ok_or_else(|| {
        let names: Vec<_> = offered.actions.iter().map(|action| action.name).collect();
        let name = shorten(&clean(name), 40).into_owned();
        format!(
            "there is no action `{name}`; there are {}",
            names.join(", ")
        )
    })?;
    let mut arguments = Map::new();
    for argument in action.arguments {
        // Some models fill in every field of a schema.
        let value = given
            .get(argument.name)
            .filter(|value| !is_nothing(value, argument));
        match value {
            Some(value) => {
                let read = argument_of(argument, value, offered)?;
                arguments.insert(argument.name.to_owned(), read);
            }
            None if argument.is_required => {
                return Err(format!(
                    "`{name}` needs `{}`: {name}{}",
                    argument.name, action.usage
                ));
            }
            None => {}
        }
    }
    let both = arguments.contains_key("on") && arguments.contains_key("at");
    let neither = !arguments.contains_key("on") && !arguments.contains_key("at");
    if both {
        return Err("it has both `on` and `at`; give the one that is meant".to_owned());
    }
    if action.is_pointed && neither {
        return Err(format!("`{name}` needs `on` or `at`"));
    }
    Ok(ToolCall::new(name, arguments.into()))
}

fn is_nothing(value: &Value, argument: &Argument) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => {
            text.is_empty() && !(argument.is_required && argument.kind == Kind::Text)
        }
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

fn argument_of(argument: &Argument, value: &Value, offered: Offered<'_>) -> Result<Value, String> {
    let name = argument.name;
    let wrong = |what: &str| Err(format!("`{name}` must be {what}"));
    match argument.kind {
        Kind::Element => match element(value) {
            Some(id) => Ok(id),
            None => wrong("the id of an element, as `b17`"),
        },
        Kind::Point => point(name, value, offered.frame),
        Kind::Place => match element(value) {
            Some(id) => Ok(id),
            None => point(name, value, offered.frame),
        },
        Kind::Points => {
            let points = value.as_array().map(|points| {
                let points = points.iter().take(MOST_POINTS + 1);
                points.map(|one| point(name, one, offered.frame)).collect()
            });
            match points.unwrap_or_else(|| Ok(Vec::new()))? {
                points if (1..=MOST_POINTS).contains(&points.len()) => Ok(points.into()),
                _ => wrong(&format!("a list of one to {MOST_POINTS} points [x, y]")),
            }
        }
        Kind::Text => match value {
            Value::String(_) => Ok(value.clone()),
            Value::Number(number) => Ok(number.to_string().into()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => wrong("text"),
        },
        Kind::Flag => match value {
            Value::Bool(_) => Ok(value.clone()),
            Value::String(word) if word == "true" => Ok(true.into()),
            Value::String(word) if word == "false" => Ok(false.into()),
            _ => wrong("true or false"),
        },
        Kind::Amount => match number(value) {
            Some(pages) if pages > 0.0 && pages <= MOST_PAGES => Ok(pages.into()),
            _ => wrong("a number above 0 and at most 20"),
        },
        Kind::Seconds => match number(value) {
            Some(seconds) if seconds > 0.0 && seconds <= MOST_SECONDS => Ok(seconds.into()),
            _ => wrong("a number above 0 and at most 10"),
        },
        Kind::Number => match number(value) {
            Some(tab) if (1.0..=1e6).contains(&tab) && tab.fract() == 0.0 => Ok(json!(tab as u32)),
            _ => wrong("a whole number from 1 on"),
        },
        Kind::OneOf(words) => match one_of(words, value) {
            Some(word) => Ok(word.into()),
            None => wrong(&format!("one of {}", words.join(", "))),
        },
        Kind::SomeOf(words) => {
            let given = match value {
                Value::Array(items) => items.iter().collect(),
                one => vec![one],
            };
            let read: Option<Vec<_>> = given.into_iter().map(|one| one_of(words, one)).collect();
            match read {
                Some(read) => Ok(read.into()),
                None => wrong(&format!("a list of {}", words.join(", "))),
            }
        }
    }
}

fn one_of(words: &[&'static str], value: &Value) -> Option<&'static str> {
    let given = value.as_str()?.trim();
    words
        .iter()
        .find(|word| given.eq_ignore_ascii_case(word))
        .copied()
}

fn element(value: &Value) -> Option<Value> {
    let id: ElementId = value.as_str()?.trim().parse().ok()?;
    Some(id.to_string().into())
}

/// Parses a number, or one in quotation marks; it is always finite.
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

/// Returns the actions that are possible with these tools of the run.
pub(super) fn offered_by<'a>(tools: impl Iterator<Item = &'a str> + Clone) -> Vec<&'static Action> {
    let has = |name: &str| name == FINISH || tools.clone().any(|tool| tool == name);
    actions::ACTIONS
        .iter()
        .filter(|action| has(action.name))
        .collect()
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
