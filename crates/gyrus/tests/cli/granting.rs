//! Wider answers, rules of the policy, and what the gate says beforehand.

use gyrus_kernel::Entry;
use serde_json::Value;

use crate::support::World;

/// Reads a file outside of the folder, twice.
const TWICE: &str = r#"
[[reply]]
calls = [{ tool = "read", arguments = { path = "../person/notes" } }]
[[reply]]
calls = [{ tool = "read", arguments = { path = "../person/notes" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "read" } }]
"#;

fn world() -> World {
    let world = World::new(TWICE);
    std::fs::write(world.path("person/notes"), "remember\n").unwrap();
    world
}

/// Returns how often the only run asked.
fn asked(world: &World) -> usize {
    let asks = |entry: &&Entry| matches!(entry, Entry::ApprovalAsked(_));
    world.entries().iter().filter(asks).count()
}

#[test]
fn a_yes_for_the_session_is_asked_for_once() {
    let world = world();
    let said = world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    assert!(
        said.err
            .contains("for this session, or always in this folder, you could allow"),
        "{}",
        said.err
    );
    world.gyrus(&["approve", "last", "--session"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(asked(&world), 1);
    // The session goes on with what was allowed in it; another one does not.
    world
        .gyrus(&["run", "-c", "again", "--on-ask", "deny"])
        .exits(0);
    world.gyrus(&["run", "anew", "--on-ask", "park"]).exits(5);
}

#[test]
fn a_yes_once_is_asked_for_again() {
    let world = world();
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    world.gyrus(&["approve", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(5);
    assert_eq!(asked(&world), 2);
}

#[test]
fn what_is_always_allowed_is_listed_and_taken_back() {
    let world = world();
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    world.gyrus(&["approve", "last", "--always"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    world.gyrus(&["run", "anew", "--on-ask", "deny"]).exits(0);
    let listed = world.gyrus(&["approvals"]).exits(0).out;
    assert!(listed.contains("1. reading "), "{listed}");
    world
        .gyrus(&["approvals", "revoke", "2"])
        .exits(2)
        .says("has the number 2");
    world
        .gyrus(&["approvals", "revoke", "1"])
        .exits(0)
        .says("no longer allowed");
    let listed = world.gyrus(&["approvals"]).exits(0).out;
    assert!(!listed.contains("always allowed"), "{listed}");
    world.gyrus(&["run", "anew", "--on-ask", "park"]).exits(5);
}

#[test]
fn a_rule_denies_with_its_reason_and_a_project_cannot_allow() {
    let world = World::new(
        r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "make release" } }]
[[reply]]
when = "releases are made by people"
calls = [{ tool = "finish", arguments = { reached = false, answer = "I may not" } }]
"#,
    );
    std::fs::create_dir(world.path("home")).unwrap();
    let rule = |decide: &str| {
        format!(
            "[[rule]]\ndecide = \"{decide}\"\nwhy = \"releases are made by people\"\n\
             tool = \"shell\"\ncommand = [\"make\", \"release\"]\n\
             matches = [\"make release\"]\nnot_matches = [\"make test\"]\n"
        )
    };
    std::fs::write(world.path("home/policy.toml"), rule("deny")).unwrap();
    world.gyrus(&["policy", "check"]).exits(0);
    world.gyrus(&["run", "go"]).exits(1).says("I may not");
    std::fs::create_dir(world.path("work/.gyrus")).unwrap();
    std::fs::write(world.path("work/.gyrus/policy.toml"), rule("allow")).unwrap();
    world.gyrus(&["policy", "check"]).exits(2);
    world.gyrus(&["run", "go"]).exits(2);
    let wrong = rule("deny").replace("decide", "decid");
    std::fs::write(world.path("home/policy.toml"), wrong).unwrap();
    world
        .gyrus(&["policy", "check"])
        .exits(2)
        .says("did you mean");
}

#[test]
fn the_gate_explains_itself() {
    let world = World::new("");
    for (line, risk, decision) in [
        ("ls -la", "safe", "allow"),
        ("git status && git log -3", "safe", "allow"),
        ("echo done > notes.txt", "moderate", "allow"),
        ("rm -rf ..", "critical", "ask"),
        // The sandbox holds it, however it is written.
        ("echo $[ x='a[$(touch FLAG)]', x ]", "moderate", "allow"),
        ("{touch,FLAG}", "moderate", "allow"),
        ("curl https://example.com/", "moderate", "allow"),
        // It is hidden there; what lies in the workspace is not.
        ("cat ~/.ssh/id_ed25519", "safe", "allow"),
        ("cat .env | head", "high", "ask"),
        ("git stash drop", "critical", "ask"),
        // In the sandbox it has no keys, and its connection is judged when it is made.
        ("git push origin main", "moderate", "allow"),
        ("gyrus approve last", "moderate", "allow"),
    ] {
        let said = world.gyrus(&["policy", "explain", "--json", line]).exits(0);
        let explained: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(
            (explained["risk"].as_str(), explained["decision"].as_str()),
            (Some(risk), Some(decision)),
            "{line}: {explained}"
        );
        let reasons = explained["reasons"].as_array().unwrap();
        assert!(!reasons.is_empty(), "{line}");
    }
}

/// Tries to write, then says how it went.
const WRITES: &str = r#"
[[reply]]
calls = [{ tool = "write", arguments = { path = "out.txt", content = "hello" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "tried" } }]
"#;

#[test]
fn a_run_works_under_the_trust_of_its_agent() {
    let world = World::new(WRITES);
    std::fs::create_dir(world.path("home")).unwrap();
    let policy = world.path("home/policy.toml");
    std::fs::write(
        &policy,
        "[agent.researcher]\ntools = [\"read\", \"finish\"]\n",
    )
    .unwrap();
    world
        .gyrus(&["run", "go", "--agent", "nobody"])
        .exits(2)
        .says("there is no agent `nobody`; there are default, researcher");
    world
        .gyrus(&["run", "go", "--agent", "researcher", "--max-steps", "1"])
        .exits(3)
        .says("not among the tools of the agent `researcher`");
    let started =
        |entry: &Entry| matches!(entry, Entry::RunStarted(it) if it.agent == "researcher");
    assert!(world.entries().iter().any(started));
    // As it stands today, and never without: an agent that is gone would be trusted with all.
    let resume = ["resume", "last", "--max-steps", "9"];
    std::fs::write(&policy, "").unwrap();
    world.gyrus(&resume).exits(2).says("no agent `researcher`");
    std::fs::write(&policy, "[agent.researcher]\nmode = \"read-only\"\n").unwrap();
    world.gyrus(&resume).exits(0);
    // The session goes on so; another one does not.
    world
        .gyrus(&["run", "-c", "again"])
        .exits(0)
        .says("mode `read-only` allows only");
    assert_eq!(world.file("out.txt"), "");
    world.gyrus(&["run", "anew"]).exits(0);
    assert_eq!(world.file("out.txt"), "hello");
    let explain = ["policy", "explain", "make", "--agent"];
    let said = world
        .gyrus(&[&explain[..], &["researcher"]].concat())
        .exits(0);
    assert!(said.out.contains("changes nothing"), "{said:?}");
    world.gyrus(&[&explain[..], &["nobody"]].concat()).exits(2);
}

#[test]
fn without_a_sandbox_code_is_asked_about_in_every_mode() {
    let script = WRITES.replace("\"write\"", "\"shell\"").replace(
        "path = \"out.txt\", content = \"hello\"",
        "command = \"sh made.sh\"",
    );
    let world = World::new(&script);
    std::fs::write(world.work().join("made.sh"), "echo hello > out.txt\n").unwrap();
    let bypass = [
        "run",
        "go",
        "--workdir",
        ".",
        "--on-ask",
        "park",
        "--approve",
        "bypass",
    ];
    let said = world.gyrus(&bypass).exits(5);
    assert!(
        said.err.contains("is still asked about each time"),
        "{said:?}"
    );
    assert!(
        said.err
            .contains("would run outside the sandbox: the sandbox is turned off"),
        "{said:?}"
    );
    assert!(!said.err.contains("you could allow"), "{said:?}");
    let denied = [&bypass[..5], &["deny", "--approve", "yolo"]].concat();
    world.gyrus(&denied);
    assert_eq!(world.file("out.txt"), "");
    world
        .gyrus(&["policy", "explain", "cargo test", "--approve", "bypass"])
        .exits(0);
}
