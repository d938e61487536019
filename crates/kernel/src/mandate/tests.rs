//! Mandates over the entries of a run: which calls are the mandate's, and which values count.

use gyrus_contract::{ActionVerdict, Risk, RunId, Verdict};
use gyrus_journal::Store;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{Inline, MandateSet, ToolCalled, log_name};

/// A tool: its name, its action, and its arguments with their roles.
type Described = (
    &'static str,
    ToolAction,
    &'static [(&'static str, ArgumentRole)],
);

const TOOLS: [Described; 6] = [
    (
        "search",
        ToolAction::Reads,
        &[("words", ArgumentRole::Option)],
    ),
    ("file", ToolAction::Reads, &[("name", ArgumentRole::Name)]),
    (
        "mail",
        ToolAction::Sends,
        &[("to", ArgumentRole::To), ("body", ArgumentRole::Text)],
    ),
    (
        "draft",
        ToolAction::Creates,
        &[("title", ArgumentRole::Text)],
    ),
    (
        "share",
        ToolAction::Changes,
        &[("thing", ArgumentRole::Name), ("with", ArgumentRole::To)],
    ),
    (
        "pay",
        ToolAction::Pays,
        &[("to", ArgumentRole::To), ("amount", ArgumentRole::Amount)],
    ),
];

/// A run with a mandate.
struct Office {
    provenance: Provenance,
    log: Log,
    goal: String,
    effects: u32,
    _folder: TempDir,
}

fn meaning(tool: &str) -> ToolMeaning {
    let (_, action, roles) = TOOLS.iter().find(|(name, ..)| *name == tool).unwrap();
    let roles = roles.iter().map(|(name, role)| ((*name).to_owned(), *role));
    ToolMeaning {
        action: *action,
        arguments: roles.collect(),
    }
}

impl Office {
    /// Begins a run of a goal, with these calls as its mandate: as in the journal, but for `times`,
    /// which is once if it is left out.
    fn new(goal: &str, calls: Value) -> Self {
        let folder = TempDir::new().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let log = Log::new(store.prepare(&log_name(RunId::new())).unwrap());
        let mut office = Self {
            provenance: Provenance::default(),
            log,
            goal: goal.to_owned(),
            effects: 0,
            _folder: folder,
        };
        let meanings = TOOLS.map(|(name, ..)| (name.to_owned(), meaning(name)));
        office.provenance.begin(meanings.into());
        office.set(calls, false);
        office
    }

    fn set(&mut self, mut calls: Value, extends: bool) {
        for call in calls.as_array_mut().unwrap() {
            if call["times"].is_null() {
                call["times"] = json!({"at_most": 1});
            }
        }
        let effect = self.effect();
        self.take(MandateSet {
            effect,
            text: String::new(),
            mandate: Mandate {
                calls: serde_json::from_value(calls).unwrap(),
            },
            extends,
        });
    }

    fn effect(&mut self) -> EffectId {
        self.effects += 1;
        format!("1.{}", self.effects).parse().unwrap()
    }

    fn take(&mut self, entry: impl Into<Entry>) {
        self.provenance.take(entry.into(), &self.log).unwrap();
    }

    /// Makes a call, and returns the id of the mandate's call that it is. Every call is allowed, by
    /// the mandate or by a person, and returns `returned`: a text, or structured content.
    fn call(&mut self, tool: &str, arguments: Value, returned: Value) -> Option<String> {
        self.settle(tool, arguments, returned, Settled::Done)
    }

    fn settle(
        &mut self,
        tool: &str,
        arguments: Value,
        returned: Value,
        settled: Settled,
    ) -> Option<String> {
        let effect = self.effect();
        let mandated = self.judge(tool, &arguments, &effect);
        let call = ToolCall::new(tool, arguments);
        self.take(ToolCalled {
            effect: effect.clone(),
            call: call.clone(),
        });
        self.take(GateVerdict {
            effect: effect.clone(),
            arguments: None,
            paths: BTreeMap::new(),
            aim: None,
            containment: None,
            digest: None,
            mandated: mandated.clone(),
            verdict: Verdict {
                risk: Risk::High,
                decision: Decision::Allow,
                reasons: Vec::new(),
                wider: Vec::new(),
                if_doubted: None,
                ungranted: None,
            },
        });
        let (text, value) = match returned {
            Value::String(text) => (text, None),
            value => (value.to_string(), Some(Inline::Is(value))),
        };
        let none = String::new();
        let not_done = ToolResulted::not_done(effect, settled, ActionVerdict::CannotTell, none);
        self.take(ToolResulted {
            text: Inline::Is(text),
            value,
            is_error: false,
            ..not_done
        });
        mandated
    }

