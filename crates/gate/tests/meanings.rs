//! Calls of servers' tools whose meaning a person confirmed, in every mode, and under rules.

use gyrus_contract::{
    ArgumentRole, CallPlace, Decision, Digest, Gate, Grant, Judgement, Mode, Reach, Repeat, Risk,
    RunId, Service, ToolAction, ToolCall, ToolSpec, Touch, Verdict,
};
use gyrus_gate::{
    ConfirmedTool, Meanings, OwnPaths, PolicyGate, ServerMeanings,
    policy::{LineReader, Policy, PolicyOrigin},
    propose,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use ArgumentRole::{Amount, Name, Option as Setting, Page, Password, Text, To};
use Decision::{Allow, Ask, Deny};

/// The words of a goal that names Anna, a channel and a page.
const GOAL: &str = "Tell Anna (anna@x.com) about it, in #general too; see https://wiki.x.com/notes";

/// A tool of the server `office`.
fn tool(name: &str, parameters: &Value) -> ToolSpec {
    ToolSpec {
        name: format!("office__{name}"),
        description: String::new(),
        parameters: json!({"type": "object", "properties": parameters}),
        touches: vec![Touch::Serves(Service {
            server: "office".to_owned(),
            tool: name.to_owned(),
            reach: Reach::Elsewhere,
            destructive: false,
            definition: Digest::of(name.as_bytes()),
            setup: Some(Digest::of(b"setup")),
            returns: Vec::new(),
        })],
        repeat: Repeat::Never,
    }
}

/// A tool, what it does, and the roles of its arguments.
type Known = (ToolSpec, ToolAction, Vec<(&'static str, ArgumentRole)>);

/// The tools of an office with what they mean.
fn tools() -> Vec<Known> {
    vec![
        (
            tool(
                "send_mail",
                &json!({"to": {}, "cc": {}, "subject": {}, "body": {}, "secretly": {}}),
            ),
            ToolAction::Sends,
            vec![("to", To), ("cc", To), ("subject", Text), ("body", Text)],
        ),
        (
            tool(
                "add_event",
                &json!({"title": {}, "people": {"items": {"properties": {"mail": {}}}}}),
            ),
            ToolAction::Creates,
            vec![("title", Text), ("people.mail", To)],
        ),
        (
            tool("post", &json!({"text": {}})),
            ToolAction::Sends,
            vec![("text", Text)],
        ),
        (
            tool("move_file", &json!({"id": {}})),
            ToolAction::Changes,
            vec![("id", Name)],
        ),
        (
            tool("find", &json!({"query": {}})),
            ToolAction::Reads,
            vec![("query", Setting)],
        ),
        (
            tool("open", &json!({"url": {}})),
            ToolAction::Reads,
            vec![("url", Page)],
        ),
        (
            tool("translate", &json!({"text": {}, "with": {}})),
            ToolAction::Reads,
            vec![("text", Text), ("with", Page)],
        ),
        (
            tool("pay", &json!({"to": {}, "amount": {}})),
            ToolAction::Pays,
            vec![("to", To), ("amount", Amount)],
        ),
        (
            tool("delete", &json!({"id": {}})),
            ToolAction::Deletes,
            vec![("id", Name)],
        ),
        (
            tool("log_in", &json!({"password": {}})),
            ToolAction::Changes,
            vec![("password", Password)],
        ),
    ]
}

/// A gate that knows these meanings, under a policy.
struct Office {
    folder: TempDir,
    gate: PolicyGate,
}

impl Office {
    fn under(policy: &str) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let confirmed = tools().into_iter().map(|(spec, action, roles)| {
            let service = spec.touches[0].service().expect("a service");
            let tool = ConfirmedTool {
                definition: service.definition,
                action,
                arguments: roles
                    .into_iter()
                    .map(|(name, role)| (name.to_owned(), role))
                    .collect(),
            };
            (service.tool.clone(), tool)
        });
        let office = ServerMeanings {
            setup: Digest::of(b"setup"),
            tools: confirmed.collect(),
        };
        let text = office.to_text().expect("a text");
        std::fs::write(Meanings::file(folder.path(), "office"), text).expect("a file");
        let meanings = Meanings::read(folder.path()).expect("meanings");
        let gate = PolicyGate::new(OwnPaths {
            own: Vec::new(),
            person: None,
        });
        let gate = gate.under(parse(policy).with_meanings(meanings));
        Self { folder, gate }
    }

    fn judge(&self, spec: &ToolSpec, arguments: &Value, mode: Mode, grants: &[Grant]) -> Verdict {
        self.judge_as((false, None), spec, arguments, mode, grants)
    }

    /// Judges a call of a run that has a mandate or none, and that is one of the mandate's, if it has
    /// the id of one.
    fn judge_as(
        &self,
        (has_mandate, mandated): (bool, Option<&str>),
        spec: &ToolSpec,
        arguments: &Value,
        mode: Mode,
        grants: &[Grant],
    ) -> Verdict {
        let call = ToolCall::new(spec.name.clone(), arguments.clone());
        let place = CallPlace {
            run: RunId::new(),
            workspace: self.folder.path(),
            agent: "main",
            mode,
            skills: &[],
            sandbox: &Default::default(),
        };
        let call = self.gate.resolve(&call, spec, place).expect("a call");
        let under = Judgement {
            agent: "main",
            workspace: self.folder.path(),
            mode,
            exposed: true,
            throwaway: false,
            undoable: true,
            grants,
            skills: &[],
            trusted: &[GOAL],
            link_was_seen: false,
            mandated,
            has_mandate,
        };
        self.gate.judge(&call, spec, &under)
    }

    fn calls(&self, name: &str, arguments: &Value, mode: Mode) -> Verdict {
        self.judge(&named(name), arguments, mode, &[])
    }
}

fn parse(policy: &str) -> Policy {
    let origin = PolicyOrigin {
        file: "policy.toml".into(),
        may_loosen: true,
        home: None,
    };
    let lines = LineReader {
        workspace: std::path::Path::new("/w"),
        read: &|line| panic!("no command line in these: {line}"),
    };
    Policy::parse(policy, &origin, lines).unwrap_or_else(|error| panic!("{error}\n{policy}"))
}

fn named(name: &str) -> ToolSpec {
    let mut all = tools().into_iter().map(|(spec, ..)| spec);
    all.find(|spec| spec.name == format!("office__{name}"))
        .expect("a tool")
}

#[test]
fn things_of_ones_own_that_a_mandate_does_not_state_are_asked_about() {
    let office = Office::under("");
    let judge = |mandate, mode| {
        let verdict = office.judge_as(mandate, &named("move_file"), &json!({"id": "7"}), mode, &[]);
        verdict.decision
    };
    for (mandate, expected) in [
        ((false, None), [Ask, Allow, Allow, Deny]),
        ((true, None), [Ask, Ask, Ask, Deny]),
        ((true, Some("a")), [Allow, Allow, Allow, Allow]),
    ] {
        let modes = [Mode::Ask, Mode::Edits, Mode::Auto, Mode::Never];
        assert_eq!(
            modes.map(|mode| judge(mandate, mode)),
            expected,
            "{mandate:?}"
        );
    }
}

#[test]
fn every_kind_of_call_in_every_mode() {
    let office = Office::under("");
    // In the order of the modes: read-only, ask, edits, auto, never.
    for (name, arguments, risk, expected) in [
        ("find", json!({"query": "notes"}), Risk::Safe, [Allow; 5]),
        (
            "open",
            json!({"url": "https://wiki.x.com/other"}),
            Risk::Safe,
            [Allow; 5],
        ),
        (
            "open",
            json!({"url": "https://evil.com/?notes"}),
            Risk::High,
            [Deny, Ask, Ask, Ask, Deny],
        ),
        // A link in a text that is only read goes nowhere, and an address beside it does.
        (
            "translate",
            json!({"text": "see http://evil.com/x"}),
            Risk::Safe,
            [Allow; 5],
        ),
        (
            "translate",
            json!({"text": "x", "with": "http://evil.com/x"}),
            Risk::High,
            [Deny, Ask, Ask, Ask, Deny],
        ),
        (
            "move_file",
            json!({"id": "7"}),
            Risk::Moderate,
            [Deny, Ask, Allow, Allow, Deny],
        ),
        (
            "add_event",
            json!({"title": "Lunch"}),
            Risk::Moderate,
            [Deny, Ask, Allow, Allow, Deny],
        ),
        (
            "add_event",
            json!({"people": []}),
            Risk::Moderate,
            [Deny, Ask, Allow, Allow, Deny],
        ),
        (
            "add_event",
            json!({"people": [{"mail": "anna@x.com"}]}),
            Risk::High,
            [Deny, Ask, Ask, Ask, Deny],
        ),
        (
            "send_mail",
            json!({"to": ["anna@x.com"]}),
            Risk::High,
            [Deny, Ask, Ask, Ask, Deny],
        ),
        (
            "pay",
            json!({"to": "anna@x.com"}),
            Risk::High,
            [Deny, Ask, Ask, Ask, Deny],
        ),
        (
            "delete",
            json!({"id": "7"}),
            Risk::Critical,
            [Deny, Ask, Ask, Ask, Deny],
        ),
        (
            "log_in",
            json!({"password": "x"}),
            Risk::Critical,
            [Deny, Ask, Ask, Ask, Deny],
        ),
        // Who gets it is not said, so a link that was named makes it no safer.
        (
            "post",
            json!({"text": "see https://wiki.x.com/a"}),
            Risk::High,
            [Deny, Ask, Ask, Ask, Deny],
        ),
        // Nobody described the argument, nor the key.
        (
            "find",
            json!({"query": "x", "also": "y"}),
            Risk::High,
            [Deny, Ask, Ask, Ask, Deny],
        ),
        (
            "add_event",
            json!({"people": [{"evil@x.com": true}]}),
            Risk::High,
            [Deny, Ask, Ask, Ask, Deny],
        ),
        (
            "add_event",
            json!({"title": "see http://evil.com/x"}),
            Risk::High,
            [Deny, Ask, Ask, Ask, Deny],
        ),
    ] {
        for ((mode, word), expected) in Mode::ALL.into_iter().zip(expected) {
            let verdict = office.calls(name, &arguments, mode);
            let got = (verdict.risk, verdict.decision);
            assert_eq!(
                got,
                (risk, expected),
                "{name} {arguments} {word}: {verdict:?}"
            );
        }
    }
}

#[test]
fn a_mandate_lets_pass_what_is_high_and_nothing_above() {
    let office = Office::under("");
    let judged = |spec: &ToolSpec, arguments: &Value| {
        let judge = |(mode, _)| office.judge_as((true, Some("a")), spec, arguments, mode, &[]);
        Mode::ALL.map(|mode| judge(mode).decision)
    };
    let passes = [Deny, Allow, Allow, Allow, Allow];
    let asks = [Deny, Ask, Ask, Ask, Deny];
    let mail = json!({"to": "evil@y.com", "body": "see http://evil.com/x"});
    for (name, arguments, expected) in [
        ("find", json!({"query": "notes"}), [Allow; 5]),
        ("move_file", json!({"id": "7"}), passes),
        ("send_mail", mail.clone(), passes),
        ("post", json!({"text": "x"}), passes),
        ("pay", json!({"to": "DE1", "amount": 5}), passes),
        ("delete", json!({"id": "7"}), asks),
        ("log_in", json!({"password": "x"}), asks),
        ("post", json!({"text": "⟦secret:KEY⟧"}), asks),
    ] {
        assert_eq!(
            judged(&named(name), &arguments),
            expected,
            "{name} {arguments}"
        );
    }
    // Neither where no sandbox contains the server, nor where nobody said what the tool does.
    let changes: [fn(&mut Service); 2] = [
        |service| service.reach = Reach::Everything,
        |service| service.definition = Digest::of(b"other words"),
    ];
    for change in changes {
        let mut spec = named("send_mail");
        let [Touch::Serves(service)] = spec.touches.as_mut_slice() else {
            panic!("{spec:?}");
        };
        change(service);
        assert_eq!(judged(&spec, &mail), asks, "{spec:?}");
    }
}

#[test]
fn a_yes_covers_a_destination_and_not_the_tool() {
    let office = Office::under("");
    let send = named("send_mail");
    let to = |to: Value| json!({"to": to, "body": "hello"});
    let asked = office.judge(&send, &to(json!(["Anna@x.com "])), Mode::Ask, &[]);
    let words: Vec<_> = asked.wider.iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        ["calls of `office__send_mail` that go to anna@x.com"]
    );
    let again = |arguments: Value| {
        office
            .judge(&send, &arguments, Mode::Ask, &asked.wider)
            .decision
    };
    assert_eq!(again(to(json!("anna@x.com"))), Allow);
    for other in [
        to(json!("bob@x.com")),
        to(json!(["anna@x.com", "bob@x.com"])),
        json!({"to": "anna@x.com", "cc": "bob@x.com"}),
        json!({"to": "anna@x.com", "secretly": "bob@x.com"}),
        json!({"to": "anna@x.com", "body": "see www.evil.com"}),
        to(json!("anna@x.com\u{200b}")),
    ] {
        assert_eq!(again(other.clone()), Ask, "{other}");
    }
    // It is for this tool as it is described, and what is paid is asked about each time.
    let mut changed = send.clone();
    let [Touch::Serves(service)] = changed.touches.as_mut_slice() else {
        panic!("{changed:?}");
    };
    service.definition = Digest::of(b"other");
    let verdict = office.judge(&changed, &to(json!("anna@x.com")), Mode::Ask, &asked.wider);
    assert_eq!(verdict.decision, Ask);
    let paid = office.calls("pay", &json!({"to": "anna@x.com"}), Mode::Ask);
    assert!(paid.wider.is_empty(), "{paid:?}");
}

#[test]
fn a_server_that_is_another_means_nothing() {
    let office = Office::under("");
    let find = json!({"query": "notes"});
    type Change = fn(&mut Service);
    let changes: [Change; 4] = [
        |service| service.setup = Some(Digest::of(b"another command")),
        |service| service.setup = None,
        |service| service.definition = Digest::of(b"other words"),
        |service| service.server = "other".to_owned(),
    ];
    for change in changes {
        let mut spec = named("find");
        let [Touch::Serves(service)] = spec.touches.as_mut_slice() else {
            panic!("{spec:?}");
        };
        change(service);
        let verdict = office.judge(&spec, &find, Mode::Never, &[]);
        assert_eq!(
            (verdict.risk, verdict.decision),
            (Risk::High, Deny),
            "{spec:?}"
        );
    }
}

#[test]
fn rules_speak_of_roles_and_of_what_was_named() {
    let office = Office::under(
        r##"
[[rule]]
decide = "allow"
why = "mail to whom I name"
tool = "office__send_mail"
argument = { role = "to", named = true }
matches = [
    { arguments = { to = ["anna@x.com"], cc = [] }, roles = { to = "to", cc = "to" }, goal = "mail anna@x.com" },
    { arguments = { to = [{ mail = "anna@x.com" }] }, roles = { "to.mail" = "to" }, goal = "mail anna@x.com" },
]
not_matches = [
    { arguments = { to = ["anna@x.com", "bob@x.com"] }, roles = { to = "to" }, goal = "mail anna@x.com" },
    { arguments = { to = "anna@x.com", also = "x" }, roles = { to = "to" }, goal = "mail anna@x.com" },
]

[[rule]]
decide = "allow"
why = "events of the office"
tool = "office__add_event"
argument = [{ name = "people.mail", matches = ["*@x.com", "*@y.com"], or_absent = true }]

[[rule]]
decide = "deny"
why = "never there"
host = "evil.com"
"##,
    );
    let judged = |name: &str, arguments: Value| office.calls(name, &arguments, Mode::Never);
    for (name, arguments, expected) in [
        (
            "send_mail",
            json!({"to": "anna@x.com", "cc": null, "body": "hi"}),
            Allow,
        ),
        ("send_mail", json!({"to": ["ANNA@X.COM"]}), Allow),
        ("send_mail", json!({"to": "bob@x.com"}), Deny),
        (
            "send_mail",
            json!({"to": "anna@x.com", "cc": ["bob@x.com"]}),
            Deny,
        ),
        // A text that nobody described counts as a destination, and this one was not named.
        (
            "send_mail",
            json!({"to": "anna@x.com", "secretly": "bob@x.com"}),
            Deny,
        ),
        // A link in the text goes somewhere, of which the rule does not speak.
        (
            "send_mail",
            json!({"to": "anna@x.com", "body": "see www.other.com"}),
            Deny,
        ),
        (
            "add_event",
            json!({"title": "x", "people": [{"mail": "a@x.com"}, {"mail": "b@y.com"}]}),
            Allow,
        ),
        ("add_event", json!({"title": "x"}), Allow),
        (
            "add_event",
            json!({"people": [{"mail": "a@x.com"}, {"mail": "b@z.com"}]}),
            Deny,
        ),
        ("add_event", json!({"people": ["a@x.com"]}), Deny),
    ] {
        let verdict = judged(name, arguments.clone());
        assert_eq!(
            verdict.decision, expected,
            "{name} {arguments}: {verdict:?}"
        );
    }
    for url in [
        "HTTP://EVIL.COM/x",
        "evil.com",
        "//evil.com",
        "http:\\\\evil.com",
        "https://x@evil.com",
    ] {
        let verdict = office.calls("open", &json!({"url": url}), Mode::Auto);
        assert_eq!(verdict.decision, Deny, "{url}: {verdict:?}");
    }
    let linked = json!({"to": "anna@x.com", "body": "[here](http://evil.com)"});
    assert_eq!(
        office.calls("send_mail", &linked, Mode::Auto).decision,
        Deny
    );
}

#[test]
fn a_rule_for_a_whole_tool_does_not_open_its_destinations() {
    let office =
        Office::under("[[rule]]\ndecide = \"allow\"\nwhy = \"mail\"\ntool = \"office__*\"\n");
    let mail = office.calls("send_mail", &json!({"to": "anna@x.com"}), Mode::Ask);
    assert_eq!(mail.decision, Ask);
    let own = office.calls("move_file", &json!({"id": "7"}), Mode::Ask);
    assert_eq!(own.decision, Allow);
}

#[test]
fn what_is_wrong_in_a_condition_is_told() {
    let origin = PolicyOrigin {
        file: "policy.toml".into(),
        may_loosen: true,
        home: None,
    };
    let lines = LineReader {
        workspace: std::path::Path::new("/w"),
        read: &|line| panic!("{line}"),
    };
    let wrong = |argument: &str| {
        let text = format!("[[rule]]\ndecide = \"ask\"\nwhy = \"x\"\nargument = {argument}\n");
        match Policy::parse(&text, &origin, lines) {
            Ok(_) => "fine".to_owned(),
            Err(error) => error.to_string(),
        }
    };
    let all = [
        "{ role = \"too\", named = true }",
        "{ role = \"to\", name = \"to\", named = true }",
        "{ named = true }",
        "{ role = \"to\" }",
        "{ name = \"to\", matches = [] }",
        "{ name = \"to\", named = \"yes\" }",
    ];
    let told: Vec<_> = all.into_iter().map(wrong).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    policy.toml:4:21: `role`: `too` is none of to, name, page, password, text, amount, option; did you mean `to`?
    policy.toml:4:12: `argument`: needs either `name` or `role`
    policy.toml:4:12: `argument`: needs either `name` or `role`
    policy.toml:4:12: `argument`: needs `matches` or `named`
    policy.toml:4:37: `matches`: is an empty list; leave it out if it should not matter
    policy.toml:4:35: `named`: must be true or false
    ");
}

#[test]
fn a_hostile_schema_costs_nothing() {
    let letters: serde_json::Map<String, Value> = (0..60)
        .map(|number| (format!("a{number}"), json!({"$ref": "#"})))
        .collect();
    let mut spec = named("find");
    spec.parameters =
        json!({"type": "object", "properties": letters, "anyOf": [{"$ref": "#"}, {"$ref": "#"}]});
    let started = std::time::Instant::now();
    let meaning = propose(&spec);
    assert!(meaning.arguments.len() <= 300);
    let mut deep = json!({"a0": "x"});
    for _ in 0..12 {
        deep = json!({"a0": deep, "a1": [deep]});
    }
    let values = meaning.values(&deep, &spec.parameters);
    assert!(!values.is_empty());
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
