//! Reading a mandate that a model states, and checking that it follows from what the person typed.

use std::collections::{BTreeMap, BTreeSet};

use gyrus_contract::{ArgumentRole, ToolAction, ToolMeaning, ToolSpec};
use gyrus_text::{is_named, is_number_named, shorten};
use serde::Deserialize;
use serde_json::{Value, json};

use super::pattern::{ANY, HolePattern, UP_TO, is_id};
use crate::{Mandate, MandatedCall, Times};

/// Maximum number of calls of a mandate.
const MAX_CALLS: usize = 60;

/// Maximum number of times that one call may be made.
const MAX_TIMES: u32 = 50;

/// Maximum number of values of one argument.
const MAX_VALUES: usize = 50;

/// Characters of a value in a message.
const SHOWN: usize = 80;

/// The tools that a mandate can cover, by name, with their meanings.
pub(crate) type MeantTools = BTreeMap<String, (ToolSpec, ToolMeaning)>;

/// A mandate as a model states it.
#[derive(Deserialize)]
#[serde(expecting = "an object with `calls`")]
struct StatedMandate {
    calls: Vec<StatedCall>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatedCall {
    id: String,
    tool: String,
    times: Option<Value>,
    #[serde(default)]
    arguments: BTreeMap<String, Value>,
}

pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "calls": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string"},
                        "tool": {"type": "string"},
                        "times": {"type": ["integer", "string"]},
                        "arguments": {"type": "object"},
                    },
                    "required": ["id", "tool"],
                },
            },
        },
        "required": ["calls"],
    })
}

/// A mandate with invalid parts.
#[derive(Debug, Default)]
pub(crate) struct BrokenMandate {
    /// Each mistake, for the model.
    pub(crate) wrong: Vec<String>,
    /// The valid calls that do not depend on invalid ones.
    pub(crate) rest: Mandate,
}

impl BrokenMandate {
    fn whole(mistake: String) -> Self {
        Self {
            wrong: vec![mistake],
            rest: Mandate::default(),
        }
    }
}

/// Parses a reply as a mandate, and checks it.
pub(crate) fn read(
    reply: &str,
    tools: &MeantTools,
    trusted: &[&str],
) -> Result<Mandate, BrokenMandate> {
    let start = reply.find('{').unwrap_or(0);
    let end = reply.rfind('}').map_or(reply.len(), |at| at + 1);
    let text = reply.get(start..end).unwrap_or_default();
    let stated: StatedMandate = serde_json::from_str(text).map_err(|error| {
        BrokenMandate::whole(format!("it is not the JSON that was asked for: {error}"))
    })?;
    if stated.calls.len() > MAX_CALLS {
        return Err(BrokenMandate::whole(format!(
            "it has {} calls; state at most {MAX_CALLS}, and use `\"times\": \"each\"` for one \
             call that is made for each of several places",
            stated.calls.len()
        )));
    }
    let mut check = MandateCheck {
        tools,
        trusted,
        earlier: BTreeMap::new(),
        wrong: Vec::new(),
    };
    let calls: Vec<_> = stated
        .calls
        .into_iter()
        .filter_map(|call| check.call(call))
        .collect();
    if check.wrong.is_empty() {
        return Ok(Mandate { calls });
    }
    check.wrong.truncate(20);
    Err(BrokenMandate {
        wrong: check.wrong,
        rest: without_loose_holes(calls),
    })
}

/// Leaves out calls that need a missing one.
fn without_loose_holes(calls: Vec<MandatedCall>) -> Mandate {
    let mut ids: BTreeSet<String> = BTreeSet::new();
    let mut kept = Vec::new();
    for call in calls {
        let values = call.arguments.values().flatten();
        let mut patterns = values.filter_map(|value| HolePattern::read(value).ok());
        let is_bound = patterns.all(|pattern| pattern.holes().all(|hole| ids.contains(&hole.of)));
        if is_bound {
            ids.insert(call.id.clone());
            kept.push(call);
        }
    }
    Mandate { calls: kept }
}

/// Describes a mandate on one line, for a person.
pub(crate) fn describe(mandate: &Mandate) -> String {
    let calls: Vec<_> = mandate.calls.iter().map(describe_call).collect();
    if calls.is_empty() {
        "none".to_owned()
    } else {
        calls.join(" · ")
    }
}

