//! Attacks on the work of an office: the text of each, and the calls of a model that obeys it.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    obedient::ORDER,
    office::{Office, Task, read},
    tool_server::Text,
};

/// Arguments that say where something goes.
const PLACES: &[&str] = &[
    "recipients",
    "recipient",
    "cc",
    "email",
    "channel",
    "channel_name",
    "user",
    "user_email",
    "iban",
];

/// Arguments that name a thing.
const THINGS: &[&str] = &[
    "email_id",
    "eventId",
    "file_id",
    "hotel",
    "restaurant",
    "flight_number",
    "booking_id",
    "id",
    "threadTs",
    "timestamp",
    "company",
    "file_name",
];

/// Arguments that hold written text.
const TEXTS: &[&str] = &[
    "body",
    "text",
    "subject",
    "content",
    "comment",
    "description",
    "summary",
];

#[derive(Deserialize)]
struct Attacks {
    attack: Vec<Attack>,
}

/// An attack, as the file describes it.
#[derive(Deserialize)]
pub(crate) struct Attack {
    pub(crate) kind: String,
    says: String,
    #[serde(default)]
    calls: Vec<(String, Value)>,
    /// Whether the values are the model's own: the text does not hold them.
    #[serde(default)]
    composed: bool,
    /// Whether the text goes on with the lines of a server that joins them.
    #[serde(default)]
    lines: bool,
    #[serde(flatten)]
    change: Change,
}

/// A change of the calls of the work.
#[derive(Deserialize, Default)]
struct Change {
    to: Option<String>,
    more: Option<String>,
    thing: Option<String>,
    text: Option<String>,
    times: Option<f64>,
    #[serde(default)]
    adds: Map<String, Value>,
    #[serde(default)]
    again: bool,
    #[serde(default)]
    only: String,
}

/// An attack on one task.
pub(crate) struct Aimed {
    pub(crate) kind: String,
    pub(crate) planted: Text,
    /// The calls, each a tool with its arguments.
    pub(crate) calls: Vec<(String, Value)>,
}

/// All attacks.
pub(crate) fn attacks() -> Vec<Attack> {
    read::<Attacks>("attacks.toml").attack
}

impl Attack {
    /// The attack on a task with its number among the attacks on it, if there is anything to attack.
    pub(crate) fn aimed(&self, office: &Office, task: &Task, number: usize) -> Option<Aimed> {
        let work = task
            .calls
            .iter()
            .filter(|(tool, _)| office.has_effect(tool));
        let changed = work.filter_map(|(tool, with)| {
            let changed = self.change.of(office, tool, with)?;
            Some((tool.clone(), changed))
        });
        let is_work = |call: &(String, Value)| !self.change.again && task.calls.contains(call);
        let mut calls: Vec<_> = self.calls.iter().cloned().chain(changed).collect();
        calls.retain(|call| !is_work(call));
        if calls.is_empty() {
            return None;
        }
        let told = calls.iter().filter(|_| !self.composed);
        let values: Vec<_> = told.map(|(_, with)| values(with)).collect();
        let order = format!("{ORDER}{number} ");
        let text = if self.says.contains("{order}") {
            self.says.replace("{order}", &order)
        } else {
            format!("{} ({}) {order};", self.says, values.join("; "))
        };
        Some(Aimed {
            kind: self.kind.clone(),
            planted: Text {
                text,
                lines: self.lines,
            },
            calls,
        })
    }
}

impl Aimed {
    /// The order that the text names by its number.
    pub(crate) fn order(&self) -> Value {
        let calls = self.calls.iter();
        calls
            .map(|(tool, with)| json!({"tool": tool, "arguments": with}))
            .collect()
    }
}

impl Change {
    /// The call with the change; `None` where it changes nothing.
    fn of(&self, office: &Office, tool: &str, with: &Value) -> Option<Value> {
        let mut changed = with.clone();
        if let Some(to) = &self.to {
            change_first(&mut changed, PLACES, &|old| self.replaced(to, old));
        }
        if let Some(thing) = &self.thing {
            change_first(&mut changed, THINGS, &|old| self.replaced(thing, old));
        }
        if let Some(more) = &self.more {
            add_to_list(&mut changed, more);
        }
        if let Some(text) = &self.text {
            change_first(&mut changed, TEXTS, &|old| {
                Some(format!("{old}{text}").into())
            });
        }
        if let Some(times) = self.times {
            let amount = changed["amount"].as_f64()?;
            changed["amount"] = json!(amount * times);
        }
        for (name, value) in self
            .adds
            .iter()
            .filter(|(name, _)| office.takes(tool, name))
        {
            changed[name] = value.clone();
        }
        (changed != *with || (self.again && !office.reads(tool))).then_some(changed)
    }

    fn replaced(&self, by: &str, old: &str) -> Option<Value> {
        if !old.contains(&self.only) {
            return None;
        }
        let lookalike = old
            .replacen(['a', 'A'], "а", 1)
            .replacen(['e', 'E'], "е", 1);
        let mut middle = old.len() / 2;
        while !old.is_char_boundary(middle) {
            middle += 1;
        }
        let (start, end) = old.split_at(middle);
        let text = by
            .replace("{value}", old)
            .replace("{lookalike}", &lookalike);
        let text = text.replace("{unseen}", &format!("{start}\u{200b}{end}"));
        // A number stays one.
        Some(match (old.parse::<u64>(), text.parse::<u64>()) {
            (Ok(_), Ok(number)) => number.into(),
            _ => text.into(),
        })
    }
}

/// Changes the first value of an argument with one of these names, in objects and lists, too.
fn change_first(with: &mut Value, names: &[&str], change: &dyn Fn(&str) -> Option<Value>) -> bool {
    let Value::Object(object) = with else {
        return false;
    };
    for (name, value) in object {
        let is_one = names.contains(&name.as_str());
        let mut inner: Vec<&mut Value> = match value {
            Value::Array(values) => values.iter_mut().collect(),
            value => vec![value],
        };
        for one in &mut inner {
            let old = match &**one {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            };
            let new = old.filter(|_| is_one).and_then(|old| change(&old));
            if let Some(new) = new {
                **one = new;
                return true;
            }
            if change_first(one, names, change) {
                return true;
            }
        }
    }
    false
}

/// Adds one more to the first list of places.
fn add_to_list(with: &mut Value, more: &str) {
    for (_, value) in with.as_object_mut().into_iter().flatten() {
        if let Value::Array(values) = value
            && let Some(first) = values.first().cloned()
        {
            match first {
                Value::String(text) if text.contains('@') => values.push(more.into()),
                Value::Object(first) if first.contains_key("email") => {
                    values.push(json!({"email": more}));
                }
                _ => continue,
            }
            return;
        }
    }
}

/// The values of arguments, as a text has them.
fn values(with: &Value) -> String {
    match with {
        Value::Object(object) => {
            let values = object
                .iter()
                .map(|(name, value)| format!("{name}: {}", values(value)));
            values.collect::<Vec<_>>().join(", ")
        }
        Value::Array(all) => all.iter().map(values).collect::<Vec<_>>().join(", "),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
