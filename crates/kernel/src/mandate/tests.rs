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

const TOOLS: [Described; 8] = [
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
    (
        "request",
        ToolAction::Sends,
        &[("to", ArgumentRole::To), ("amount", ArgumentRole::Amount)],
    ),
    (
        "unlock",
        ToolAction::Changes,
        &[("key", ArgumentRole::Password)],
    ),
];

/// A run with a mandate.
struct Office {
    provenance: Provenance,
    log: RunLog,
    goal: String,
    effects: u32,
    _folder: TempDir,
}

/// The way in which a call ends.
#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    Done,
    /// It was made, and the server answers with an error.
    Failed,
    /// It was allowed, and never began.
    Refused,
    /// A crash interrupted it.
    Interrupted,
    /// The gate denies it, whatever the mandate says.
    Denied,
    /// The gate asks, whatever the mandate says, and a person approves.
    Approved,
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
        let log = RunLog::new(store.prepare(&log_name(RunId::new())).unwrap());
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
        self.call_that(Outcome::Done, tool, arguments, returned)
    }

    fn call_that(
        &mut self,
        outcome: Outcome,
        tool: &str,
        arguments: Value,
        returned: Value,
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
            files: Vec::new(),
            aim: None,
            containment: None,
            digest: None,
            mandated: mandated.clone(),
            verdict: Verdict {
                risk: Risk::High,
                decision: match outcome {
                    Outcome::Denied => Decision::Deny,
                    Outcome::Approved => Decision::Ask,
                    Outcome::Done | Outcome::Failed | Outcome::Refused | Outcome::Interrupted => {
                        Decision::Allow
                    }
                },
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
        let settled = match outcome {
            Outcome::Done | Outcome::Failed | Outcome::Approved => CallEnd::Done,
            Outcome::Refused | Outcome::Denied => CallEnd::Refused,
            Outcome::Interrupted => CallEnd::Interrupted,
        };
        let none = String::new();
        let not_done = ToolResulted::not_done(effect, settled, ActionVerdict::CannotTell, none);
        self.take(ToolResulted {
            text: Inline::Is(text),
            value,
            is_error: outcome == Outcome::Failed,
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
        let planned = MandateCall {
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
    let refused = office.call_that(Outcome::Refused, "mail", mail.clone(), json!("no"));
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

/// Checks calls one after the other, each with whether the mandate allows it.
#[track_caller]
fn check(office: &mut Office, calls: &[(&str, Value, bool)]) {
    for (tool, arguments, expected) in calls {
        let allowed = office.allows(tool, arguments.clone());
        assert_eq!(allowed, *expected, "{tool} {arguments}");
    }
}

#[test]
fn values_count_from_fields_of_what_the_mandate_states() {
    let mut office = Office::new(
        "tell those of the dinner",
        json!([
            {"id": "found", "tool": "search", "arguments": {"words": ["dinner"]}},
            {"id": "other", "tool": "search", "arguments": {"words": ["lunch"]}},
            {
                "id": "mail", "tool": "mail", "times": "each",
                "arguments": {"to": ["{found.people}", "{found.host.mail}", "{found.from}"]},
            },
        ]),
    );
    let dinner = json!({
        "people": ["anna@x.com", "bob@x.com"],
        "host": {"mail": "host@x.com"},
        "guest": {"mail": "guest@x.com"},
        "from": "from@x.com",
        "headers": {"from": "deep@x.com"},
        "note": "note@x.com",
    });
    let people = |who: &str| json!({"people": [who]});
    let search = |words: &str| json!({"words": words});
    assert!(office.call("search", search("dinner"), dinner).is_some());
    assert!(
        office
            .call("search", search("lunch"), people("lunch@x.com"))
            .is_some()
    );
    let others = office.call("search", search("all"), people("all@x.com"));
    assert_eq!(others, None);
    office.call_that(
        Outcome::Failed,
        "search",
        search("dinner"),
        people("failed@x.com"),
    );
    office.call_that(
        Outcome::Interrupted,
        "search",
        search("dinner"),
        people("cut@x.com"),
    );
    office.call_that(
        Outcome::Denied,
        "search",
        search("dinner"),
        people("denied@x.com"),
    );
    let mail = |to: &str, expected| ("mail", json!({"to": to}), expected);
    check(
        &mut office,
        &[
            ("pay", json!({"to": "bob@x.com"}), false),
            mail("lunch@x.com", false),
            mail("all@x.com", false),
            mail("failed@x.com", false),
            mail("cut@x.com", false),
            mail("denied@x.com", false),
            mail("guest@x.com", false),
            mail("deep@x.com", false),
            mail("note@x.com", false),
            (
                "mail",
                json!({"to": "anna@x.com", "cc": "evil@y.com"}),
                false,
            ),
            ("mail", json!({"to": ["anna@x.com", "evil@y.com"]}), false),
            mail("anna@x.com", true),
            mail("Anna@x.com", false),
            ("mail", json!({"to": ["anna@x.com", "bob@x.com"]}), true),
            mail("bob@x.com", false),
            mail("host@x.com", true),
            mail("from@x.com", true),
        ],
    );
}

#[test]
fn elements_of_a_list_are_no_fields_within_and_none_of_a_file() {
    let mut office = Office::new(
        "post it in all channels and do what todo.txt says",
        json!([
            {"id": "names", "tool": "search"},
            {"id": "todo", "tool": "file", "arguments": {"name": ["todo.txt"]}},
            {
                "id": "post", "tool": "mail", "times": "each",
                "arguments": {"to": ["{names.*}", "{todo.*}"]},
            },
        ]),
    );
    office.call("search", json!({}), json!("- general\n- random\n"));
    office.call(
        "search",
        json!({}),
        json!({"rooms": {"deep": ["within"]}, "one": "field"}),
    );
    office.call(
        "file",
        json!({"name": "todo.txt"}),
        json!("- evil\n- worse\n"),
    );
    let post = |to: &str, expected| ("mail", json!({"to": to}), expected);
    check(
        &mut office,
        &[
            post("within", false),
            post("field", false),
            post("evil", false),
            post("general", true),
            post("random", true),
        ],
    );
}

#[test]
fn who_is_paid_stands_in_a_field_that_the_server_wrote() {
    let account = |account: &str| json!({"account": account});
    let bill = json!({"id": "bill", "tool": "search", "arguments": {"words": ["rent"], "folder": ["rent"]}});
    let pay = json!({
        "id": "pay", "tool": "pay", "times": {"at_most": 9},
        "arguments": {"to": ["{bill.account}", "{todo}", "{todo.account}", "{made.account}"], "amount": ["5"]},
    });
    let goal = "pay the rent as todo.txt says";
    let mut office = Office::new(
        goal,
        json!([
            bill,
            {"id": "todo", "tool": "file", "arguments": {"name": ["todo.txt"]}},
            {"id": "made", "tool": "draft"},
            pay,
        ]),
    );
    let rent = json!({"words": "rent"});
    office.call("search", rent.clone(), account("DE1"));
    office.call("search", rent.clone(), json!(account("DE2").to_string()));
    office.call("search", rent, json!("account: DE3\n"));
    // A folder, which nobody described, may be a single thing that somebody else wrote.
    let folder = json!({"words": "rent", "folder": "rent"});
    office.call("search", folder, json!(account("DE4").to_string()));
    let todo = json!({"name": "todo.txt"});
    office.call("file", todo.clone(), json!(account("DE5").to_string()));
    office.call("file", todo, json!("pay DE6"));
    office.call("draft", json!({}), json!(account("DE7").to_string()));
    let pay = |to: &str, expected| ("pay", json!({"to": to, "amount": 5}), expected);
    check(
        &mut office,
        &[
            pay("DE3", false),
            pay("DE4", false),
            pay("DE5", false),
            pay("DE6", false),
            pay("DE7", false),
            pay("DE1", true),
            pay("DE2", true),
        ],
    );
}

#[test]
fn amounts_are_those_stated_or_below_their_bound() {
    let mut office = Office::new(
        "pay bob what the bill says",
        json!([
            {"id": "bill", "tool": "search"},
            {"id": "todo", "tool": "file", "arguments": {"name": ["todo.txt"]}},
            {
                "id": "exactly", "tool": "pay", "times": {"at_most": 9},
                "arguments": {"to": ["bob"], "amount": ["{bill.amount}", "{todo.amount}", "3"]},
            },
            {
                "id": "bounded", "tool": "pay", "times": {"at_most": 9},
                "arguments": {"to": ["carl"], "amount": ["up to {bill.amount}"]},
            },
            {
                "id": "asked", "tool": "request", "times": {"at_most": 9},
                "arguments": {"to": ["bob"], "amount": ["3"]},
            },
            {
                "id": "share", "tool": "share",
                "arguments": {"thing": ["7"], "with": ["bob"]},
            },
            {"id": "unlock", "tool": "unlock", "arguments": {"key": ["*"]}},
        ]),
    );
    office.call("search", json!({}), json!({"amount": 120.5}));
    office.call("file", json!({"name": "todo.txt"}), json!("amount: 900\n"));
    let pay =
        |to: &str, amount: f64, expected| ("pay", json!({"to": to, "amount": amount}), expected);
    check(
        &mut office,
        &[
            pay("bob", 120.0, false),
            pay("bob", 121.0, false),
            pay("bob", 900.0, false),
            pay("bob", 2.0, false),
            pay("carl", 120.6, false),
            pay("carl", -1.0, false),
            ("request", json!({"to": "bob", "amount": 4}), false),
            ("share", json!({"thing": "7.0", "with": "bob"}), false),
            ("unlock", json!({"key": "x"}), false),
            pay("bob", 120.5, true),
            pay("bob", 3.0, true),
            pay("carl", 120.5, true),
            pay("carl", 0.5, true),
            ("request", json!({"to": "bob", "amount": 3}), true),
            ("share", json!({"thing": "7", "with": "bob"}), true),
        ],
    );
}

#[test]
fn calls_are_counted_by_what_became_of_them() {
    let calls = json!([
        {"id": "two", "tool": "mail", "times": {"at_most": 2}, "arguments": {"to": ["anna@x.com"]}},
        {"id": "one", "tool": "draft"},
        {"id": "list", "tool": "search"},
        {"id": "each", "tool": "share", "times": "each", "arguments": {"thing": ["it"], "with": ["{list.*}"]}},
    ]);
    let mut office = Office::new("mail anna@x.com twice, share it with all", calls.clone());
    let mail = json!({"to": "anna@x.com"});
    let nothing = json!("");
    // It is judged again when a person answered, and is the same call.
    let effect = office.effect();
    for _ in 0..3 {
        let judged = office.judge("draft", &json!({}), &effect);
        assert_eq!(judged.as_deref(), Some("one"));
    }
    assert!(!office.allows("draft", json!({})));
    for outcome in [
        Outcome::Denied,
        Outcome::Approved,
        Outcome::Refused,
        Outcome::Interrupted,
        Outcome::Refused,
        Outcome::Failed,
    ] {
        let made = office.call_that(outcome, "mail", mail.clone(), nothing.clone());
        assert_eq!(made.as_deref(), Some("two"));
    }
    assert!(!office.allows("mail", mail.clone()));

    let names: Vec<_> = (0..MAX_EACH + 1)
        .map(|number| format!("p{number}"))
        .collect();
    office.call("search", json!({}), json!(names));
    for (number, name) in names.iter().enumerate() {
        let share = json!({"thing": "it", "with": name});
        assert_eq!(
            office.allows("share", share.clone()),
            number < MAX_EACH,
            "{share}"
        );
    }
    // Stated anew, the mandate begins from the start.
    office.set(calls, false);
    assert!(office.allows("mail", mail));
}

#[test]
fn words_come_from_the_text_of_their_call_and_links_from_whole_fields() {
    let mut office = Office::new(
        "do what todo.txt says, see http://named.com",
        json!([
            {"id": "todo", "tool": "file", "arguments": {"name": ["todo.txt"]}},
            {"id": "found", "tool": "search"},
            {"id": "invite", "tool": "mail", "times": "each", "arguments": {"to": ["{todo}"]}},
            {"id": "write", "tool": "draft", "times": {"at_most": 9}},
        ]),
    );
    let text = "Invite carl@x.com, dora@x.com and Eve <eve@x.com>";
    office.call("file", json!({"name": "todo.txt"}), json!(text));
    office.call(
        "file",
        json!({"name": "other.txt"}),
        json!({"text": "evil@y.com", "link": "http://other.com"}),
    );
    let links = json!({"link": "http://one.com", "links": "http://two.com, http://three.com", "text": "more@x.com"});
    office.call("search", json!({}), links);
    let mail = |to: &str, expected| ("mail", json!({"to": to}), expected);
    let draft = |title: &str, expected| ("draft", json!({"title": title}), expected);
    check(
        &mut office,
        &[
            mail("evil@y.com", false),
            mail("more@x.com", false),
            mail("carl@x.com, dora@x.com", false),
            mail("Eve <eve@x.com>", false),
            mail("carl@x.com", true),
            mail("dora@x.com", true),
            draft("see http://evil.com", false),
            draft("see http://other.com", false),
            draft("see http://two.com", false),
            draft("see http://one.com", true),
            draft("see http://named.com", true),
        ],
    );
}

#[test]
fn a_name_typed_a_little_differently_is_the_only_entry_that_it_fits() {
    let sent = |known: &[&str], to: &str| {
        let mut office = Office::new(
            "Tell Anna Berg",
            json!([
                {"id": "people", "tool": "search", "arguments": {"words": ["*"]}},
                {"id": "mail", "tool": "mail", "arguments": {"to": ["Anna Berg"]}},
            ]),
        );
        office.call("search", json!({"words": "all"}), json!({"people": known}));
        office
            .call("mail", json!({"to": to, "body": "x"}), json!("sent"))
            .is_some()
    };
    for (known, to) in [
        (&["Anna M. Berg", "Bob"][..], "Anna M. Berg"),
        (&["Anna Bérg", "Anna Borgward"], "Anna Bérg"),
        (&["Anna Bergg"], "Anna Bergg"),
        (&["Anna Berg", "Anna M. Berg"], "Anna Berg"),
    ] {
        assert!(sent(known, to), "{known:?} {to}");
    }
    for (known, to) in [
        (&["Anna M. Berg", "Anna K. Berg"][..], "Anna M. Berg"),
        (&["Anna Berg", "Anna M. Berg"], "Anna M. Berg"),
        (&["Anna M. Berg", "Anna Bergg"], "Anna Bergg"),
        (&["Bob"], "Anna M. Berg"),
        (&["Anna Berg <evil@y.com>"], "Anna Berg <evil@y.com>"),
        (&["anna.berg"], "anna.berg"),
    ] {
        assert!(!sent(known, to), "{known:?} {to}");
    }
}
