//! Verdicts of the gate on a connection that a command wants to make, whatever its line says.

#![expect(clippy::unwrap_used, reason = "these are tests, helpers included")]

use std::path::Path;

use gyrus_contract::{
    CallPlace, CommandReading, Decision, Destination, Gate, Grant, Judgement, Mode, Repeat, Risk,
    RunId, ToolCall, ToolSpec, Touch, Verdict,
};
use gyrus_gate::{
    OwnPaths, PolicyGate,
    policy::{LineReader, Policy, PolicyOrigin},
};
use serde_json::json;

use Decision::{Allow, Ask, Deny};

/// The mode, grants and policy of a check.
#[derive(Clone, Copy)]
struct Under<'a> {
    goal: &'a str,
    grants: &'a [Grant],
    policy: &'a str,
    mode: Mode,
    line: &'a str,
}

const NOTHING: Under<'_> = Under {
    goal: "do it",
    grants: &[],
    policy: "",
    mode: Mode::Ask,
    line: "make",
};

fn to(text: &str) -> Destination {
    // `name>host:port`: the address that a name led to.
    let (name, place) = match text.split_once('>') {
        Some((name, place)) => (Some(name.to_owned()), place),
        None => (None, text),
    };
    let (host, port) = place.rsplit_once(':').unwrap();
    Destination {
        host: host.trim_matches(['[', ']']).to_owned(),
        port: port.parse().unwrap(),
        name,
    }
}

impl Under<'_> {
    fn judge(&self, place: &str) -> Verdict {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().canonicalize().unwrap();
        let origin = PolicyOrigin {
            file: "policy.toml".into(),
            may_loosen: true,
            home: None,
        };
        let lines = LineReader {
            workspace: Path::new("/work"),
            read: &|_| CommandReading::default(),
        };
        let policy = Policy::parse(self.policy, &origin, lines).unwrap();
        let own_paths = OwnPaths {
            own: Vec::new(),
            person: None,
        };
        let gate = PolicyGate::new(own_paths).under(policy);
        let spec = ToolSpec {
            name: "shell".into(),
            description: String::new(),
            parameters: json!({}),
            touches: vec![Touch::Starts("command".into())],
            repeat: Repeat::Never,
        };
        let call = ToolCall::new("shell", json!({"command": self.line}));
        let at = CallPlace {
            run: RunId::new(),
            workspace: &workspace,
            agent: "main",
            mode: Mode::Ask,
            skills: &[],
            sandbox: &Default::default(),
        };
        let call = gate.resolve(&call, &spec, at).unwrap();
        let under = Judgement {
            agent: "default",
            workspace: &workspace,
            mode: self.mode,
            exposed: true,
            throwaway: true,
            undoable: true,
            grants: self.grants,
            skills: &[],
            trusted: &[self.goal],
            link_was_seen: false,
            mandated: None,
            has_mandate: false,
        };
        gate.judge_destination(&to(place), &call, &spec, &under)
    }

    #[track_caller]
    fn check(&self, cases: &[(&str, Decision)]) {
        for (place, expected) in cases {
            let verdict = self.judge(place);
            assert_eq!(verdict.decision, *expected, "{place}: {verdict:?}");
        }
    }
}

#[test]
fn what_the_person_typed_names_hosts_and_ports() {
    let goal = "compare https://docs.example/a with http://127.0.0.1:3000 and db.lan:5432";
    Under { goal, ..NOTHING }.check(&[
        ("docs.example:443", Allow),
        ("docs.example:80", Allow),
        ("docs.example:22", Ask),
        ("docs.example:8443", Ask),
        ("www.docs.example:443", Ask),
        ("docs.example.evil.example:443", Ask),
        // This machine has three spellings, and one port of it was named.
        ("127.0.0.1:3000", Allow),
        ("localhost:3000", Allow),
        ("[::1]:3000", Allow),
        ("127.0.0.1:3001", Ask),
        ("127.0.0.1:80", Ask),
        ("127.0.0.2:3000", Ask),
        ("0.0.0.0:3000", Ask),
        ("x.localhost:3000", Ask),
        // Only a name that nobody else can own speaks for a private address, and never for this
        // machine.
        ("db.lan:5432", Allow),
        ("db.lan>10.0.0.7:5432", Allow),
        ("db.lan>127.0.0.1:5432", Ask),
        ("db.lan>169.254.169.254:5432", Ask),
        ("docs.example>10.0.0.7:443", Ask),
        ("docs.example>127.0.0.1:443", Ask),
    ]);
    // Whatever mode: what leads nowhere else is denied where nothing may be changed.
    let strict = |mode| Under {
        goal,
        mode,
        ..NOTHING
    };
    strict(Mode::Auto).check(&[("docs.example:443", Allow), ("other.example:443", Ask)]);
    strict(Mode::Never).check(&[("docs.example:443", Allow), ("other.example:443", Deny)]);
    strict(Mode::ReadOnly).check(&[("docs.example:443", Deny), ("other.example:443", Deny)]);
}