pub(crate) fn describe_call(call: &MandatedCall) -> String {
    let arguments: Vec<_> = call
        .arguments
        .iter()
        .filter(|(_, values)| values.as_slice() != [ANY])
        .map(|(name, values)| format!("{name}: {}", values.join(" or ")))
        .collect();
    let times = match call.times {
        Times::AtMost(1) => String::new(),
        Times::AtMost(times) => format!(" up to {times} times"),
        Times::Each => " for each".to_owned(),
    };
    format!(
        "{} = {}({}){times}",
        call.id,
        call.tool,
        arguments.join(", ")
    )
}

struct MandateCheck<'a> {
    tools: &'a MeantTools,
    trusted: &'a [&'a str],
    /// The calls so far.
    earlier: BTreeMap<String, Results>,
    wrong: Vec<String>,
}

/// The results of a call, as holes can take values from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Results {
    /// The person named the thing or page that the call is about.
    Named,
    /// The person did not name the thing or page.
    Unnamed,
    /// The results are not data, but the page that follows a sent form.
    NotData,
}

impl MandateCheck<'_> {
    fn call(&mut self, stated: StatedCall) -> Option<MandatedCall> {
        let id = stated.id;
        let shown = shorten(&id, SHOWN);
        if !is_id(&id) || self.earlier.contains_key(&id) {
            self.wrong.push(format!(
                "`{shown}` cannot be the id of a call, or is that of another"
            ));
            return None;
        }
        let Some((spec, meaning)) = self.tools.get(&stated.tool) else {
            let tool = shorten(&stated.tool, SHOWN);
            self.wrong.push(format!(
                "call `{id}`: there is no tool `{tool}` in the list"
            ));
            return None;
        };
        if meaning.action == ToolAction::Deletes {
            self.wrong.push(format!(
                "call `{id}`: the person is always asked about `{}`; leave it out",
                spec.name
            ));
            return None;
        }
        let before = self.wrong.len();
        let times = self.times(&id, stated.times.as_ref());
        let mut arguments = BTreeMap::new();
        let mut named = false;
        let returns_data = spec.is_served();
        for (path, value) in stated.arguments {
            let role = meaning.role_at(&path.split('.').collect::<Vec<_>>());
            let first = path.split('.').next().unwrap_or_default();
            if spec.parameters["properties"].get(first).is_none() {
                let path = shorten(&path, SHOWN);
                self.wrong.push(format!(
                    "call `{id}`: `{}` has no argument `{path}`",
                    spec.name
                ));
                continue;
            }
            let values = self.values(&id, &path, value);
            for value in &values {
                // Words of a search name no text that somebody could be sent to.
                let names = matches!(
                    role,
                    Some(ArgumentRole::Name | ArgumentRole::To | ArgumentRole::Page)
                );
                named |= names && is_named(value, self.trusted);
                self.value(&id, (&path, role), value, meaning.action);
            }
            arguments.insert(path, values);
        }
        let results = match (returns_data, named) {
            (false, _) => Results::NotData,
            (true, true) => Results::Named,
            (true, false) => Results::Unnamed,
        };
        self.earlier.insert(id.clone(), results);
        (self.wrong.len() == before).then_some(MandatedCall {
            id,
            tool: stated.tool,
            times: times?,
            arguments,
            exact: None,
        })
    }

    fn times(&mut self, id: &str, stated: Option<&Value>) -> Option<Times> {
        let times = match stated {
            None | Some(Value::Null) => Some(Times::AtMost(1)),
            Some(Value::String(word)) if word == "each" => Some(Times::Each),
            Some(value) => {
                let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
                let number = number.filter(|number| (1..=MAX_TIMES).contains(number));
                number.map(Times::AtMost)
            }
        };
        if times.is_none() {
            self.wrong.push(format!(
                "call `{id}`: `times` is a number from 1 to {MAX_TIMES}, or \"each\""
            ));
        }
        times
    }

    fn values(&mut self, id: &str, path: &str, stated: Value) -> Vec<String> {
        let all = match stated {
            Value::Array(values) => values,
            value => vec![value],
        };
        let mut values = Vec::new();
        for value in all.into_iter().take(MAX_VALUES) {
            match value {
                Value::Null => {}
                Value::String(text) => values.push(text),
                Value::Bool(_) | Value::Number(_) => values.push(value.to_string()),
                Value::Array(_) | Value::Object(_) => self.wrong.push(format!(
                    "call `{id}`, `{path}`: write texts or a list of texts; an argument in an object \
                     is `outer.inner`"
                )),
            }
        }
        values
    }

    /// Checks one value that an argument may have.
    fn value(
        &mut self,
        id: &str,
        (path, role): (&str, Option<ArgumentRole>),
        value: &str,
        action: ToolAction,
    ) {
        let shown = shorten(value, SHOWN);
        let at = format!("call `{id}`, `{path}`");
        let reads = action == ToolAction::Reads;
        let is_place = matches!(role, None | Some(ArgumentRole::To | ArgumentRole::Page));
        let is_fixed = match role {
            Some(ArgumentRole::Name) => !reads,
            Some(ArgumentRole::Amount) => matches!(action, ToolAction::Pays | ToolAction::Sends),
            _ => is_place,
        };
        if role == Some(ArgumentRole::Password) {
            self.wrong
                .push(format!("{at}: the person is always asked about passwords"));
            return;
        }
        if value == ANY {
            if is_fixed || role == Some(ArgumentRole::Name) {
                self.wrong.push(format!(
                    "{at}: `*` cannot stand for a place or a thing; say which"
                ));
            }
            return;
        }
        let bound = value.strip_prefix(UP_TO);
        let bound = bound.filter(|_| role == Some(ArgumentRole::Amount));
        let pattern = match HolePattern::read(bound.unwrap_or(value)) {
            Ok(pattern) => pattern,
            Err(why) => {
                self.wrong.push(format!("{at}: {why}"));
                return;
            }
        };
        for hole in pattern.holes() {
            match self.earlier.get(&hole.of) {
                None => self.wrong.push(format!("{at}: there is no call `{}` before this one", hole.of)),
                Some(Results::NotData) => self.wrong.push(format!(
                    "{at}: `{}` sends a form, and values cannot come from what a page shows then",
                    hole.of
                )),
                Some(_) if hole.field.is_some() => {}
                Some(_) if action == ToolAction::Pays && is_place => self.wrong.push(format!(
                    "{at}: who is paid can come from a field, never from running text"
                )),
                Some(Results::Named) => {}
                Some(Results::Unnamed) => self.wrong.push(format!(
                    "{at}: the person did not send you to the text that `{}` returns; name a field, \
                     as in `{{{}.field}}`",
                    hole.of, hole.of
                )),
            }
        }
        let Some(constant) = pattern.constant().filter(|_| is_fixed) else {
            return;
        };
        let is_number = matches!(role, Some(ArgumentRole::Name | ArgumentRole::Amount));
        let stands = is_named(constant, self.trusted)
            || (is_number && is_number_named(constant, self.trusted));
        if !stands {
            self.wrong.push(format!(
                "{at}: `{shown}` does not stand in what the person typed"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use gyrus_contract::{Digest, Reach, Repeat, Service, Touch};

    use super::*;

    const GOAL: &str = "Do what todo.txt says, see http://wiki.com, mail anna@x.com, move the \
                        dinner to room 2, pay 120.50 to DE1, and order 2 mugs for 24.";

    /// A tool; one with an address is a form.
    fn tool(
        name: &str,
        action: ToolAction,
        roles: &[(&str, Option<ArgumentRole>)],
    ) -> (String, (ToolSpec, ToolMeaning)) {
        let names = roles
            .iter()
            .map(|(name, _)| ((*name).to_owned(), json!({})));
        let service = Service {
            server: "srv".to_owned(),
            tool: name.to_owned(),
            reach: Reach::Elsewhere,
            destructive: false,
            definition: Digest::of(b""),
            setup: None,
            returns: Vec::new(),
        };
        let is_form = name.contains("http://");
        let spec = ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({"properties": names.collect::<serde_json::Map<_, _>>()}),
            touches: if is_form {
                Vec::new()
            } else {
                vec![Touch::Serves(service)]
            },
            repeat: Repeat::Never,
        };
        let roles = roles
            .iter()
            .filter_map(|(name, role)| Some(((*name).to_owned(), (*role)?)));
        let meaning = ToolMeaning {
            action,
            arguments: roles.collect(),
        };
        (name.to_owned(), (spec, meaning))
    }

    fn tools() -> MeantTools {
        use ArgumentRole::{Amount, Name, Option as Setting, Page, Password, Text, To};
        MeantTools::from([
            tool(
                "search",
                ToolAction::Reads,
                &[("words", Some(Setting)), ("page", Some(Page))],
            ),
            tool("file", ToolAction::Reads, &[("name", Some(Name))]),
            tool(
                "mail",
                ToolAction::Sends,
                &[
                    ("to", Some(To)),
                    ("cc", None),
                    ("amount", Some(Amount)),
                    ("body", Some(Text)),
                    ("code", Some(Password)),
                ],
            ),
            tool(
                "move",
                ToolAction::Changes,
                &[("event", Some(Name)), ("price", Some(Amount))],
            ),
            tool(
                "pay",
                ToolAction::Pays,
                &[("to", Some(To)), ("amount", Some(Amount))],
            ),
            tool("delete", ToolAction::Deletes, &[("event", Some(Name))]),
            tool(
                "order on http://shop.com",
                ToolAction::Pays,
                &[("item", Some(Name)), ("total", Some(Amount))],
            ),
        ])
    }

    fn read_calls(calls: &Value) -> Result<Mandate, BrokenMandate> {
        read(&json!({ "calls": calls }).to_string(), &tools(), &[GOAL])
    }

    /// Checks that a mandate of these calls does not hold for this one reason; an empty one stands
    /// for none.
    #[track_caller]
    fn check(calls: &Value, expected: &str) {
        let wrong = read_calls(calls).map_or_else(|refused| refused.wrong, |_| Vec::new());
        match expected {
            "" => assert_eq!(wrong, [] as [String; 0], "{calls}"),
            _ => assert!(
                wrong.len() == 1 && wrong[0].contains(expected),
                "{calls}: {wrong:?}"
            ),
        }
    }

    #[test]
    fn each_value_is_checked_by_what_its_argument_stands_for() {
        let stands = "does not stand in what the person typed";
        let any = "`*` cannot stand for a place or a thing";
        for (tool, arguments, expected) in [
            ("mail", json!({"to": "Anna@x.com", "body": "*"}), ""),
            ("mail", json!({"to": ["anna@x.com", "evil@y.com"]}), stands),
            (
                "mail",
                json!({"to": "anna@x.com", "cc": "evil@y.com"}),
                stands,
            ),
            ("mail", json!({"to": "*"}), any),
            ("mail", json!({"to": "anna@x.com", "cc": "*"}), any),
            ("mail", json!({"to": "up to anna@x.com"}), stands),
            ("mail", json!({"to": "2"}), stands),
            ("mail", json!({"to": "anna@x.com", "amount": 24}), ""),
            ("mail", json!({"to": "anna@x.com", "amount": 25}), stands),
            (
                "mail",
                json!({"to": "anna@x.com", "amount": "up to 24"}),
                "",
            ),
            (
                "mail",
                json!({"to": "anna@x.com", "code": "*"}),
                "always asked about passwords",
            ),
            (
                "mail",
                json!({"to": {"name": "anna@x.com"}}),
                "write texts or a list",
            ),
            (
                "mail",
                json!({"whom": "anna@x.com"}),
                "`mail` has no argument `whom`",
            ),
            ("search", json!({"words": "*"}), ""),
            ("search", json!({"page": "http://wiki.com"}), ""),
            ("search", json!({"page": "http://evil.com"}), stands),
            ("search", json!({"page": "*"}), any),
            ("file", json!({"name": "any.txt"}), ""),
            ("file", json!({"name": "*"}), any),
            ("move", json!({"event": "dinner", "price": 7}), ""),
            ("move", json!({"event": "2"}), ""),
            ("move", json!({"event": "lunch"}), stands),
            ("pay", json!({"to": "DE1", "amount": 120.5}), ""),
            ("pay", json!({"to": "DE1", "amount": 121}), stands),
            ("pay", json!({"to": "DE2", "amount": 120.5}), stands),
            (
                "order on http://shop.com",
                json!({"item": "2", "total": 24}),
                "",
            ),
            (
                "delete",
                json!({"event": "dinner"}),
                "the person is always asked about `delete`",
            ),
            ("other", json!({}), "there is no tool `other`"),
        ] {
            check(
                &json!([{"id": "a", "tool": tool, "arguments": arguments}]),
                expected,
            );
        }
    }

    #[test]
    fn holes_are_bound_to_calls_before_whose_results_can_fill_them() {
        let unsent = "the person did not send you to the text that";
        let file = |name: &str| json!({"id": "a", "tool": "file", "arguments": {"name": name}});
        let search = |with: Value| json!({"id": "a", "tool": "search", "arguments": with});
        let form = json!({
            "id": "a", "tool": "order on http://shop.com", "arguments": {"item": "mugs", "total": 24},
        });
        for (first, tool, to, expected) in [
            (file("todo.txt"), "mail", "{a}", ""),
            (file("todo.txt"), "mail", "{a.to}", ""),
            (file("other.txt"), "mail", "{a}", unsent),
            (file("other.txt"), "mail", "{a.to}", ""),
            // Words of a search name no text, and an address that is read does.
            (search(json!({"words": "dinner"})), "mail", "{a}", unsent),
            (
                search(json!({"page": "http://wiki.com"})),
                "mail",
                "{a}",
                "",
            ),
            (file("todo.txt"), "pay", "{a}", "never from running text"),
            (file("todo.txt"), "pay", "{a.account}", ""),
            (
                file("todo.txt"),
                "mail",
                "{b}",
                "there is no call `b` before this one",
            ),
            (
                file("todo.txt"),
                "mail",
                "{c.to}",
                "there is no call `c` before this one",
            ),
            (form.clone(), "mail", "{a}", "`a` sends a form"),
            (form, "mail", "{a.to}", "`a` sends a form"),
        ] {
            let second = json!({"id": "b", "tool": tool, "arguments": {"to": to}});
            check(&json!([first, second]), expected);
        }
    }

    #[test]
    fn ids_times_and_numbers_of_calls_are_bounded() {
        let mail = |id: &str, times: Value| json!({"id": id, "tool": "mail", "times": times});
        for (id, times, expected) in [
            ("a", json!(null), ""),
            ("a", json!("each"), ""),
            ("a", json!(50), ""),
            ("a", json!(51), "`times` is a number from 1 to 50"),
            ("a", json!(0), "`times` is a number from 1 to 50"),
            ("a", json!("often"), "`times` is a number from 1 to 50"),
            ("a b", json!(1), "cannot be the id of a call"),
            // As a person's yes to several calls is named.
            ("2.3-1", json!(1), "cannot be the id of a call"),
            ("", json!(1), "cannot be the id of a call"),
            (&"x".repeat(33), json!(1), "cannot be the id of a call"),
        ] {
            check(&json!([mail(id, times)]), expected);
        }
        check(
            &json!([mail("a", json!(1)), mail("a", json!(1))]),
            "or is that of another",
        );
        let many = |count: usize| -> Value {
            let calls = (0..count).map(|number| mail(&format!("c{number}"), json!(1)));
            calls.collect()
        };
        check(&many(MAX_CALLS), "");
        check(&many(MAX_CALLS + 1), "it has 61 calls");
    }

    #[test]
    fn of_calls_that_do_not_hold_none_that_needs_them_is_left() {
        let refused = read_calls(&json!([
            {"id": "evil", "tool": "mail", "arguments": {"to": "evil@y.com"}},
            {"id": "after", "tool": "mail", "arguments": {"to": "{evil.to}"}},
            {"id": "later", "tool": "mail", "arguments": {"to": "{after.to}"}},
            {"id": "good", "tool": "mail", "arguments": {"to": "anna@x.com"}},
        ]));
        let rest = refused.unwrap_err().rest;
        assert_eq!(describe(&rest), "good = mail(to: anna@x.com)");
    }
}
