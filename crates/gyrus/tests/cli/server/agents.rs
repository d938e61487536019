//! Agents that files describe, in a server.

use std::{fs, time::Instant};

use serde_json::{Value, json};

use super::{Server, TOKEN, bearer};
use crate::support::{TIMEOUT, UNTIL_GO, World};

/// Leaves a line in the ledger, and finishes.
pub(crate) const ONE_LINE: &str = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "echo line >> ledger.txt" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "written" } }]
"#;

/// Writes an agent file whose settings have these further lines.
pub(crate) fn write_agent(world: &World, name: &str, more: &str) {
    let folder = world.path("home").join("agents");
    fs::create_dir_all(&folder).unwrap();
    let work = world.work();
    let text = format!(
        "---\nworkdir: {}\noptions:\n  approve: auto\n{more}---\nLeave a line.\n",
        work.display()
    );
    fs::write(folder.join(format!("{name}.md")), text).unwrap();
}

/// Waits until an agent is as wanted; its view.
#[track_caller]
pub(crate) fn wait(server: &Server<'_>, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let since = Instant::now();
    loop {
        let answer = server.get(&format!("/api/agents/{name}"));
        if answer.status == 200 && wanted(&answer.json()) {
            return answer.json();
        }
        assert!(since.elapsed() < TIMEOUT, "{answer:#?}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

pub(crate) fn goals(server: &Server<'_>) -> Vec<Value> {
    let commands = server.get("/api/commands").is(200).json();
    let commands = commands.as_array().unwrap().iter();
    commands.map(|command| command["goal"].clone()).collect()
}

#[test]
fn an_event_becomes_a_run_and_its_end_an_event() {
    let world = World::new(ONE_LINE);
    write_agent(
        &world,
        "scribe",
        "subscribe: [build.*.done]\nbudget: {runs: 2}\n",
    );
    write_agent(&world, "broken", "subscibe: x\n");
    let server = Server::start(&world);
    world
        .gyrus(&["agents", "send", "scribe", "and be quick"])
        .exits(0);
    wait(&server, "scribe", |agent| agent["handled"] == 1);
    assert_eq!(goals(&server), [json!("Leave a line.⏎⏎and be quick")]);

    let event = json!({"topic": "build.main.done", "payload": {"passed": true}});
    let first = server.post("/api/events", &event).is(202).json();
    let agent = wait(&server, "scribe", |agent| agent["handled"] == 2);
    assert_eq!(goals(&server)[0], "Leave a line.");
    assert_eq!(world.file("ledger.txt"), "line\nline\n");
    let run = agent["last_run"].as_str().unwrap();
    let entries = server.get(&format!("/api/runs/{run}/entries")).is(200).body;
    assert!(entries.contains("event build.main.done"), "{entries}");

    // The budget of the day is used up: the third run waits for tomorrow.
    server.post("/api/events", &event).is(202);
    let since = Instant::now();
    while goals(&server).len() < 3 {
        assert!(since.elapsed() < TIMEOUT);
    }
    let commands = server.get("/api/commands").is(200).json();
    assert!(commands[0]["not_before_ms"].is_i64(), "{commands:#}");
    assert_eq!(commands[0]["stage"]["state"], "queued");

    // Events are listed, and followed by position.
    let topic = "/api/events?topic=agent.scribe.reached";
    let reached = server.get(topic).is(200).json();
    let reached = reached["events"].as_array().unwrap();
    assert_eq!(reached.len(), 2);
    assert_eq!(reached[1]["payload"]["answer"], "written");
    // Also after a person's event: the answer may hold what a file said.
    assert_eq!(reached[0]["origin"]["from"], "event", "{reached:#?}");
    let after = first["position"].as_u64().unwrap() - 1;
    let head = format!("{}last-event-id: {after}\r\n", bearer(TOKEN));
    let host = &server.host;
    let request = format!("GET /api/events/stream HTTP/1.1\r\nhost: {host}\r\n{head}\r\n");
    let mut stream = server.connect();
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(stream));
    let ids = lines.filter_map(|line| Some(line.unwrap().strip_prefix("id: ")?.to_owned()));
    let ids: Vec<u64> = ids.take(3).map(|id| id.parse().unwrap()).collect();
    assert_eq!(ids, [after + 1, after + 2, after + 3]);

    // What the agent began when something happened is no run of a person's.
    let runs = |more: &[&str]| world.gyrus(&[&["runs"], more].concat()).exits(0).out;
    let own = runs(&[]);
    assert_eq!(own.lines().count(), 1, "{own}");
    assert!(own.contains("and be quick"), "{own}");
    assert_eq!(runs(&["--agents"]).lines().count(), 2);
    let shown = world.gyrus(&["show"]).exits(0).out;
    assert!(shown.contains("and be quick"), "{shown}");

    let listed = world.gyrus(&["agents"]).exits(0);
    assert!(listed.out.contains("scribe  active"), "{listed:?}");
    listed.says("1 agent file cannot be used: gyrus agents check");
    world
        .gyrus(&["agents", "check"])
        .exits(2)
        .says("1 mistake in agent files");
}

#[test]
fn a_file_that_changes_or_goes_changes_its_agent() {
    let world = World::new(ONE_LINE);
    let server = Server::start(&world);
    write_agent(&world, "scribe", "");
    wait(&server, "scribe", |agent| agent["stage"] == "active");
    write_agent(&world, "scribe", "subscribe: news.**\n");
    wait(&server, "scribe", |agent| {
        agent["subscriptions"] == json!(["news.**"])
    });

    let file = world.path("home").join("agents/scribe.md");
    let text = fs::read_to_string(&file).unwrap();
    // A mistake changes nothing, also where the file has another name.
    let other = file.with_file_name("other.md");
    fs::rename(&file, &other).unwrap();
    let named = text.replace("workdir:", "name: scribe\nworkdir:");
    fs::write(&other, named.replace("news.**", "news.*")).unwrap();
    wait(&server, "scribe", |agent| {
        agent["subscriptions"] == json!(["news.*"])
    });
    fs::write(&other, "---\n---\n").unwrap();
    // The files are read together, so the mistake is seen when this agent is there.
    write_agent(&world, "second", "");
    wait(&server, "second", |agent| agent["stage"] == "active");
    wait(&server, "scribe", |agent| agent["stage"] == "active");
    fs::rename(&other, &file).unwrap();
    fs::write(&file, &text).unwrap();
    wait(&server, "scribe", |agent| {
        agent["subscriptions"] == json!(["news.**"])
    });
    fs::remove_file(&file).unwrap();
    let paused = wait(&server, "scribe", |agent| agent["stage"] == "paused");
    assert_eq!(paused["why"], "its file was removed");
    let event = json!({"topic": "news.local", "payload": 1});
    server.post("/api/events", &event).is(202);
    wait(&server, "scribe", |agent| agent["waiting"] == 1);
    fs::write(&file, text).unwrap();
    wait(&server, "scribe", |agent| agent["handled"] == 1);
    assert_eq!(world.file("ledger.txt"), "line\n");

    // What a person pauses stays paused; without a server the logs tell.
    world
        .gyrus(&["agents", "pause", "scribe", "--why", "enough"])
        .exits(0);
    server.kill();
    let listed = world
        .gyrus(&["agents", "--json", "--filter", "enough"])
        .exits(0)
        .out;
    let agent: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(
        (&agent["stage"], &agent["why"]),
        (&json!("paused"), &json!("enough"))
    );
}

#[test]
fn a_server_that_is_killed_runs_each_event_once() {
    let world = World::new(UNTIL_GO);
    write_agent(&world, "scribe", "");
    let server = Server::start(&world);
    server
        .post("/api/agents/scribe/inbox", &json!({"text": "go"}))
        .is(202);
    server.kill();
    let server = Server::start(&world);
    world.wait_for_file("ledger.txt", "begun");
    server.kill();
    let server = Server::start(&world);
    fs::write(world.work().join("go"), "").unwrap();
    let agent = wait(&server, "scribe", |agent| agent["handled"] == 1);
    assert_eq!(agent["last_summary"], "claimed: finished");
    assert_eq!(world.file("ledger.txt"), "begun\ndone\n");
    assert_eq!(goals(&server).len(), 1);
}

#[test]
fn every_mistake_of_a_file_is_named_with_its_line() {
    let world = World::new("");
    let folder = world.path("home").join("agents");
    fs::create_dir_all(&folder).unwrap();
    let work = world.work();
    let text = format!(
        "---\nname: Not Good\nworkdir: {}\nsubscibe: x\nmailbox: many\noverflow: never\n\
         budget:\n  runs: 0\n  pounds: 2\noptions:\n  max-stepps: 3\n  approve: perhaps\n---\n",
        work.display()
    );
    fs::write(folder.join("bad.md"), text).unwrap();
    let said = world.gyrus(&["agents", "check"]).exits(2);
    let lines: Vec<&str> = said.out.lines().collect();
    for (number, (line, words)) in [
        (2, "invalid name `Not Good`"),
        (4, "did you mean `subscribe`?"),
        (5, "invalid `mailbox`"),
        (6, "invalid `overflow`"),
        (8, "invalid `runs`"),
        (9, "there is no setting `pounds`"),
        (11, "did you mean `max-steps`?"),
        (12, "perhaps"),
        (14, "nothing says what to do"),
    ]
    .into_iter()
    .enumerate()
    {
        let found = lines.get(number).copied().unwrap_or_default();
        assert!(found.contains(&format!("line {line}: ")), "{said:#?}");
        assert!(found.contains(words), "{said:#?}");
    }
    assert_eq!(lines.len(), 9, "{said:#?}");
}