#[test]
fn a_wider_answer_is_for_that_host_and_port() {
    let offers = |place: &str| NOTHING.judge(place).wider;
    let host = |host: &str, port| Grant::Host {
        host: host.to_owned(),
        port: Some(port),
    };
    assert_eq!(offers("a.example:443"), [host("a.example", 443)]);
    assert_eq!(offers("127.0.0.1:5432"), [host("127.0.0.1", 5432)]);
    assert_eq!(offers("a.example>10.0.0.7:443"), [host("10.0.0.7", 443)]);
    assert_eq!(offers("db.lan>10.0.0.7:443"), [host("db.lan", 443)]);
    assert_eq!(offers("index.crates.io:443"), [Grant::PackageRegistries]);
    // Where a cloud hands out keys, every time.
    let metadata = Under {
        goal: "ask http://169.254.169.254/latest",
        ..NOTHING
    };
    let verdict = metadata.judge("169.254.169.254:80");
    assert_eq!((verdict.risk, verdict.decision), (Risk::Critical, Ask));
    assert_eq!(verdict.wider, []);
}

#[test]
fn grants_cover_their_port_and_old_ones_the_usual() {
    let old: Grant =
        serde_json::from_value(json!({"grants": "host", "host": "a.example"})).unwrap();
    let exact: Grant =
        serde_json::from_value(json!({"grants": "host", "host": "127.0.0.1", "port": 5432}))
            .unwrap();
    let grants = [old, exact, Grant::PackageRegistries];
    let granted = Under {
        grants: &grants,
        ..NOTHING
    };
    granted.check(&[
        ("a.example:443", Allow),
        ("a.example:80", Allow),
        ("a.example:22", Ask),
        ("127.0.0.1:5432", Allow),
        ("localhost:5432", Allow),
        ("127.0.0.1:80", Ask),
        ("registry.npmjs.org:443", Allow),
        ("registry.npmjs.org:22", Ask),
        ("registry.npmjs.org>10.0.0.1:443", Ask),
    ]);
}

#[test]
fn rules_on_hosts_are_about_connections() {
    let policy = "
        [[rule]]
        decide = 'deny'
        why = 'private'
        host = '*.corp.example'
        [[rule]]
        decide = 'deny'
        why = 'the database'
        host = 'localhost:5432'
        [[rule]]
        decide = 'allow'
        why = 'ours'
        host = ['api.example', 'cache.example:6379', '127.0.0.1:8080']
        [[rule]]
        decide = 'allow'
        why = 'downloads'
        command = ['curl']
        host = 'files.example'
        [[rule]]
        decide = 'ask'
        why = 'builds are looked at'
        command = ['make']
    ";
    let goal = "ask git.corp.example and 127.0.0.1:5432";
    let ruled = |line| Under {
        goal,
        policy,
        line,
        ..NOTHING
    };
    ruled("make").check(&[
        ("git.corp.example:443", Deny),
        ("127.0.0.1:5432", Deny),
        ("[::1]:5432", Deny),
        ("api.example:443", Allow),
        ("api.example:22", Ask),
        ("cache.example:6379", Allow),
        ("cache.example:443", Ask),
        ("localhost:8080", Allow),
        ("git.corp.example>10.0.0.1:443", Deny),
        ("api.example>10.0.0.1:443", Ask),
        ("files.example:443", Ask),
    ]);
    ruled("curl -s https://files.example/a").check(&[("files.example:443", Allow)]);
    // Which of the two connects is not known.
    ruled("curl -s https://files.example/a | python3 -").check(&[("files.example:443", Ask)]);
}