    fn judge(&mut self, tool: &str, arguments: &Value, effect: &EffectId) -> Option<String> {
        let meaning = meaning(tool);
        let schema = json!({"properties": arguments});
        let mut values = meaning.values(arguments, &schema);
        let written = values
            .iter()
            .filter(|value| value.role == Some(ArgumentRole::Text));
        let links: Vec<_> = written.flat_map(links).collect();
        values.extend(links);
        let meant = MeantCall {
            name: tool.to_owned(),
            action: Some(meaning.action),
            values,
        };
        let planned = Planned {
            arguments,
            meant: &meant,
            trusted: &[&self.goal],
        };
        let mandated = self.provenance.mandated(planned, Some(effect), &self.log);
        mandated.unwrap()
    }

    /// Whether the mandate allows a call.
    fn allows(&mut self, tool: &str, arguments: Value) -> bool {
        self.call(tool, arguments, json!("done")).is_some()
    }
}

/// The links in a text, as the gate finds them.
fn links(written: &ArgumentValue) -> Vec<ArgumentValue> {
    let words = written.text.split(' ');
    let links = words.filter(|word| word.starts_with("http://"));
    let link = |link: &str| ArgumentValue {
        text: link.to_owned(),
        role: Some(ArgumentRole::Page),
        ..written.clone()
    };
    links.map(link).collect()
}

/// Returns a call as a yes to several of a turn adds it to the mandate.
fn exact(id: &str, tool: &str, arguments: &Value) -> Value {
    json!({"id": id, "tool": tool, "exact": Digest::of_json(arguments)})
}

#[test]
fn a_call_that_a_person_approved_is_that_call_once() {
    let mut office = Office::new("tell them", json!([]));
    let mail = json!({"to": ["anna@x.com"], "body": "one"});
    let twice = json!([exact("1.1-1", "mail", &mail), exact("1.1-2", "mail", &mail)]);
    office.set(twice, true);
    for other in [
        json!({"to": ["anna@x.com"], "body": "two"}),
        json!({"to": ["anna@x.com"]}),
        json!({"to": ["anna@x.com"], "body": "one", "cc": null}),
        json!({"to": "anna@x.com", "body": "one"}),
        json!({"to": ["Anna@x.com"], "body": "one"}),
    ] {
        assert!(!office.allows("mail", other.clone()), "{other}");
    }
    assert!(!office.allows("pay", mail.clone()));
    // They approved it twice, and one that never began is still left.
    let refused = office.settle("mail", mail.clone(), json!("no"), Settled::Refused);
    assert_eq!(refused.as_deref(), Some("1.1-1"));
    assert!(office.allows("mail", mail.clone()));
    assert!(office.allows("mail", mail.clone()));
    assert!(!office.allows("mail", mail.clone()));
    // The goal was added to, and the mandate stated anew.
    office.set(json!([]), false);
    assert!(!office.allows("mail", mail));
}

#[test]
fn a_call_that_a_person_approved_is_no_source_of_values() {
    let goal = "make a draft and share it with anna@x.com";
    let mut office = Office::new(
        goal,
        json!([
            {"id": "made", "tool": "draft"},
            {
                "id": "share", "tool": "share", "times": {"at_most": 9},
                "arguments": {"thing": ["{made.id}"], "with": ["anna@x.com"]},
            },
            {"id": "mail", "tool": "mail", "times": {"at_most": 9}, "arguments": {"to": ["anna@x.com"]}},
        ]),
    );
    let draft = |title: &str| json!({"title": title});
    let share = |thing: &str| json!({"thing": thing, "with": "anna@x.com"});
    let mail = |link: &str| json!({"to": "anna@x.com", "body": format!("see {link}")});
    let returned = |number: u32| json!({"id": format!("d-{number}"), "link": format!("http://x.com/{number}")});
    let first = office.call("draft", draft("a"), returned(1));
    assert_eq!(first.as_deref(), Some("made"));
    office.set(json!([exact("1.3-1", "draft", &draft("salaries"))]), true);
    let approved = office.call("draft", draft("salaries"), returned(2));
    assert_eq!(approved.as_deref(), Some("1.3-1"));
    assert!(office.allows("share", share("d-1")));
    assert!(!office.allows("share", share("d-2")));
    assert!(office.allows("mail", mail("http://x.com/1")));
    assert!(!office.allows("mail", mail("http://x.com/2")));
}
